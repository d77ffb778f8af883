// What `explain()` returns about a live run and its calls.
import type { CancelReason } from "../model/cancel.ts";
import type { CallId, RunId, TurnId } from "../model/ids.ts";
import type { Question } from "../model/question.ts";

export interface LiveExplained {
  readonly runId: RunId;
  readonly phase: "running" | "ending" | "stopping" | "parked";
  readonly reason: CancelReason | undefined;
  readonly attempt: number;
  readonly turn: TurnId | undefined;
  readonly calls: readonly CallExplained[];
  /** The open questions. */
  readonly questions: readonly Question[];
  /** When it began, or was recovered by this worker. Wall clock, ms. */
  readonly since: number | undefined;
  /** When its code last blocked the worker's event loop; undefined if it did not. */
  readonly blocked: BlockedExplained | undefined;
}

/** Code that blocked the event loop. */
export interface BlockedExplained {
  /** The name of the tool, or `turn`. */
  readonly work: string;
  readonly ms: number;
  /** When the block ended. Wall clock, ms. */
  readonly at: number;
}

export interface CallExplained {
  readonly callId: CallId;
  readonly name: string;
  readonly phase: "running" | "stopping";
  /** What it waits for before it begins; undefined: it has begun, or another worker runs it. */
  readonly waits: CallWaitsFor | undefined;
  /** When it was requested. Wall clock, ms. */
  readonly since: number | undefined;
}

/** What a call waits for before it begins. */
export type CallWaitsFor = "hook" | "approval" | "slot";
