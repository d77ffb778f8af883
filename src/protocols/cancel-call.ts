// Stopping one call, in the words hosts of other agents know: which call is meant, and one status for our receipts.

import type { CancelReceipt } from "../core/model/cancel.ts";
import type { AwaitedOutcome, CancelOptions, SessionControl } from "../ports/control.ts";

export type CallStatus = "cancelled" | "already_cancelled" | "not_found" | "timeout";

export interface CallStop {
  /** Our id of the call, or that of the model's provider. */
  readonly given: string;
  readonly reason: CancelOptions["reason"] | undefined;
  readonly remind: boolean;
  /** 0: the answer does not wait for the end. */
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
  const asked = { ...options, ...(reason === undefined ? {} : { reason }) };
  const receipt = await session.cancelCall(given, asked);
  const { callId = given, tool = null } = receipt;
  return { status: statusOf(receipt, options.waitMs), callId, tool, receipt };
}

/**
 * The set is closed, and says what became of the stop and not what became of the call; the receipt beside it says both.
 *
 * `not_found` is also the status of a call that had finished, or finished while it was being stopped: there was nothing
 * in flight any more that could be stopped, and its result stands. `cancelled` would tell the host that the model never
 * sees that result, and `timeout` that the call may still be going on; both would be untrue.
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
      // Whoever does not want to wait is told that the stop is recorded.
      if (waitMs === 0 || receipt.ended === undefined) return "cancelled";
      if (receipt.ended.kind === "limit") return "timeout";
      if (receipt.ended.outcome.kind !== "cancelled") return "not_found";
      // It was abandoned, and may still run.
      return receipt.ended.outcome.abandoned === undefined ? "cancelled" : "timeout";
  }
}
