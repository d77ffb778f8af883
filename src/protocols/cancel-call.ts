// Cancels one call, by Belay's id or the provider's, and maps the receipt to the statuses that hosts of other agents
// know.

import type { CancelReceipt } from "../core/model/cancel.ts";
import type { AwaitedOutcome, CancelOptions, SessionControl } from "../ports/control.ts";

export type CallStatus = "cancelled" | "already_cancelled" | "not_found" | "timeout";

export interface CallStop {
  /** Belay's id of the call, or the model provider's id. */
  readonly given: string;
  readonly reason: CancelOptions["reason"] | undefined;
  readonly remind: boolean;
  /** 0: does not wait for the end. */
  readonly waitMs: number;
}

export interface StoppedCall {
  readonly status: CallStatus;
  readonly callId: string;
  readonly tool: string | null;
  readonly receipt: CancelReceipt & AwaitedOutcome;
}

export async function cancelCall(
  session: SessionControl,
  { given, reason, ...options }: CallStop,
): Promise<StoppedCall> {
  const cancelOptions = { ...options, ...(reason === undefined ? {} : { reason }) };
  const receipt = await session.cancelCall(given, cancelOptions);
  const { callId = given, tool = null } = receipt;
  return { status: statusOf(receipt, options.waitMs), callId, tool, receipt };
}

/**
 * Maps a receipt to a closed set of statuses. The status describes the stop, not the call; the receipt next to it
 * describes both.
 *
 * `not_found` is also the status of a call that had finished, or finished while it was being stopped: nothing in
 * flight could be stopped, and its result stands. `cancelled` would claim that the model never sees this result, and
 * `timeout` that the call may still be running; both would be wrong.
 */
export function statusOf(receipt: CancelReceipt & AwaitedOutcome, waitMs: number): CallStatus {
  switch (receipt.kind) {
    case "unknown":
      return "not_found";
    case "withdrawn":
      return "cancelled";
    case "settled":
      return receipt.outcome.kind === "cancelled" ? "already_cancelled" : "not_found";
    case "stopping":
      if (!receipt.first) return "already_cancelled";
      // A caller that does not wait gets the status as soon as the stop is recorded.
      if (waitMs === 0 || receipt.ended === undefined) return "cancelled";
      if (receipt.ended.kind === "limit") return "timeout";
      if (receipt.ended.outcome.kind !== "cancelled") return "not_found";
      // Abandoned calls may still be running.
      return receipt.ended.outcome.abandoned === undefined ? "cancelled" : "timeout";
  }
}
