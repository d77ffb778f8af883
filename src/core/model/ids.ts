// The prefix is the brand: a RunId does not fit where a CallId is wanted, and a log line explains itself.
//
// Turn and call ids are derived from their run's id and an ordinal, so the core can name what it asks for
// without making ids, and an id found in a log leads back to its run.

export type SessionId = `ses_${string}`;
export type RunId = `run_${string}`;
export type TurnId = `turn_${string}`;
export type CallId = `call_${string}`;
/** A question is named after its run as well: `ask_<run>.<n>`. */
export type QuestionId = `ask_${string}`;
/** A process is named after its session, because it may outlive the run that started it: `proc_<session>.<n>`. */
export type ProcessId = `proc_${string}`;
export type WorkerId = `wrk_${string}`;

/** Position in one session's log. The first event is 1; 0 is before everything. */
export type Seq = number;

/** Something a run has asked for and not yet seen the end of. */
export type Work = TurnId | CallId;

export const turnId = (run: RunId, ordinal: number): TurnId => `turn_${run.slice(4)}.${ordinal}`;
export const callId = (run: RunId, ordinal: number): CallId => `call_${run.slice(4)}.${ordinal}`;

export const questionId = (run: RunId, ordinal: number): QuestionId => `ask_${run.slice(4)}.${ordinal}`;

export const processId = (session: SessionId, ordinal: number): ProcessId => `proc_${session.slice(4)}.${ordinal}`;

/** The session a process belongs to. */
export const sessionOf = (id: ProcessId): SessionId => `ses_${id.slice(5, id.lastIndexOf("."))}`;

/** What the ids of a tenant's sessions begin with. */
export const tenantPrefix = (tenant: string): string => `ses_${tenant}.`;

/**
 * The tenant that something belongs to: what the id of its session has before the first dot. Undefined: the operator's.
 * The only place that reads a tenant out of an id. Ids of runs, calls and questions do not name their session.
 */
export function tenantOf(id: SessionId | ProcessId): string | undefined {
  const session = id.startsWith("proc_") ? sessionOf(id as ProcessId) : id;
  const dot = session.indexOf(".");
  return dot === -1 ? undefined : session.slice(4, dot);
}

/** A run that no person asked for is named after its session and its place in the log. */
export const wakeRunId = (session: SessionId, seq: Seq): RunId => `run_${session.slice(4)}.w${seq}`;

/** The run a turn, call or question belongs to. */
export function runOf(work: Work | QuestionId): RunId {
  return `run_${work.slice(work.indexOf("_") + 1, work.lastIndexOf("."))}`;
}

/** Which turn or call of its run it is. */
export const ordinalOf = (work: Work | ProcessId): number => Number(work.slice(work.lastIndexOf(".") + 1));

/** Whether it has the form of an id as far as its kind goes. One that is no id of ours names nothing. */
export const isNamedLikeAnId = (id: string): boolean => /^(ses|run|call|proc|ask)_./.test(id);

/** The longest id there is. */
export const ID_CHARS_MAX = 128;

export const isSessionId = (id: string): id is SessionId => wellFormed(id, "ses_");
export const isRunId = (id: string): id is RunId => wellFormed(id, "run_");
export const isQuestionId = (id: string): id is QuestionId => wellFormed(id, "ask_");
export const isCallId = (id: string): id is CallId => wellFormed(id, "call_");

/** A process's id ends in a number: what comes before it names its session. */
export const isProcessId = (id: string): id is ProcessId => wellFormed(id, "proc_") && /^proc_.+\.\d+$/.test(id);

/**
 * Short, and free of anything a header, a path or a terminal could trip over. What is named after something else may be
 * a little longer than that.
 */
function wellFormed(id: string, prefix: string): boolean {
  const charsMax = prefix === "ses_" ? 80 : ID_CHARS_MAX;
  return id.length > prefix.length && id.length <= charsMax && id.startsWith(prefix) && /^[A-Za-z0-9_.-]+$/.test(id);
}
