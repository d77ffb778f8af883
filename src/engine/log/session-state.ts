// A lane in memory: its decided state, its durable state, and the commands in flight.
//
// Invariants
// 1. `decided` = `durable` + the events of `flight` + those of `pending`, in this order.
// 2. At most one batch of a lane is in flight.
// 3. Commands are decided in the order in which they were received, each in its tick.

import type { Command } from "../../core/model/command.ts";
import type { Delta } from "../../core/model/delta.ts";
import type { Event } from "../../core/model/event.ts";
import type { RunId, Seq, SessionId, Work } from "../../core/model/ids.ts";
import { emptyLane, type Lane } from "../../core/model/lane.ts";
import type { MemoChange } from "../../core/model/memo.ts";
import type { Coverage } from "../../core/policy/covers.ts";
import type { BlockedExplained } from "../../core/read/explained.ts";
import type { LiveWork } from "../work/live-work.ts";
import { type Health, WELL } from "./health.ts";
import type { LiveTranscript } from "./live-transcript.ts";

/** A command, and the caller that waits for its answer. */
export interface Pending {
  /** Undefined: a barrier, which decides nothing and is answered in its turn. */
  command: Command | undefined;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
  /** Called with the answer in the tick of each decision. */
  readonly decided: ((answer: unknown) => void) | undefined;
  events: readonly Event[];
  memos: readonly MemoChange[];
  answer: unknown;
  /** What a stop covered when it was first decided, and the run that was live then. */
  covered?: Coverage;
  liveRun?: RunId | undefined;
  /** Set when the caller of a stop knows that it is carried out and not recorded yet. */
  isReported?: true;
  /** For a barrier: its batch also contains a snapshot, from which the next load starts. */
  readonly also?: "snapshot" | undefined;
  /** The batches it was sent with, except those that are known not to be in the log. */
  flights?: readonly Flight[];
}

/** A batch that was sent to the store. */
export interface Flight {
  /** The commands it records, in order. */
  entries: readonly Pending[];
  /** Their answers once it is written; decided again, a command may have another answer. */
  readonly answers: readonly unknown[];
  readonly events: readonly Event[];
  readonly memos: readonly MemoChange[];
  /** The state once it is written. */
  readonly after: Lane;
  /** Wall clock, for the log. */
  readonly at: number;
  /** By a monotonic clock. */
  readonly sentAt: number;
  /** Settles when the store has answered. */
  landing?: Promise<void>;
  /** Set when it is known that it never will be in the log. A batch that has timed out may still be written. */
  isUnwritten?: true;
  /** The store has answered: reading the log shows whether it was written. */
  isAnswered?: true;
  /** Where it stands among those that the store has not answered. */
  place?: number | undefined;
}

const NO_WAITERS: readonly (() => void)[] = [];
const NO_RUNS: readonly RunId[] = [];

export class SessionState {
  readonly id: SessionId;
  /**
   * `loading`: commands wait in `received`. `recovering`: commands are decided, and nothing begins. `gone`: lost to
   * another driver, or unloaded; a new one must be made.
   */
  phase: "loading" | "recovering" | "ready" | "gone" = "loading";
  decided: Lane;
  durable: Lane;
  /** Received while the lane is loading, in order. */
  received: Pending[] = [];
  /** Decided, not yet sent. */
  pending: Pending[] = [];
  /** Decided and sent; possibly timed out, so that it is unknown whether it was written. */
  flight: Flight | undefined = undefined;
  health: Health = WELL;
  /** Prompts that were not acknowledged and may be in the log. Usually none: shared. */
  refused: readonly RunId[] = NO_RUNS;
  /** Cancels the next attempt to write, while the store fails. */
  retry: (() => void) | undefined = undefined;
  /** The epoch of the lease; undefined while another worker has it. */
  epoch: number | undefined = undefined;
  /** The position of the last snapshot. */
  snapshotAt = 0;
  /** The number of the last process that was requested here. */
  processOrdinal = 0;
  /** Number of times in a row that another writer was faster. */
  moves = 0;
  /** When the live run began here, by the wall clock. */
  runSince: number | undefined = undefined;
  /** The last time that work of a run blocked the event loop. */
  blocked: ({ readonly runId: RunId } & BlockedExplained) | undefined = undefined;
  /** The running work of the live run. Few items: an array is smaller than a map, and as fast. */
  works: LiveWork[] = [];
  /** The conversation for a model, if a run has requested it. */
  transcript: LiveTranscript | undefined = undefined;
  /** A turn of this run has ended here, so that no later turn was cut off, and none has calls to replay. */
  needsNoReplay: RunId | undefined = undefined;
  /** Callbacks for when no work is running, and for when nothing is in flight. Usually none: shared. */
  still: readonly (() => void)[] = NO_WAITERS;
  drained: readonly (() => void)[] = NO_WAITERS;

  constructor(id: SessionId) {
    this.id = id;
    this.decided = emptyLane(id);
    this.durable = this.decided;
  }

  get idle(): boolean {
    return (
      this.atRest &&
      this.decided.live === undefined &&
      this.decided.queue.length === 0 &&
      this.decided.processes.live.length === 0
    );
  }

  /** The output of its live turn so far, for a follower that joins during the turn. */
  outputSoFar(): { readonly delta: Delta; readonly at: Seq } | undefined {
    for (const work of this.works) {
      const delta = work.outputSoFar();
      if (delta !== undefined) return { delta, at: this.durable.head };
    }
    return undefined;
  }

  /** It has no command in flight. */
  get atRest(): boolean {
    return (
      this.phase === "ready" &&
      this.health.kind !== "unknown" &&
      this.received.length === 0 &&
      this.pending.length === 0 &&
      this.flight === undefined
    );
  }

  /** Removes and returns the commands that were not sent. */
  takeUnsent(): readonly Pending[] {
    return [...this.pending.splice(0), ...this.received.splice(0)];
  }

  /** Nothing is in flight. */
  releaseWaiters(): void {
    const waiting = this.drained;
    this.drained = NO_WAITERS;
    for (const resolve of waiting) resolve();
  }

  /** Drops memos that were kept at or before `at`. The durable state follows with the next batch. */
  forgetMemos(at: number): void {
    const memos = this.decided.memos.since(at);
    if (memos !== this.decided.memos) this.decided = { ...this.decided, memos };
  }

  cancelRetry(): void {
    this.retry?.();
    this.retry = undefined;
  }

  work(id: Work): LiveWork | undefined {
    return this.works.find((work) => work.id === id);
  }
}
