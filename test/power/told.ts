// What the callers of the store were told, and what of it must be found after the power comes back.
//
// Invariants
// 1. What was answered as appended is expected for ever. What was not answered may be there as a whole, or not at all.
// 2. Once a new life has read it, it counts as told.
import type { Seq, SessionId } from "../../src/core/model/ids.ts";
import { emptyLane, type Lane } from "../../src/core/model/lane.ts";
import { rowChange } from "../../src/core/model/rows.ts";
import { Book, Draft } from "../../src/store/memory/projection.ts";
import type { PackedBatch } from "../../src/store/sqlite/thread/message.ts";
import type { Step } from "./workload.ts";

/** One append, as it was sent. */
export interface Sent extends Step {
  readonly packed: PackedBatch;
  /** Those of one group are in one transaction. */
  readonly group: number;
}

export interface Known {
  readonly sent: Sent[];
  keptFrom: Seq;
  lane: Lane;
}

/** A request to forget that was not answered. */
export interface TrimDoubt {
  readonly session: SessionId;
  readonly before: Seq;
}

export class Told {
  readonly sessions = new Map<SessionId, Known>();
  readonly book = new Book();
  /** Sent, and not answered. In the order in which they were sent. */
  doubts: Sent[] = [];
  trimDoubt: TrimDoubt | undefined;
  /** What was answered as not recorded, and what was found not to be. Nothing of it may ever appear. */
  readonly refused: { readonly sent: Sent; readonly because: string }[] = [];
  /** The highest that was handed out. */
  epoch = -1;
  /** How many appends were answered as appended. */
  acked = 0;

  known(session: SessionId): Known {
    const found = this.sessions.get(session);
    if (found !== undefined) return found;
    const fresh: Known = { sent: [], keptFrom: 1, lane: emptyLane(session) };
    this.sessions.set(session, fresh);
    return fresh;
  }

  confirm(sent: Sent): void {
    const { batch, lane } = sent;
    const known = this.known(batch.session);
    known.sent.push(sent);
    known.lane = lane;
    const draft = new Draft(this.book, batch.session);
    for (const [index, event] of batch.events.entries()) {
      const change = rowChange(event, batch.expected + index + 1);
      if (change !== undefined) draft.apply(change, batch.at);
    }
    draft.keep();
  }

  /** The snapshot that stands: the last one sent. */
  snapshot(session: SessionId): { readonly seq: Seq; readonly data: string } | undefined {
    const last = this.known(session).sent.findLast(({ packed }) => packed.snapshot !== null);
    if (last === undefined || last.packed.snapshot === null) return undefined;
    return { seq: last.packed.expected + last.packed.count, data: last.packed.snapshot };
  }
}
