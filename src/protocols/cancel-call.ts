// Stopping one call, in the words hosts of other agents know: which call is meant, and one status for our receipts.

import { ControlError, toControlError } from "../core/errors.ts";
import type { CancelReceipt } from "../core/model/cancel.ts";
import { type CallId, isCallId, type RunId, runOf, type Seq } from "../core/model/ids.ts";
import type { AwaitedOutcome, BelayControl, CancelOptions, SessionControl } from "../ports/control.ts";

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

interface FoundCall {
  readonly callId: CallId;
  readonly name: string | undefined;
}

export async function cancelCall(control: BelayControl, session: SessionControl, stop: CallStop): Promise<StoppedCall> {
  const found = await findCall(control, session, stop.given);
  if (found === undefined) {
    return { status: "not_found", callId: stop.given, tool: null, receipt: { kind: "unknown" } };
  }
  const { callId } = found;
  const { reason, remind, waitMs } = stop;
  const stopping = control.cancel(callId, { remind, waitMs, ...(reason === undefined ? {} : { reason }) });
  // After the cancel, so that it does not wait for a name.
  const [receipt, name] = await Promise.all([stopping, found.name ?? nameOf(control, session, callId)]);
  if ("runs" in receipt) throw new ControlError("invalid", `${callId} is a session.`);
  return { status: statusOf(receipt, waitMs), callId, tool: name ?? null, receipt };
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

/** A call of another session is none, whatever its id. */
async function findCall(control: BelayControl, session: SessionControl, given: string): Promise<FoundCall | undefined> {
  // Asked for first and alone: it needs no store for what is live, and a stop must not wait for one.
  if (isCallId(given) && (await control.findSession(given)) === session.id) return { callId: given, name: undefined };
  return findByProvider(control, session, given);
}

/** Ids of providers are not ours: they may repeat, and look like ours. What is live is meant before what has ended. */
async function findByProvider(
  control: BelayControl,
  session: SessionControl,
  given: string,
): Promise<FoundCall | undefined> {
  const seen = await lookAround(session);
  if (seen === undefined) return undefined;
  const calls = (await callsOf(control, session, seen)).filter((one) => one.providerId === given);
  const live = calls.filter((one) => !one.settled);
  if (live.length > 1) {
    const names = live.map((one) => one.callId).join(", ");
    throw new ControlError("invalid", `\`${given.slice(0, 80)}\` names several live calls: ${names}.`, {
      hint: "Use the id of one of them.",
    });
  }
  return live[0] ?? calls.at(-1);
}

interface RunPosition {
  readonly runId: RunId;
  readonly asOf: Seq;
}

/** The live run, or else the newest, and how far the log reaches. Undefined: no such session, or nothing in it. */
async function lookAround(session: SessionControl): Promise<RunPosition | undefined> {
  try {
    const { live, asOf } = await session.explain();
    const runId = live?.runId ?? (await session.runs({ limit: 1 }))[0]?.id;
    return runId === undefined ? undefined : { runId, asOf };
  } catch (error) {
    if (toControlError(error).code === "not_found") return undefined;
    throw error;
  }
}

interface SeenCall {
  readonly callId: CallId;
  readonly name: string;
  readonly providerId: string | undefined;
  settled: boolean;
}

/** The calls of one run, in the order in which they were asked for, as its log tells them. */
async function callsOf(
  control: BelayControl,
  session: SessionControl,
  around: RunPosition,
): Promise<readonly SeenCall[]> {
  const { seq } = await (await control.run(around.runId)).accepted;
  const calls = new Map<CallId, SeenCall>();
  if (seq > around.asOf) return [];
  for await (const event of session.events({ after: seq - 1 })) {
    if (event.type === "call.requested" && event.runId === around.runId) {
      const { callId, name, provider } = event;
      calls.set(callId, { callId, name, providerId: provider?.id, settled: false });
    }
    if (event.type === "call.settled") {
      const call = calls.get(event.callId);
      if (call !== undefined) call.settled = true;
    }
    const at = "seq" in event ? event.seq : event.type === "gap" ? event.to : 0;
    if (at >= around.asOf) break;
  }
  return [...calls.values()];
}

/** What the tool is called. A name is a courtesy: if it cannot be found out, the stop counts all the same. */
async function nameOf(control: BelayControl, session: SessionControl, callId: CallId): Promise<string | undefined> {
  try {
    const { live, asOf } = await session.explain();
    const going = live?.calls.find((one) => one.callId === callId)?.name;
    if (going !== undefined) return going;
    const calls = await callsOf(control, session, { runId: runOf(callId), asOf });
    return calls.find((one) => one.callId === callId)?.name;
  } catch {
    return undefined;
  }
}
