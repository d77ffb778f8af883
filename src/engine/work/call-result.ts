// How a turn or call ended, as an outcome for the log and as a result for the code that made the call.

import { messageOf } from "../../core/errors.ts";
import { NOTE_CHARS_MAX } from "../../core/limits.ts";
import type { Failure, Outcome } from "../../core/model/cancel.ts";
import type { CallEnd } from "../../core/policy/decide-run.ts";
import type { CallResult } from "../../ports/agent.ts";
import type { Ended } from "./scope.ts";

export function toResult({ callId, outcome, result, begun }: CallEnd): CallResult {
  switch (outcome.kind) {
    case "completed":
      return { kind: "completed", callId, value: result };
    case "failed":
      return { kind: "failed", callId, message: outcome.message };
    case "cancelled":
      return {
        kind: "cancelled",
        callId,
        reason: outcome.reason,
        partial: result,
        abandoned: outcome.abandoned !== undefined,
        ...(outcome.error === undefined ? {} : { error: outcome.error }),
        ...(begun === false ? { begun } : {}),
      };
    case "lost":
      return { kind: "lost", callId };
  }
}

/** What a person or a model can use: the message, not the stack; and the code, if it has one that is a word. */
export const failure = (error: unknown): Outcome => ({ kind: "failed", ...failureOf(error) });

/** Stopped, with what went wrong on the way. */
export const stoppedLike = ({ reason, error }: Extract<Ended<unknown>, { kind: "cancelled" }>): Outcome =>
  error === undefined ? { kind: "cancelled", reason } : { kind: "cancelled", reason, error: failureOf(error) };

const failureOf = (error: unknown): Failure => ({
  code: codeOf(error),
  message: messageOf(error).slice(0, NOTE_CHARS_MAX).toWellFormed(),
});

function codeOf(error: unknown): string {
  try {
    const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
    return typeof code === "string" && /^[a-z][a-z_]{0,63}$/.test(code) ? code : "error";
  } catch {
    // Something that cannot be looked at.
    return "error";
  }
}
