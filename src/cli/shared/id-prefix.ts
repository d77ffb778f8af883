// Resolves ids as users type them: in full, or any unique prefix.
//
// Invariants
// 1. An exact id means itself, even if other ids begin with it.
// 2. A prefix means an id only if no other id has it, live or ended.

import { ControlError } from "../../core/errors.ts";
import { isCallId, isProcessId, isQuestionId, isRunId, isSessionId, type SessionId } from "../../core/model/ids.ts";
import type { BelayControl } from "../../ports/control.ts";
import { formatOutcome } from "./format/format-outcome.ts";
import { plainLine } from "./format/plain-text.ts";

export type Kind = "session" | "run" | "call" | "process" | "question";

export const KINDS: readonly Kind[] = ["session", "run", "call", "process", "question"];

const PREFIX = { session: "ses_", run: "run_", call: "call_", process: "proc_", question: "ask_" } as const;

/** Without a kind, `7f3` means a session or a run before it means a call, a process or a question. */
const BARE: readonly (readonly Kind[])[] = [
  ["session", "run"],
  ["call", "process", "question"],
];

/** The end of an id that is numbered after its run or session. */
const ORDINAL = /\.\d+$/;

/** At most this many matching ids are shown. */
const SHOWN_MAX = 10;

/** Ids that Belay generates. None is a prefix of another, so a stop needs no search and does not wait for the store. */
const MADE = /^(ses|run|call|proc|ask)_([A-Za-z0-9_-]+\.)?([0-9a-v]{24}|[A-Za-z0-9]{32})(\.w\d+)?(\.\d+)?$/;

/** The id that was typed in full or as a unique prefix. A well-formed id that does not exist is returned as it is. */
export async function resolveId(control: BelayControl, typed: string, kinds = KINDS): Promise<string> {
  const kind = kindOf(typed);
  const isId = kind !== undefined && kinds.includes(kind);
  if (isId && MADE.test(typed)) return typed;
  const found = await find(control, typed, kinds).catch((error: unknown) => {
    // The store cannot be read. A full id still means itself, so that a stop works.
    if (isId && error instanceof ControlError && error.code !== "invalid") return typed;
    throw error;
  });
  if (found !== undefined) return found;
  if (isId) return typed;
  throw new ControlError("not_found", `Nothing is called ${quoted(typed)}: no ${kinds.join(", no ")}.`, {
    hint: "`belay ps` lists what is going on, `belay sessions` and `belay runs` what there is.",
  });
}

/** The session with this id, or the one that contains what has this id. */
export async function resolveSession(control: BelayControl, typed: string): Promise<SessionId> {
  const id = await resolveId(control, typed);
  const session = isSessionId(id) ? id : await control.findSession(id);
  if (session !== undefined) return session;
  throw new ControlError("not_found", `There is no ${kindOf(id) ?? "session"} ${id}.`, {
    hint: "`belay sessions` lists the sessions there are.",
  });
}

/** The kind of a well-formed id. */
export function kindOf(id: string): Kind | undefined {
  if (isSessionId(id)) return "session";
  if (isRunId(id)) return "run";
  if (isCallId(id)) return "call";
  if (isProcessId(id)) return "process";
  return isQuestionId(id) ? "question" : undefined;
}

async function find(control: BelayControl, typed: string, kinds: readonly Kind[]): Promise<string | undefined> {
  for (const prefixes of readings(typed, kinds)) {
    const found = await Promise.all(prefixes.map((prefix) => control.ids(prefix, { limit: SHOWN_MAX })));
    const ids = found.flatMap((one) => one.ids);
    const exact = ids.filter((id) => prefixes.includes(id));
    if (exact.length === 1) return exact[0];
    // Ordinals have no prefixes: `proc_b.1` never means `proc_b.10`, even after `proc_b.1` is gone.
    const fitting = exact.length > 1 || !ORDINAL.test(typed) ? ids : [];
    const more = fitting.length > 0 && found.some((one) => !one.complete);
    if (more || fitting.length > 1) throw await ambiguous(control, typed, fitting, more);
    if (fitting[0] !== undefined) return fitting[0];
  }
  return undefined;
}

/** The possible readings, the likeliest first: each is a list of id prefixes. */
function readings(typed: string, kinds: readonly Kind[]): readonly (readonly string[])[] {
  if (!/^[\w.-]{1,123}$/.test(typed)) return [];
  const begins = (kind: Kind): boolean => typed.startsWith(PREFIX[kind]);
  const asTyped = kinds.some((kind) => begins(kind) || PREFIX[kind].startsWith(typed)) ? [[typed]] : [];
  if (KINDS.some(begins)) return asTyped;
  const bare = BARE.map((group) =>
    group.filter((kind) => kinds.includes(kind)).map((kind) => `${PREFIX[kind]}${typed}`),
  );
  return [...asTyped, ...bare];
}

async function ambiguous(
  control: BelayControl,
  typed: string,
  fitting: readonly string[],
  more: boolean,
): Promise<ControlError> {
  const shown = await Promise.all(fitting.slice(0, SHOWN_MAX).map((id) => described(control, id)));
  const lines = [...shown, ...(more || fitting.length > SHOWN_MAX ? ["and more"] : [])];
  const number = `${more ? "more than " : ""}${fitting.length}`;
  return new ControlError("invalid", `${quoted(typed)} is the prefix of ${number} ids.`, {
    hint: `Type more of the one you mean:${lines.map((line) => `\n    ${line}`).join("")}`,
  });
}

/** An id with the title of its session or the state of its run. */
async function described(control: BelayControl, id: string): Promise<string> {
  const what = await describe(control, id).catch(() => "");
  return `${id}  ${kindOf(id) ?? ""}${what && `, ${plainLine(what, 40)}`}`;
}

async function describe(control: BelayControl, id: string): Promise<string> {
  if (isSessionId(id)) return (await control.session(id).row()).title ?? "";
  if (!isRunId(id)) return "";
  const { phase, outcome } = await (await control.run(id)).row();
  return outcome === undefined ? phase : formatOutcome(outcome);
}

const quoted = (typed: string): string => `"${plainLine(typed, 60)}"`;
