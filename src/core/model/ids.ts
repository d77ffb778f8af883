// Ids. The prefix is the brand: a RunId is not assignable to a CallId, and an id in a log line shows its kind.
//
// Turn and call ids are derived from the id of their run and an ordinal. So the core can name new work without making
// ids, and an id in a log leads to its run.

export type SessionId = `ses_${string}`;
export type RunId = `run_${string}`;
export type TurnId = `turn_${string}`;
export type CallId = `call_${string}`;
/** A question is named after its run: `ask_<run>.<n>`. */
export type QuestionId = `ask_${string}`;
/** A process is named after its session, because it may outlive the run that started it: `proc_<session>.<n>`. */
export type ProcessId = `proc_${string}`;
export type WorkerId = `wrk_${string}`;

/** A position in the log of a session. The first event is 1; 0 is before all events. */
export type Seq = number;

/** A turn or call that a run owns. */
export type Work = TurnId | CallId;

export const turnId = (run: RunId, ordinal: number): TurnId => `turn_${run.slice(4)}.${ordinal}`;
export const callId = (run: RunId, ordinal: number): CallId => `call_${run.slice(4)}.${ordinal}`;

export const questionId = (run: RunId, ordinal: number): QuestionId => `ask_${run.slice(4)}.${ordinal}`;

export const processId = (session: SessionId, ordinal: number): ProcessId => `proc_${session.slice(4)}.${ordinal}`;

/** The session of a process. */
export const sessionOf = (id: ProcessId): SessionId => `ses_${id.slice(5, id.lastIndexOf("."))}`;

/** The prefix of the ids of a tenant's sessions. */
export const tenantPrefix = (tenant: string): string => `ses_${tenant}.`;

/**
 * The tenant of a session or process: the part of the session id before the first dot. Undefined: it belongs to the
 * operator. This is the only function that reads a tenant from an id. Ids of runs, calls and questions do not name
 * their session.
 */
export function tenantOf(id: SessionId | ProcessId): string | undefined {
  const session = id.startsWith("proc_") ? sessionOf(id as ProcessId) : id;
  const dot = session.indexOf(".");
  return dot === -1 ? undefined : session.slice(4, dot);
}

/** The id of a run that an inbox item begins: named after its session and its position in the log. */
export const wakeRunId = (session: SessionId, seq: Seq): RunId => `run_${session.slice(4)}.w${seq}`;

/** The run that a turn, call or question belongs to. */
export function runOf(work: Work | QuestionId): RunId {
  return `run_${work.slice(work.indexOf("_") + 1, work.lastIndexOf("."))}`;
}

/** The ordinal of a turn or call in its run, or of a process in its session. */
export const ordinalOf = (work: Work | ProcessId): number => Number(work.slice(work.lastIndexOf(".") + 1));

/** Whether it has the prefix of an id. A malformed id is reported as not found. */
export const isNamedLikeAnId = (id: string): boolean => /^(ses|run|call|proc|ask)_./.test(id);

/** The maximum length of an id. */
export const ID_CHARS_MAX = 128;

export const isSessionId = (id: string): id is SessionId => wellFormed(id, "ses_");
export const isRunId = (id: string): id is RunId => wellFormed(id, "run_");
export const isQuestionId = (id: string): id is QuestionId => wellFormed(id, "ask_");
export const isCallId = (id: string): id is CallId => wellFormed(id, "call_");

/** The id of a process ends with a number; the part before it names its session. */
export const isProcessId = (id: string): id is ProcessId => wellFormed(id, "proc_") && /^proc_.+\.\d+$/.test(id);

/** Short, and without special characters of headers, paths or terminals. Derived ids may be longer. */
function wellFormed(id: string, prefix: string): boolean {
  const charsMax = prefix === "ses_" ? 80 : ID_CHARS_MAX;
  return id.length > prefix.length && id.length <= charsMax && id.startsWith(prefix) && /^[A-Za-z0-9_.-]+$/.test(id);
}
