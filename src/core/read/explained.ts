// What `explain()` says of a live run and its calls.
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
  /** What people are asked and have not answered. */
  readonly questions: readonly Question[];
  /** When it began, or was taken up by this worker. Wall clock, ms. */
  readonly since: number | undefined;
  /** The last time its code held up the event loop of the worker, if it did. */
  readonly blocked: BlockedExplained | undefined;
}

/** Code that did not let the event loop turn. */
export interface BlockedExplained {
  /** The name of the tool, or `turn`. */
  readonly work: string;
  readonly ms: number;
  /** When it was over. Wall clock, ms. */
  readonly at: number;
}

export interface CallExplained {
  readonly callId: CallId;
  readonly name: string;
  readonly phase: "running" | "stopping";
  /** What it waits for before it begins; undefined: it has begun, or another worker knows. */
  readonly waits: CallWaitsFor | undefined;
  /** When it was asked for. Wall clock, ms. */
  readonly since: number | undefined;
}

/** What a call waits for before it begins. */
export type CallWaitsFor = "hook" | "approval" | "slot";
