// What can be read about running work: why a session is busy, and how the worker is. Types only.
import type { ControlCode } from "../core/errors.ts";
import type { RunId, Seq, SessionId } from "../core/model/ids.ts";
import type { Resources, RetentionStatus, StoreStatus } from "../core/model/upkeep.ts";
import type { LiveExplained } from "../core/read/explained.ts";
import type { AgentMode } from "./agent.ts";
import type { ProcessInfo, Tier } from "./spawner.ts";

export interface Explanation {
  readonly sessionId: SessionId;
  /** The position in the log this speaks of. */
  readonly asOf: Seq;
  readonly busy: boolean;
  readonly live: LiveExplained | undefined;
  readonly queue: readonly { readonly runId: RunId; readonly text: string }[];
  readonly steers: readonly { readonly runId: RunId; readonly text: string }[];
  /** Running processes: of calls, and in the background. */
  readonly processes: readonly ProcessInfo[];
  /** The mode it is in. Undefined: its agent has none. */
  readonly mode: string | undefined;
  /** The worker that drives it; undefined: no worker does, or another than the one asked. */
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
  /** Why nothing new can be recorded just now; undefined: it can, as far as the store knows. */
  readonly trouble: ControlCode | undefined;
  /** What the store holds, counted a few seconds ago. Undefined: it does not say. */
  readonly store: StoreStatus | undefined;
  /** Undefined: everything is kept. */
  readonly retention: RetentionStatus | undefined;
  readonly resources: Resources;
  /** The ways in which the agent can go about its work; none, if it knows only one. */
  readonly modes: readonly AgentMode[];
  /** Which of them a session is in where nobody has set one. */
  readonly mode: string | undefined;
}

/**
 * How much is going on in a worker: runs that are live, sessions that wait for a place, and processes. `late` counts
 * what ended after it had been given up; `dropped`, results whose session had ended before they could be told.
 */
export interface Load {
  readonly live: number;
  readonly waiting: number;
  readonly max: number;
  readonly late: number;
  readonly processes: number;
  readonly dropped: number;
  /** How surely process trees die here. Undefined until the first process was asked for. */
  readonly tier: Tier | undefined;
}
