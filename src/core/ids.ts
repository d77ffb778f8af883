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
export type WorkerId = `wrk_${string}`;

/** Position in one session's log. The first event is 1; 0 is before everything. */
export type Seq = number;

/** Something a run has asked for and not yet seen the end of. */
export type Work = TurnId | CallId;

export const turnId = (run: RunId, ordinal: number): TurnId => `turn_${run.slice(4)}.${ordinal}`;
export const callId = (run: RunId, ordinal: number): CallId => `call_${run.slice(4)}.${ordinal}`;

export const questionId = (run: RunId, ordinal: number): QuestionId => `ask_${run.slice(4)}.${ordinal}`;

/** The run a turn, call or question belongs to. */
export function runOf(work: Work | QuestionId): RunId {
  return `run_${work.slice(work.indexOf("_") + 1, work.lastIndexOf("."))}`;
}

/** Which turn or call of its run it is. */
export const ordinalOf = (work: Work): number => Number(work.slice(work.lastIndexOf(".") + 1));

export const isSessionId = (id: string): id is SessionId => wellFormed(id, "ses_");
export const isRunId = (id: string): id is RunId => wellFormed(id, "run_");
export const isQuestionId = (id: string): id is QuestionId => wellFormed(id, "ask_");
export const isCallId = (id: string): id is CallId => wellFormed(id, "call_");

/** Short, and free of anything a header, a path or a terminal could trip over. */
function wellFormed(id: string, prefix: string): boolean {
  return id.length > prefix.length && id.length <= 80 && id.startsWith(prefix) && /^[A-Za-z0-9_.-]+$/.test(id);
}
