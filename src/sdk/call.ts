// One call: read from the log and from the worker that drives its session, and cancelled.

import { ControlError, toControlError } from "../core/errors.ts";
import { checkKey, checkReason, invalid, optionsOf, rejectUnknown } from "../core/input.ts";
import type { Call } from "../core/model/call.ts";
import type { CancelReceipt } from "../core/model/cancel.ts";
import { type CallId, isCallId, runOf, type Seq, type SessionId } from "../core/model/ids.ts";
import { CallReader, type CallView } from "../core/read/call-view.ts";
import type { Engine } from "../engine/engine.ts";
import { readAll, readCall } from "../engine/log/replay.ts";
import type { AwaitedOutcome, CancelOptions } from "../ports/control.ts";
import { checkWait, WaitLimit, waitForCall } from "./run.ts";

export async function callView(engine: Engine, callId: CallId): Promise<CallView> {
  const row = await engine.store.run(runOf(callId));
  const found = row && (await read(engine, row.session, row.acceptedAt, (event) => event.callId === callId));
  return withWaits(engine, found?.view, callId);
}

/** Cancels one call, and by default waits a short time for its end. */
export async function cancelCall(
  engine: Engine,
  callId: CallId,
  options: CancelOptions,
): Promise<CancelReceipt & AwaitedOutcome> {
  const { reason: why, waitMs, remind = true, key, ...rest } = optionsOf(options, "cancel()");
  rejectUnknown(rest, "cancel()");
  if (typeof remind !== "boolean") throw invalid("`remind` is true or false.");
  const reason = checkReason(why);
  const limit = new WaitLimit(engine.clock, checkWait(waitMs));
  // Read before the stop: for a call that is live here, the log is not read.
  const live = liveTool(engine, callId);
  const once = checkKey(key);
  const receipt = await limit.receipt((onStop) => engine.cancel.call(callId, { reason, remind }, once, onStop));
  const [waited, tool] = await Promise.all([
    waitForCall(engine, callId, receipt, limit),
    live ?? (receipt.kind === "unknown" ? undefined : recordedTool(engine, callId)),
  ]);
  return receipt.kind === "unknown" || tool === undefined ? waited : { ...waited, tool };
}

/** Accepts Belay's id or the model's own. */
export async function cancelSessionCall(
  engine: Engine,
  session: SessionId,
  given: string,
  options: CancelOptions,
): Promise<CancelReceipt & AwaitedOutcome> {
  // Checked first, in memory: a stop of live work must not wait for the store.
  if (isCallId(given) && engine.lanes.sessionOf(runOf(given)) === session) return cancelCall(engine, given, options);
  const named = liveCalls(engine, session).filter(({ providerId }) => providerId === given);
  // Several of that name: the lookup below says which.
  if (named.length === 1 && named[0] !== undefined) {
    const { id: callId } = named[0];
    return { ...(await cancelCall(engine, callId, options)), callId };
  }
  try {
    const { id: callId } = await sessionCall(engine, session, given);
    return { ...(await cancelCall(engine, callId, options)), callId };
  } catch (error) {
    if (toControlError(error).code === "not_found") return { kind: "unknown" };
    throw error;
  }
}

/**
 * A call of one session, by Belay's id or by the model's own. The model's ids may repeat, so only the live run is
 * searched, or else the last one.
 */
export async function sessionCall(engine: Engine, session: SessionId, given: string): Promise<CallView> {
  if (isCallId(given) && (await engine.store.run(runOf(given)))?.session === session) return callView(engine, given);
  const live = (await engine.loaded(session))?.durable.live;
  const [last] = await engine.store.runs(session, { before: Number.MAX_SAFE_INTEGER, limit: 1 });
  const from = live?.acceptedAt ?? last?.acceptedAt;
  if (from === undefined) throw unknownCall(given);
  const found = await read(engine, session, from, (event) => event.provider?.id === given);
  if (found.live.length > 1) {
    const ids = found.live.map(({ id }) => id).join(", ");
    throw new ControlError("invalid", `\`${given.slice(0, 80)}\` names several live calls: ${ids}.`, {
      hint: "Use the id of one of them.",
    });
  }
  return withWaits(engine, found.view, given);
}

const liveCalls = (engine: Engine, session: SessionId): readonly Call[] =>
  engine.lanes.peek(session)?.decided.live?.live ?? [];

function liveTool(engine: Engine, callId: CallId): string | undefined {
  const session = engine.lanes.sessionOf(runOf(callId));
  return session && liveCalls(engine, session).find(({ id }) => id === callId)?.name;
}

/** The tool's name is optional: no stop fails because it cannot be read. */
async function recordedTool(engine: Engine, callId: CallId): Promise<string | undefined> {
  try {
    const row = await engine.store.run(runOf(callId));
    return row && (await readCall(engine.store, row.session, callId, row.acceptedAt))?.name;
  } catch {
    return undefined;
  }
}

type IsMeant = ConstructorParameters<typeof CallReader>[1];

async function read(engine: Engine, session: SessionId, from: Seq, isMeant: IsMeant): Promise<CallReader> {
  const reader = new CallReader(session, isMeant);
  for await (const event of readAll(engine.store, session, from - 1)) reader.note(event);
  return reader;
}

/** Adds what a waiting call waits for, which only the worker knows. */
function withWaits(engine: Engine, view: CallView | undefined, given: string): CallView {
  if (view === undefined) throw unknownCall(given);
  const waits = engine.lanes.peek(view.session)?.work(view.id)?.waits;
  return waits === undefined || view.phase !== "running" ? view : { ...view, phase: "waiting", waits };
}

const unknownCall = (given: string): ControlError =>
  new ControlError("not_found", `There is no call ${given.slice(0, 128)}.`);
