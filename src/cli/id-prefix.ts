// Ids as people type them: whole, or as much of the beginning as is needed to tell one from all others.
import type { BelayControl, Explanation } from "../control.ts";
import { ControlError } from "../core/control-error.ts";
import { isCallId, isProcessId, isQuestionId, isRunId, isSessionId, type SessionId } from "../core/ids.ts";
import type { SessionRow } from "../ports.ts";
import { plainLine } from "./plain-text.ts";

export type Kind = "session" | "run" | "call" | "process" | "question";

/** Something an id may name, and what tells people which one it is. */
export interface Named {
  readonly id: string;
  readonly kind: Kind;
  readonly what: string;
}

export const KINDS: readonly Kind[] = ["session", "run", "call", "process", "question"];

/** Sessions among which a beginning is looked for: a few pages, so that an answer comes soon. */
const SESSIONS_MAX = 20_000;
const SESSIONS_PAGE = 1_000;

/** Of the newest sessions, the newest runs: what people have just seen. */
const RECENT_SESSIONS = 20;
const RECENT_RUNS = 50;

/** Of those that fit, these are shown. */
const SHOWN_MAX = 10;
const WHAT_CHARS_MAX = 40;

/**
 * As Belay makes them, by chance or from a key. Such an id is taken as it is: who wants to stop something should not
 * wait for a search.
 */
const WHOLE = /^(ses|run|call|proc|ask)_([A-Za-z0-9_-]+\.)?([0-9a-v]{24}|[A-Za-z0-9]{32})(\.w\d+)?(\.\d+)?$/;

/**
 * The one id that is meant: looked for among what is going on, then among sessions and their recent runs. What nothing
 * begins with is handed on if it could be an id: whoever is asked knows more than was searched here.
 */
export async function resolveId(control: BelayControl, typed: string, kinds = KINDS): Promise<string> {
  if (WHOLE.test(typed) && kinds.includes(kindOf(typed) ?? "session")) return typed;
  const found = pick(typed, await liveNames(control), kinds) ?? pick(typed, await restNames(control), kinds);
  if (found !== undefined) return found;
  const kind = kindOf(typed);
  if (kind !== undefined && kinds.includes(kind)) return typed;
  throw new ControlError("not_found", `Nothing is called ${quoted(typed)}: no ${kinds.join(", no ")}.`, {
    hint: "`belay ps` lists what is going on, `belay sessions` and `belay runs` what there is.",
  });
}

/** The session that is meant, by its own id or by that of anything in it. */
export async function resolveSession(control: BelayControl, typed: string): Promise<SessionId> {
  const id = await resolveId(control, typed);
  const home = isSessionId(id) ? id : await control.home(id);
  if (home !== undefined) return home;
  throw new ControlError("not_found", `There is no ${kindOf(id) ?? "session"} ${id}.`, {
    hint: "`belay sessions` lists the sessions there are.",
  });
}

/** What a well-formed id names. */
export function kindOf(id: string): Kind | undefined {
  if (isSessionId(id)) return "session";
  if (isRunId(id)) return "run";
  if (isCallId(id)) return "call";
  if (isProcessId(id)) return "process";
  return isQuestionId(id) ? "question" : undefined;
}

/** The only one that fits. Throws if there are several, and names them. */
function pick(typed: string, names: readonly Named[], kinds: readonly Kind[]): string | undefined {
  const wanted = names.filter(({ kind }) => kinds.includes(kind));
  if (wanted.some(({ id }) => id === typed)) return typed;
  const fitting = beginningWith(typed, wanted);
  if (fitting.length > 1) throw ambiguous(typed, fitting);
  return fitting[0]?.id;
}

/** Without its kind, `7f3` means a session or a run rather than what is named after them. */
export function beginningWith(typed: string, names: readonly Named[]): readonly Named[] {
  if (typed === "") return [];
  const exact = names.filter(({ id }) => id.startsWith(typed));
  if (exact.length > 0) return exact;
  const bare = names.filter(({ id }) => id.slice(id.indexOf("_") + 1).startsWith(typed));
  const first = bare.filter(({ kind }) => kind === "session" || kind === "run");
  return first.length > 0 ? first : bare;
}

function ambiguous(typed: string, fitting: readonly Named[]): ControlError {
  const shown = fitting.slice(0, SHOWN_MAX).map(({ id, kind, what }) => `\n    ${id}  ${kind}${what && `, ${what}`}`);
  const more = fitting.length > SHOWN_MAX ? `\n    and ${fitting.length - SHOWN_MAX} more` : "";
  return new ControlError("invalid", `${quoted(typed)} is the beginning of ${fitting.length} ids.`, {
    hint: `Type more of the one you mean:${shown.join("")}${more}`,
  });
}

const quoted = (typed: string): string => `"${plainLine(typed, 60)}"`;

/** Everything that is going on, or waits. */
export async function liveNames(control: BelayControl): Promise<readonly Named[]> {
  return (await control.live()).flatMap(namesIn);
}

function namesIn({ sessionId, live, queue, steers, processes }: Explanation): readonly Named[] {
  const waiting = [...queue, ...steers].map(
    ({ runId, text }) => ({ id: runId, kind: "run", what: brief(text) }) as const,
  );
  return [
    { id: sessionId, kind: "session", what: "" },
    ...(live === undefined ? [] : [{ id: live.runId, kind: "run", what: live.phase } as const]),
    ...(live?.calls ?? []).map(({ callId, name }) => ({ id: callId, kind: "call", what: brief(name) }) as const),
    ...(live?.questions ?? []).map(
      ({ id, about }) =>
        ({ id, kind: "question", what: brief(about.kind === "approval" ? about.name : about.text) }) as const,
    ),
    ...processes.map(({ id, title }) => ({ id, kind: "process", what: brief(title) }) as const),
    ...waiting,
  ];
}

async function restNames(control: BelayControl): Promise<readonly Named[]> {
  const sessions = await allSessions(control);
  const recent = sessions.slice(-RECENT_SESSIONS);
  const runs = await Promise.all(recent.map(({ id }) => control.session(id).runs({ limit: RECENT_RUNS })));
  return [
    ...sessions.map(({ id, title = "" }) => ({ id, kind: "session", what: brief(title) }) as const),
    ...runs.flat().map(({ id, phase, outcome }) => ({ id, kind: "run", what: outcome?.kind ?? phase }) as const),
  ];
}

/** Sessions in order of creation, as many as are looked at. */
export async function allSessions(control: BelayControl): Promise<readonly SessionRow[]> {
  const sessions: SessionRow[] = [];
  for (;;) {
    const after = sessions.at(-1)?.id;
    const page = await control.sessions({ limit: SESSIONS_PAGE, ...(after === undefined ? {} : { after }) });
    sessions.push(...page);
    if (page.length < SESSIONS_PAGE || sessions.length >= SESSIONS_MAX) return sessions;
  }
}

const brief = (text: string): string => plainLine(text, WHAT_CHARS_MAX);
