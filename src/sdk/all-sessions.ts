// Operations on all sessions of a worker at once: list running work, and stop all of it.

import { canonical } from "../core/canonical.ts";
import { checkKey, checkKeys, checkLimit, invalid, optionsOf, rejectUnknown } from "../core/input.ts";
import {
  ID_CHARS_MAX,
  isCallId,
  isProcessId,
  isQuestionId,
  isRunId,
  isSessionId,
  runOf,
  type SessionId,
  sessionOf,
} from "../core/model/ids.ts";
import type { IdsFound, SessionsAsked } from "../core/model/rows.ts";
import type { Engine } from "../engine/engine.ts";
import type { CancelAllOptions, CoveredSession, IdsOptions, SessionsPage, TenantScope } from "../ports/control.ts";
import type { Explanation } from "../ports/explanation.ts";
import type { BulkStops } from "./bulk-stops.ts";
import { checkSessionStop, Session } from "./session.ts";
import { checkTenant, promptSessionId, sessionPrefix } from "./session-names.ts";

/** An explanation of each session with running work on this worker. */
export async function live(engine: Engine, options: TenantScope): Promise<readonly Explanation[]> {
  const { tenant, ...rest } = optionsOf(options, "live()");
  rejectUnknown(rest, "live()");
  const explained = await Promise.all(
    // The session may not exist, or may fail to load.
    busy(engine, sessionPrefix(tenant)).map((id) => new Session(engine, id).explain().catch(() => undefined)),
  );
  return explained.filter((one) => one !== undefined && (one.busy || one.processes.length > 0)) as Explanation[];
}

/** Stops everything that was accepted before, in every session, in the same tick. */
export async function cancelAll(
  engine: Engine,
  stopAlls: BulkStops,
  options: CancelAllOptions,
): Promise<readonly CoveredSession[]> {
  const { tenant, keyOf, prompts = [], key, ...stop } = optionsOf(options, "cancelAll()");
  // Checked even if there is no running work that could refuse it.
  if ("only" in stop) rejectUnknown({ only: stop.only }, "cancelAll()");
  const { stop: checked } = checkSessionStop(stop, "cancelAll()");
  checkKeys(prompts.map((one) => one.key));
  const { actor, ...request } = checked;
  const sender = [tenant, actor];
  const content = engine.digest(canonical(request));
  return stopAlls.once({ key: checkKey(key), sender, content }, async () => {
    const named = namedPrompts(engine, prompts, { tenant, keyOf });
    const sessions = new Set([...busy(engine, sessionPrefix(tenant)), ...named.keys()]);
    // If this worker dies meanwhile, sessions that have recorded their part do not repeat it.
    const once = key === undefined ? {} : { key: engine.digest(JSON.stringify(["stop-all", ...sender, key])) };
    const covered = await Promise.all(
      Array.from(sessions, async (sessionId) => ({
        sessionId,
        receipt: await new Session(engine, sessionId).cancel({
          ...{ ...stop, ...once, prompts: named.get(sessionId) ?? [] },
        }),
      })),
    );
    return covered.filter(({ receipt }) => receipt.kind === "stopping" || receipt.kind === "withdrawn");
  });
}

/** The keys of prompts that may not have arrived, by session. A sender cannot name prompts of another tenant. */
function namedPrompts(
  engine: Engine,
  prompts: NonNullable<CancelAllOptions["prompts"]>,
  { tenant, keyOf }: { readonly tenant: string | undefined; readonly keyOf: string | undefined },
): ReadonlyMap<SessionId, readonly string[]> {
  const named = new Map<SessionId, string[]>();
  for (const { sessionId, key } of prompts) {
    const session = sessionId ?? promptSessionId(engine, { key, keyOf, tenant }) ?? "";
    if (!isSessionId(session) || !session.startsWith(sessionPrefix(tenant))) continue;
    const keys = named.get(session);
    if (keys === undefined) named.set(session, [key]);
    else keys.push(key);
  }
  return named;
}

/** Validates a request for a page of sessions. */
export function checkSessionsPage(page: SessionsPage): SessionsAsked {
  const { order = "oldest", after, before, limit, tenant, ...rest } = optionsOf(page, "sessions()");
  rejectUnknown(rest, "sessions()");
  if (order !== "oldest" && order !== "newest") throw invalid('`order` must be "oldest" or "newest".');
  const [name, cursor, other] = order === "newest" ? ["before", before, after] : ["after", after, before];
  if (other !== undefined) throw invalid(`With \`order: "${order}"\` use \`${name}\` for the next page.`);
  if (cursor !== undefined && !isSessionId(cursor)) throw invalid(`\`${name}\` must be the id of a session.`);
  const rows = { limit: checkLimit(limit), ...(tenant === undefined ? {} : { tenant: checkTenant(tenant) }) };
  return order === "newest" ? { order, before: cursor, ...rows } : { after: cursor, ...rows };
}

/** Searches the store, and the calls and questions that are live and not in the store's index. */
export async function findIds(engine: Engine, prefix: string, options: IdsOptions): Promise<IdsFound> {
  const { limit: limitGiven, tenant, ...rest } = optionsOf(options, "ids()");
  rejectUnknown(rest, "ids()");
  if (typeof prefix !== "string" || prefix.length > ID_CHARS_MAX) {
    throw invalid(`A prefix must be a string of at most ${ID_CHARS_MAX} characters.`);
  }
  const limit = checkLimit(limitGiven);
  const scope = tenant === undefined ? {} : { tenant: checkTenant(tenant) };
  const stored = await engine.store.ids({ prefix, limit, ...scope });
  const open = mayBeOpen(prefix) ? (await live(engine, scope)).flatMap(openIds) : [];
  const ids = [...new Set([...stored.ids, ...open.filter((id) => id.startsWith(prefix))])].sort();
  return { ids: ids.slice(0, limit), complete: stored.complete && ids.length <= limit };
}

/** The calls and questions of a live run. */
const openIds = ({ live }: Explanation): readonly string[] =>
  live === undefined ? [] : [...live.calls.map(({ callId }) => callId), ...live.questions.map(({ id }) => id)];

/** Only ids of calls and questions can be missing from the store. */
const mayBeOpen = (prefix: string): boolean =>
  ["call_", "ask_"].some((kind) => kind.startsWith(prefix) || prefix.startsWith(kind));

/** The session of a run, call, question or process, including a run that is still being accepted. */
export async function findSession(engine: Engine, id: string): Promise<SessionId | undefined> {
  if (isProcessId(id)) return (await engine.store.session(sessionOf(id)))?.id;
  if (!isRunId(id) && !isCallId(id) && !isQuestionId(id)) return undefined;
  const run = isRunId(id) ? id : runOf(id);
  return engine.lanes.sessionOf(run) ?? (await engine.store.run(run))?.session;
}

/** Every session that is not known to be idle, including those still loading. */
function busy(engine: Engine, prefix: string): readonly SessionId[] {
  return [...engine.lanes.all()].filter((lane) => !lane.idle && lane.id.startsWith(prefix)).map((lane) => lane.id);
}
