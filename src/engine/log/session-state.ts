// A lane in memory: what is decided, what of it is durable, and what is on its way.
//
// Invariants
// 1. `decided` = `durable` + the events of `flight` + those of `pending`, in this order.
// 2. At most one batch of a lane is on its way to the store.
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
  /** Set when the caller of a stop was answered that it is carried out and not recorded yet. */
  isReported?: true;
  /** Given with a barrier: its batch also records the state, as what the next load starts from. */
  readonly also?: "snapshot" | undefined;
  /** The batches it was sent with, but for those that are known not to be in the log. */
  flights?: readonly Flight[];
}

/** A batch on its way to the store. */
export interface Flight {
  /** The commands it records, in order. */
  entries: readonly Pending[];
  /** What these are answered once it is written; decided again, a command may have another answer. */
  readonly answers: readonly unknown[];
  readonly events: readonly Event[];
  readonly memos: readonly MemoChange[];
  /** The state once it is written. */
  readonly after: Lane;
  /** Wall clock, for the log. */
  readonly at: number;
  /** On the clock that never jumps. */
  readonly sentAt: number;
  /** Settles when the store has answered. */
  landing?: Promise<void>;
  /** Set when it is known that it is not in the log, and never will be. Even one that was given up on may land. */
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
   * another driver, or let go; a new one must be made.
   */
  phase: "loading" | "recovering" | "ready" | "gone" = "loading";
  decided: Lane;
  durable: Lane;
  /** Received while the lane is loading, in order. */
  received: Pending[] = [];
  /** Decided, not yet sent. */
  pending: Pending[] = [];
  /** Decided, and on its way to the store; or sent, and it is not known what became of it. */
  flight: Flight | undefined = undefined;
  health: Health = WELL;
  /** Prompts that were not acknowledged and may be in the log. Mostly none: shared. */
  refused: readonly RunId[] = NO_RUNS;
  /** Cancels the next attempt to write, while the store is in trouble. */
  retry: (() => void) | undefined = undefined;
  /** The right to write as the driver; undefined while another worker has it. */
  epoch: number | undefined = undefined;
  /** Where the last snapshot stands. */
  snapshotAt = 0;
  /** The number of the last process that was asked for here. */
  processOrdinal = 0;
  /** How often in a row another writer was faster. */
  moves = 0;
  /** When the live run began here, by the wall clock. */
  runSince: number | undefined = undefined;
  /** The last time that work of a run held up the event loop. */
  blocked: ({ readonly runId: RunId } & BlockedExplained) | undefined = undefined;
  /** What is going on in the world for the live run. Few: an array is smaller than a map, and as fast. */
  works: LiveWork[] = [];
  /** What a model is given of the log, if a run has asked for it. */
  transcript: LiveTranscript | undefined = undefined;
  /** A turn of this run has ended here, so that none after it was cut off: they have nothing to repeat. */
  whole: RunId | undefined = undefined;
  /** Callbacks for when no work is running, and for when nothing is on its way. Mostly none: shared. */
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

  /** What its live turn has said so far, for a follower that joins in the middle of it. */
  said(): { readonly delta: Delta; readonly at: Seq } | undefined {
    for (const work of this.works) {
      const delta = work.said();
      if (delta !== undefined) return { delta, at: this.durable.head };
    }
    return undefined;
  }

  /** Nothing that was asked of it is on its way. */
  get atRest(): boolean {
    return (
      this.phase === "ready" &&
      this.health.kind !== "unknown" &&
      this.received.length === 0 &&
      this.pending.length === 0 &&
      this.flight === undefined
    );
  }

  /** Takes out the commands that were not sent. */
  takeUnsent(): readonly Pending[] {
    return [...this.pending.splice(0), ...this.received.splice(0)];
  }

  /** Nothing is on its way to the store. */
  releaseWaiters(): void {
    const waiting = this.drained;
    this.drained = NO_WAITERS;
    for (const resolve of waiting) resolve();
  }

  /** Memos that were kept at `at` or before it count no longer. The durable state follows with the next batch. */
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
