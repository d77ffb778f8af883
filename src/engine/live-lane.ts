// A lane in memory: what is decided, what of it is durable, and what is on its way.
//
// Invariants
// 1. `decided` = `durable` + the events of `flying` + those of `pending`, in this order.
// 2. At most one batch of a lane is on its way to the store.
// 3. Commands are decided in the order in which they were received; a command that must wait holds up those behind it.
import type { Answer, Command } from "../core/command.ts";
import type { Delta } from "../core/delta.ts";
import type { Event, Recorded } from "../core/event.ts";
import type { RunId, Seq, SessionId, Work } from "../core/ids.ts";
import { emptyLane, type Lane } from "../core/lane.ts";
import type { LiveTranscript } from "./live-transcript.ts";
import { LiveTurn } from "./live-turn.ts";
import type { LiveWork } from "./live-work.ts";

/** A command somebody waits for. */
export interface Entry<C extends Command = Command> {
  command: C;
  /** Completes the command with what only the store knows, before it can be decided. */
  readonly prepare: ((command: C) => Promise<C>) | undefined;
  resolve: (answer: Answer<C>) => void;
  reject: (error: unknown) => void;
  events: readonly Event[];
  answer: Answer<C> | undefined;
}

const NOBODY: readonly (() => void)[] = [];

interface Unsure {
  readonly entries: readonly Entry[];
  readonly events: readonly Event[];
  read: readonly Recorded[];
}

export class LiveLane {
  readonly id: SessionId;
  /** `loading`: commands wait in the mailbox. `gone`: lost to another driver, or let go; a new one must be made. */
  phase: "loading" | "ready" | "gone" = "loading";
  decided: Lane;
  durable: Lane;
  /** Received, not yet decided. */
  mailbox: Entry[] = [];
  /** Decided, not yet sent. */
  pending: Entry[] = [];
  /** Decided, and on their way to the store as one batch. */
  flying: Entry[] = [];
  /** Settles when the store has answered to `flying`. */
  landing: Promise<void> | undefined = undefined;
  /** What `decided` was when `flying` was sent: what `durable` will be. */
  sent: Lane | undefined = undefined;
  /** The right to write as the driver; undefined while another worker has it. */
  epoch: number | undefined = undefined;
  /** Where the last snapshot stands. */
  snapshotAt = 0;
  /** Counts up while other writers are faster, or the store is in trouble. */
  attempts = 0;
  pumping = false;
  /** Nobody knows whether the last batch was written. Nothing is decided until the log has been read. */
  doubt = false;
  /** The batch that nobody knows about, and what was read since. */
  unsure: Unsure | undefined = undefined;
  /** Its place among the live runs of this worker; `starting`: taken, and the start is being decided. */
  slot: "free" | "starting" | "held" = "free";
  takeBackRetry: (() => void) | undefined = undefined;
  /** What is going on in the world for the live run. Few: an array is smaller than a map, and as fast. */
  works: LiveWork[] = [];
  /** What a model is given of the log, if a run has asked for it. */
  transcript: LiveTranscript | undefined = undefined;
  /** A turn of this run has ended here, so that none after it was cut off: they have nothing to repeat. */
  whole: RunId | undefined = undefined;
  /** Who waits until nothing is going on in the world, and until nothing is on its way. Mostly nobody: shared. */
  still: readonly (() => void)[] = NOBODY;
  quiet: readonly (() => void)[] = NOBODY;

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

  /** What its live turn has said so far, for whoever begins to listen in the middle of it. */
  said(): { readonly delta: Delta; readonly at: Seq } | undefined {
    for (const { owner, phase } of this.works) {
      if (owner instanceof LiveTurn && owner.text !== "" && (phase === "live" || phase === "stopping")) {
        // @fault joined-in-the-middle
        const delta = { type: "delta", runId: owner.run.id, turnId: owner.turnId, text: owner.text, from: 0 } as const;
        return { delta, at: this.durable.head };
      }
    }
    return undefined;
  }

  /** Nothing that was asked of it is on its way. */
  get atRest(): boolean {
    return (
      this.phase === "ready" &&
      !this.doubt &&
      this.mailbox.length === 0 &&
      this.pending.length === 0 &&
      this.flying.length === 0
    );
  }

  work(id: Work): LiveWork | undefined {
    return this.works.find((work) => work.id === id);
  }
}
