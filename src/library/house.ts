// What concerns all sessions of a worker at once: what goes on, and stopping all of it.
import type { CancelAllOptions, CoveredSession, Explanation, Within } from "../control.ts";
import { isCallId, isProcessId, isQuestionId, isRunId, runOf, type SessionId, sessionOf } from "../core/ids.ts";
import type { Engine } from "../engine/engine.ts";
import { optionsOf, rejectUnknown } from "../engine/validate.ts";
import { sessionPrefix } from "./names.ts";
import { checkSessionStop, Session } from "./session.ts";

/** An explanation of each session that has anything going on here. */
export async function live(engine: Engine, options: Within): Promise<readonly Explanation[]> {
  const { tenant, ...rest } = optionsOf(options, "live()");
  rejectUnknown(rest, "live()");
  const explained = await Promise.all(
    // It may be the id of a session that does not exist, or cannot be loaded.
    busy(engine, sessionPrefix(tenant)).map((id) => new Session(engine, id).explain().catch(() => undefined)),
  );
  return explained.filter((one) => one !== undefined && (one.busy || one.processes.length > 0)) as Explanation[];
}

/** Everything that was accepted before, in every session, in this very tick. */
export async function cancelAll(engine: Engine, options: CancelAllOptions): Promise<readonly CoveredSession[]> {
  const { tenant, ...stop } = optionsOf(options, "cancelAll()");
  // Also if nothing is going on that could refuse it.
  checkSessionStop(stop, "cancelAll()");
  const covered = await Promise.all(
    busy(engine, sessionPrefix(tenant)).map(async (sessionId) => ({
      sessionId,
      receipt: await new Session(engine, sessionId).cancel(stop),
    })),
  );
  return covered.filter(({ receipt }) => receipt.kind === "stopping" || receipt.kind === "withdrawn");
}

/** The session something belongs to, also while it is still being accepted. */
export async function home(engine: Engine, id: string): Promise<SessionId | undefined> {
  if (isProcessId(id)) return (await engine.store.session(sessionOf(id)))?.id;
  if (!isRunId(id) && !isCallId(id) && !isQuestionId(id)) return undefined;
  const run = isRunId(id) ? id : runOf(id);
  return engine.lanes.home(run) ?? (await engine.store.run(run))?.session;
}

/** Whatever is not known to be idle: also what is still being loaded. */
function busy(engine: Engine, prefix: string): readonly SessionId[] {
  return [...engine.lanes.all()].filter((lane) => !lane.idle && lane.id.startsWith(prefix)).map((lane) => lane.id);
}
