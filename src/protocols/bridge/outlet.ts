// The outgoing queue: lines to a host that may be slow, or not read at all.
//
// Invariants
// 1. At most HELD_BYTES_MAX and one line are written and unread. Further lines are not built before there is room.
// 2. Answers are sent before events, so a request is not delayed by a stream.
// 3. After `close` every line is accepted and dropped, so nothing waits for a host that is gone.
import type { Writable } from "node:stream";
import { HELD_BYTES_MAX } from "./limits.ts";

/** Builds a line when there is room for it. Undefined: it is no longer needed. */
export type MakeLine = () => string | undefined;

interface Waiting {
  readonly make: MakeLine;
  readonly out: () => void;
}

export class Outlet {
  readonly #output: Writable;
  readonly #answers: Waiting[] = [];
  readonly #events: Waiting[] = [];
  readonly #flushed: (() => void)[] = [];
  #held = 0;
  #closed = false;

  constructor(output: Writable) {
    this.#output = output;
  }

  /** Queues an answer. Resolves when the line is written. */
  answer(make: MakeLine): Promise<void> {
    return this.#wait(this.#answers, make);
  }

  /** Queues an event. A reader of a log reads on when this resolves. */
  event(make: MakeLine): Promise<void> {
    return this.#wait(this.#events, make);
  }

  /** Resolves when the host has read everything, or the outlet is closed. */
  flushed(): Promise<void> {
    if (this.#closed || (this.#held === 0 && this.#answers.length + this.#events.length === 0)) {
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#flushed.push(resolve));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const { out } of [...this.#answers.splice(0), ...this.#events.splice(0)]) out();
    this.#resolveFlushed();
  }

  #wait(lane: Waiting[], make: MakeLine): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((out) => {
      lane.push({ make, out });
      this.#pump();
    });
  }

  #pump(): void {
    while (!this.#closed && this.#held < HELD_BYTES_MAX) {
      const next = this.#answers.shift() ?? this.#events.shift();
      if (next === undefined) break;
      const line = next.make();
      if (line !== undefined) this.#write(line);
      next.out();
    }
    if (this.#held === 0 && this.#answers.length + this.#events.length === 0) this.#resolveFlushed();
  }

  #write(line: string): void {
    const bytes = Buffer.byteLength(line);
    this.#held += bytes;
    this.#output.write(line, (error) => {
      this.#held -= bytes;
      if (error !== undefined && error !== null) this.close();
      else this.#pump();
    });
  }

  #resolveFlushed(): void {
    for (const resolve of this.#flushed.splice(0)) resolve();
  }
}
