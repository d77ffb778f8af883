// The stop of a call by its agent.
import { checkReason, invalid, optionsOf, rejectUnknown } from "../../core/input.ts";
import { type CancelReason, cutReason } from "../../core/model/cancel.ts";
import { type CallId, isCallId } from "../../core/model/ids.ts";
import type { CallCancelOptions } from "../../ports/agent.ts";

export interface CallStop {
  readonly type: "cancel-call";
  readonly callId: CallId;
  readonly reason: CancelReason;
  readonly remind: boolean;
}

/** The reason of a stop for which an agent gives only a note. */
export const byRule = (note: string): CancelReason => ({ kind: "policy", note: String(cutReason(note)) });

export function checkCallStop(id: string, given: CallCancelOptions = {}): CallStop {
  if (typeof id !== "string" || !isCallId(id)) throw invalid('A call id begins with "call_".');
  const { reason = "the agent", remind = true, ...rest } = optionsOf(given, "cancel() of a turn");
  rejectUnknown(rest, "cancel() of a turn");
  if (typeof remind !== "boolean") throw invalid("`remind` is true or false.");
  const why = typeof reason === "string" ? byRule(reason) : checkReason(reason);
  return { type: "cancel-call", callId: id, reason: why, remind };
}
