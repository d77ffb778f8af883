// Converts the end of a turn or call to an outcome for the log, and to a result for the calling code.

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

/** A failure with the message, not the stack; and with the code, if it is one word. */
export const failure = (error: unknown): Outcome => ({ kind: "failed", ...failureOf(error) });

/** A cancelled outcome, with the error that the work threw while stopping. */
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
    // A value that cannot be read.
    return "error";
  }
}
