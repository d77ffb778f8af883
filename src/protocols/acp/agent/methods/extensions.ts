// Extension methods, the same in both versions: cancel one call, cancel one run, steer, and explain why a session is
// busy.

import type { CancelReceipt } from "../../../../core/model/cancel.ts";
import type { AwaitedOutcome } from "../../../../ports/control.ts";
import type { Explanation } from "../../../../ports/explanation.ts";
import type { AcpSessions } from "../acp-sessions.ts";
import { CALL_WAIT_MS } from "../limits.ts";
import type { OwnPrompt } from "../own-prompt.ts";
import { promptOf } from "../prompt-content.ts";
import { endUnknown, invalidParams, rpcError } from "../rpc-error.ts";
import type { CallStopParams, RunStopParams, SteerParams } from "./extension-params.ts";

export const CANCEL_CALL = "_belay/tool_call/cancel";
export const CANCEL_RUN = "_belay/run/cancel";
export const EXPLAIN = "_belay/session/explain";
export const STEER = "_session/steering";
/** Known from other agents. Its name is in a foreign namespace, so it is answered but not advertised. */
export const CANCEL_CALL_ALIAS = "session/cancel_tool_call";

/** The methods listed in `_meta.belay` of the capabilities. */
export const EXTENSIONS = [CANCEL_CALL, CANCEL_RUN, EXPLAIN, STEER] as const;

/** Answers when the stop is recorded. The call's last update reports its end. */
export async function stopCall(
  context: AcpSessions,
  { sessionId, toolCallId, reason, remind }: CallStopParams,
): Promise<Record<string, never>> {
  refuseUnstoppable(context, sessionId, toolCallId);
  const stopped = await withRpcErrors(context.cancelCall({ sessionId, call: toolCallId, reason, remind, waitMs: 0 }));
  switch (stopped.receipt.kind) {
    case "withdrawn":
    case "stopping":
      return {};
    case "settled":
      throw invalidParams(`The call ${toolCallId.slice(0, 128)} has ended already.`, "Its last update says how.");
    case "unknown":
      throw invalidParams(`There is no call ${toolCallId.slice(0, 128)} in this session.`);
  }
}

function refuseUnstoppable(calls: Pick<AcpSessions, "isUnstoppable">, sessionId: string, toolCallId: string): void {
  if (!calls.isUnstoppable(sessionId, toolCallId)) return;
  throw invalidParams("This call cannot be stopped by itself.", "Cancel its run.");
}

export interface CallStopped {
  readonly status: string;
  readonly callId: string;
  readonly call_id: string;
  readonly tool: string | null;
  /** The recorded reason, which is that of the first stop. Null: it has none, or it is unknown here. */
  readonly reason: string | null;
  readonly receipt: CancelReceipt & AwaitedOutcome;
}

/** The alias method, with its own statuses; waits a little for the end. */
export async function stopCallAlias(context: AcpSessions, params: CallStopParams): Promise<CallStopped> {
  const { sessionId, toolCallId, reason, remind, waitMs = CALL_WAIT_MS } = params;
  refuseUnstoppable(context, sessionId, toolCallId);
  const { status, callId, tool, receipt } = await withRpcErrors(
    context.cancelCall({ sessionId, call: toolCallId, reason, remind, waitMs }),
  );
  return { status, callId, call_id: callId, tool, reason: keptReason(receipt, reason), receipt };
}

function keptReason(receipt: CancelReceipt & AwaitedOutcome, given: string | undefined): string | null {
  const ended = receipt.kind === "settled" ? receipt : receipt.ended;
  const outcome = ended?.kind === "settled" ? ended.outcome : undefined;
  if (outcome?.kind === "cancelled") return "note" in outcome.reason ? (outcome.reason.note ?? null) : null;
  return receipt.kind === "withdrawn" || (receipt.kind === "stopping" && receipt.first) ? (given ?? null) : null;
}

export const stopRun = (context: AcpSessions, { runId, reason }: RunStopParams): Promise<CancelReceipt> =>
  withRpcErrors(context.cancelRun(runId, reason));

export interface Steered {
  readonly outcome: "injected" | "startedNewTurn";
  readonly runId: string;
}

/** Delivers the text to the live run at its next turn, or starts a run if there is none. */
export const steer = (context: AcpSessions, params: SteerParams): Promise<Steered> =>
  withRpcErrors(steered(context, params));

async function steered(context: AcpSessions, { sessionId, prompt }: SteerParams): Promise<Steered> {
  const { joined, runId } = await context.prompt(sessionId, promptOf(prompt), "steer").run.accepted;
  return { outcome: joined === "steer" ? "injected" : "startedNewTurn", runId };
}

export const explain = (context: AcpSessions, sessionId: string): Promise<Explanation> =>
  withRpcErrors(context.explain(sessionId));

/** Converts an error of a prompt. For an accepted prompt the error says that its end is reported elsewhere. */
export async function awaitPrompt<T>(own: OwnPrompt, what: Promise<T>): Promise<T> {
  try {
    return await what;
  } catch (error) {
    throw endUnknown(error, own.runId);
  }
}

/** Converts any error to an error of the protocol. */
export async function withRpcErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw rpcError(error);
  }
}
