// Explanations of running work: why a session is busy, and the state of the worker. Types only.
import type { ControlCode } from "../core/errors.ts";
import type { RunId, Seq, SessionId } from "../core/model/ids.ts";
import type { Resources, RetentionStatus, StoreStatus } from "../core/model/upkeep.ts";
import type { LiveExplained } from "../core/read/explained.ts";
import type { AgentMode } from "./agent.ts";
import type { ProcessInfo, Tier } from "./spawner.ts";

export interface Explanation {
  readonly sessionId: SessionId;
  /** The position in the log that this describes. */
  readonly asOf: Seq;
  readonly busy: boolean;
  readonly live: LiveExplained | undefined;
  readonly queue: readonly { readonly runId: RunId; readonly text: string }[];
  readonly steers: readonly { readonly runId: RunId; readonly text: string }[];
  /** Running processes: of calls, and in the background. */
  readonly processes: readonly ProcessInfo[];
  /** Its current mode. Undefined: its agent has none. */
  readonly mode: string | undefined;
  /** The worker that drives it; undefined: none does, or one other than the one that answers. */
  readonly driver: string | undefined;
  /** One sentence for people. */
  readonly summary: string;
}

export interface Status {
  /** `closing`: no new prompts; running work is being stopped or parked. */
  readonly phase: "open" | "closing" | "closed";
  readonly worker: string;
  /** Wall clock, ms. */
  readonly startedAt: number;
  readonly load: Load;
  /** Why nothing new can be recorded now; undefined: it can, as far as the store knows. */
  readonly trouble: ControlCode | undefined;
  /** The size of the store, counted a few seconds ago. Undefined: the store does not report it. */
  readonly store: StoreStatus | undefined;
  /** Undefined: everything is kept. */
  readonly retention: RetentionStatus | undefined;
  readonly resources: Resources;
  /** The modes of the agent; empty if it has none. */
  readonly modes: readonly AgentMode[];
  /** The mode of sessions in which none was set. */
  readonly mode: string | undefined;
}

/**
 * The load of a worker: live runs, sessions that wait for a slot, and processes. `late` counts results of abandoned
 * work; `dropped` counts results of processes whose session had closed.
 */
export interface Load {
  readonly live: number;
  readonly waiting: number;
  readonly max: number;
  readonly late: number;
  readonly processes: number;
  readonly dropped: number;
  /** The containment tier. Undefined until the first process was requested. */
  readonly tier: Tier | undefined;
}
