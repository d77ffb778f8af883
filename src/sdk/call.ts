// One call: looked up in the log, with what the worker that drives its session knows of it, and stopped.

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
  return known(engine, found?.view, callId);
}

/** Stops one call, and by default waits a little for its end. */
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
  // Read before the stop: of a call that is live here, no log is read for it.
  const live = liveTool(engine, callId);
  const once = checkKey(key);
  const receipt = await limit.receipt((onStop) => engine.cancel.call(callId, { reason, remind }, once, onStop));
  const [waited, tool] = await Promise.all([
    waitForCall(engine, callId, receipt, limit),
    live ?? (receipt.kind === "unknown" ? undefined : recordedTool(engine, callId)),
  ]);
  return receipt.kind === "unknown" || tool === undefined ? waited : { ...waited, tool };
}

/** By our id or by that of the model. */
export async function cancelSessionCall(
  engine: Engine,
  session: SessionId,
  given: string,
  options: CancelOptions,
): Promise<CancelReceipt & AwaitedOutcome> {
  // Looked up first and alone: it needs no store for what is live, and a stop must not wait for one.
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

/** A call of one session, by our id or by that of the model, which may repeat: in its live run, or in its last one. */
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
  return known(engine, found.view, given);
}

const liveCalls = (engine: Engine, session: SessionId): readonly Call[] =>
  engine.lanes.peek(session)?.decided.live?.live ?? [];

function liveTool(engine: Engine, callId: CallId): string | undefined {
  const session = engine.lanes.sessionOf(runOf(callId));
  return session && liveCalls(engine, session).find(({ id }) => id === callId)?.name;
}

/** The name of the tool is a courtesy: no stop fails because it cannot be read. */
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

/** What it waits for before it begins is known to the worker alone. */
function known(engine: Engine, view: CallView | undefined, given: string): CallView {
  if (view === undefined) throw unknownCall(given);
  const waits = engine.lanes.peek(view.session)?.work(view.id)?.waits;
  return waits === undefined || view.phase !== "running" ? view : { ...view, phase: "waiting", waits };
}

const unknownCall = (given: string): ControlError =>
  new ControlError("not_found", `There is no call ${given.slice(0, 128)}.`);
