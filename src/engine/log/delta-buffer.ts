// The deltas that wait for one follower.
//
// Invariants
// 1. Bounded: beyond `DELTA_BYTES_MAX` the oldest are dropped and counted. Nothing is rebuilt from deltas.
// 2. A delta takes constant time, however many wait.
// 3. A fast follower gets every delta as it was emitted. For a slow one, adjacent deltas are merged: many small ones
//    would take far more memory than their text.

import { DELTA_BYTES_MAX, DELTA_MERGED_BYTES } from "../../core/limits.ts";
import type { Delta } from "../../core/model/delta.ts";
import type { Seq, TurnId } from "../../core/model/ids.ts";
import { heapBytes } from "../../core/size.ts";
import { Fifo } from "./fifo.ts";

type TextDelta = Extract<Delta, { type: "delta" }>;

interface Piece {
  readonly delta: Delta;
  readonly at: Seq;
  bytes: number;
  /** The texts of the deltas that were merged into it. */
  more: string[] | undefined;
  /** The end of its text in the turn: the `from` of the delta that continues it. */
  end: number;
}

/** A follower is slow when this many deltas wait for it. */
const BEHIND = 64;

/** The memory of a waiting delta besides its text: its object, its ids and its place in the queue. */
const PIECE_BYTES = 256;

export class DeltaBuffer {
  #waiting = new Fifo<Piece>();
  #bytes = 0;
  /** How many deltas were dropped. */
  dropped = 0;

  /** `at`: the position in the log after which it was emitted. */
  add(delta: Delta, at: Seq): void {
    if (delta.type === "delta") {
      const bytes = 2 * delta.text.length;
      if (!this.#merge(delta, at, bytes)) this.#push(delta, at, bytes, delta.from + delta.text.length);
    } else this.#push(delta, at, heapBytes(delta), 0);
    while (this.#bytes > DELTA_BYTES_MAX) this.#drop();
  }

  get empty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Drops the deltas of these turns, whose text is in the log by now. */
  forget(turns: ReadonlySet<TurnId>): void {
    if (this.empty || turns.size === 0) return;
    const waiting = this.#waiting;
    this.#waiting = new Fifo();
    this.#bytes = 0;
    for (let piece = waiting.shift(); piece !== undefined; piece = waiting.shift()) {
      if (piece.delta.type === "delta" && turns.has(piece.delta.turnId)) continue;
      this.#waiting.push(piece);
      this.#bytes += piece.bytes;
    }
  }

  /** Takes the deltas before the event at `seq`; without one, all. */
  take(seq: Seq = Number.POSITIVE_INFINITY): readonly Delta[] {
    const first = this.#waiting.at(0);
    if (first === undefined || first.at >= seq) return NONE;
    const taken: Delta[] = [];
    for (let piece = this.#waiting.at(0); piece !== undefined && piece.at < seq; piece = this.#waiting.at(0)) {
      this.#waiting.shift();
      this.#bytes -= piece.bytes;
      taken.push(merged(piece));
    }
    return taken;
  }

  #push(delta: Delta, at: Seq, textBytes: number, end: number): void {
    const bytes = PIECE_BYTES + textBytes;
    this.#waiting.push({ delta, at, bytes, more: undefined, end });
    this.#bytes += bytes;
  }

  /** False: the delta cannot be merged. */
  #merge(delta: TextDelta, at: Seq, bytes: number): boolean {
    const last = this.#waiting.last;
    if (last === undefined || this.#waiting.length < BEHIND || !continues(last, delta, at)) return false;
    if (last.bytes + bytes > DELTA_MERGED_BYTES) return false;
    last.more ??= [];
    last.more.push(delta.text);
    last.end += delta.text.length;
    last.bytes += bytes;
    this.#bytes += bytes;
    return true;
  }

  #drop(): void {
    const oldest = this.#waiting.shift();
    if (oldest === undefined) return;
    this.#bytes -= oldest.bytes;
    this.dropped += 1 + (oldest.more?.length ?? 0);
  }
}

function continues({ delta: last, at: lastAt, end }: Piece, next: TextDelta, at: Seq): boolean {
  return (
    last.type === "delta" &&
    lastAt === at &&
    last.turnId === next.turnId &&
    last.kind === next.kind &&
    end === next.from
  );
}

function merged({ delta, more }: Piece): Delta {
  return more === undefined || delta.type !== "delta" ? delta : { ...delta, text: delta.text + more.join("") };
}

const NONE: readonly Delta[] = [];
