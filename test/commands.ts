// Commands and events in short, for tests of the core.
import type { CallAsk } from "../src/core/call.ts";
import type { CancelReason, Outcome } from "../src/core/cancel.ts";
import type { Accept, Command } from "../src/core/command.ts";
import type { CallEnd, Resume, TurnEnd } from "../src/core/decide-run.ts";
import type { Event, Feedback, ProcessEvent } from "../src/core/event.ts";
import {
  type CallId,
  type ProcessId,
  type QuestionId,
  type RunId,
  runOf,
  type SessionId,
  type TurnId,
  type Work,
} from "../src/core/ids.ts";
import type { Item } from "../src/core/inbox.ts";
import type { ProcessEnd } from "../src/core/process.ts";
import type { About, Ending, Reply } from "../src/core/question.ts";

export const user: CancelReason = { kind: "user" };
export const policy: CancelReason = { kind: "policy", note: "too expensive" };
export const completed: Outcome = { kind: "completed" };
export const failed: Outcome = { kind: "failed", code: "model", message: "The model said no." };
export const lost: Outcome = { kind: "lost" };
export const cancelledBy = (reason: CancelReason): Outcome => ({ kind: "cancelled", reason });
export const abandonedBy = (reason: CancelReason, ...names: readonly string[]): Outcome => ({
  kind: "cancelled",
  reason,
  abandoned: names,
});

export const start: Command = { type: "start" };
export const park: Command = { type: "park" };

export function accept(runId: RunId, more: Partial<Omit<Accept, "type" | "runId">> = {}): Accept {
  return { type: "accept", runId, prompt: { text: `prompt of ${runId}` }, delivery: "queue", ...more };
}

/** Accepted, and under way with its first turn. */
export const running = (runId: RunId): readonly Command[] => [accept(runId), start];

export const call = (callId: CallId, name = "tool") => ({ type: "call", callId, name, input: null }) as const;

export function settleTurn(turnId: TurnId, end: Partial<Omit<TurnEnd, "turnId">> = {}) {
  return { type: "settle-turn", end: { turnId, outcome: completed, next: "end", text: "", ...end } } as const;
}

export function settleCall(callId: CallId, end: Partial<Omit<CallEnd, "callId">> = {}) {
  return { type: "settle-call", end: { callId, outcome: completed, ...end } } as const;
}

/** A call as the end of a turn asks for it. */
export const wanted = (callId: CallId, more: Partial<Omit<CallAsk, "callId">> = {}): CallAsk => ({
  callId,
  name: "tool",
  input: null,
  ...more,
});

/** The turn ends, and wants these done before the next. */
export const settleAsking = (turnId: TurnId, ...calls: readonly CallAsk[]) =>
  settleTurn(turnId, { next: "turn", finish: "calls", calls });

/** `digest` stands for the bytes it is about. */
export const approval = (digest = "d1", scope = "tool"): About => ({
  kind: "approval",
  name: "tool",
  input: null,
  digest,
  scope,
});
export const plainQuestion: About = { kind: "question", text: "Which one?" };
export const ask = (owner: Work, about: About = approval()) => ({ type: "ask", owner, about }) as const;
export const answer = (id: QuestionId, reply: Reply = { kind: "allowed" }) =>
  ({ type: "answer", questionId: id, reply }) as const;
export const expire = (id: QuestionId) => ({ type: "expire", questionId: id, limitMs: 1_000 }) as const;
export const cancelQuestion = (id: QuestionId, reason: CancelReason = user) =>
  ({ type: "cancel-question", questionId: id, reason }) as const;
export const item = (text: string): Item => ({ kind: "result", text });
export const setMode = (mode: string) => ({ type: "set-mode", mode }) as const;
export const post = (text: string) => ({ type: "post", item: item(text) }) as const;
export const take = (turnId: TurnId) => ({ type: "take", turnId }) as const;
export const compact = (turnId: TurnId, summary = "in short") => ({ type: "compact", turnId, summary }) as const;

/** In the background unless a call is named. */
export const beginProcess = (owner: CallId | SessionId = "ses_1", feedback: Feedback = "wake") =>
  ({ type: "begin-process", owner, command: "make", feedback }) as const;
export const noteProcess = (processId: ProcessId) =>
  ({ type: "note-process", processId, pid: 7, tier: "A", profile: "open" }) as const;
export const detachProcess = (processId: ProcessId, feedback: Feedback = "wake") =>
  ({ type: "detach-process", processId, feedback }) as const;
export const cancelProcess = (processId: ProcessId, reason: CancelReason = user) =>
  ({ type: "cancel-process", processId, reason }) as const;
/** It has ended by itself, unless `end` says otherwise. */
export const settleProcess = (processId: ProcessId, end: Partial<Omit<ProcessEnd, "processId">> = {}) =>
  ({ type: "settle-process", end: { processId, ...(ended(end) ? {} : { exit: { code: 0 } }), ...end } }) as const;
const ended = (end: object): boolean => "exit" in end || "failed" in end;
/** Nothing is known of how it ended. */
export const loseProcess = (processId: ProcessId) => ({ type: "settle-process", end: { processId } }) as const;
/** A signal of ours went out before it had ended. */
export const stopProcess = (processId: ProcessId) =>
  settleProcess(processId, { stopped: true, exit: { signal: "SIGTERM" } });
/** It has ended by itself, and this call waits for it and will tell how. */
export const settleFor = (waiter: CallId, processId: ProcessId) => ({ ...settleProcess(processId), waiter }) as const;
/** What goes on in the background goes on. */
export const cancelSessionOnly = (reason: CancelReason = user) =>
  ({ type: "cancel-session", reason, background: "keep" }) as const;

export const recover = (resume: Resume = "resume") => ({ type: "recover", resume }) as const;
export const cancelSession = (reason: CancelReason = user) => ({ type: "cancel-session", reason }) as const;
export const cancelRun = (runId: RunId, reason: CancelReason = user) =>
  ({ type: "cancel-run", runId, reason }) as const;
export const cancelCall = (callId: CallId, reason: CancelReason = user) =>
  ({ type: "cancel-call", callId, reason }) as const;
/** Cancelled, and the model is to be reminded of it. */
export const cancelReminding = (callId: CallId, reason: CancelReason = user) =>
  ({ type: "cancel-call", callId, reason, remind: true }) as const;
export const cancelKey = (key: string, reason: CancelReason = user) => ({ type: "cancel-key", key, reason }) as const;
export const close = (reason: CancelReason = { kind: "closed" }) => ({ type: "close", reason }) as const;

export const runSettled = (runId: RunId, outcome: Outcome): Event => ({ type: "run.settled", runId, outcome });
export const cancelRequested = (runId: RunId, reason: CancelReason = user): Event => ({
  type: "run.cancel_requested",
  runId,
  reason,
});
export const callRequested = (ask: CallAsk): Event => ({ type: "call.requested", runId: runOf(ask.callId), ...ask });
export const callSettled = (callId: CallId, outcome: Outcome = completed): Event => ({
  type: "call.settled",
  runId: runOf(callId),
  callId,
  outcome,
});
export const recovered = (runId: RunId, attempt: number): Event => ({ type: "run.recovered", runId, attempt });
export const asked = (questionId: QuestionId, owner: Work, about: About = approval()): Event => ({
  type: "question.asked",
  runId: runOf(owner),
  questionId,
  owner,
  about,
});
export const questionSettled = (questionId: QuestionId, ending: Ending): Event => ({
  type: "question.settled",
  runId: runOf(questionId),
  questionId,
  ending,
});
export const questionWithdrawn = (questionId: QuestionId, reason: CancelReason = user): Event =>
  questionSettled(questionId, { kind: "withdrawn", reason });
export const added = (one: Item): Event => ({ type: "inbox.added", item: one });
export const processRequested = (
  processId: ProcessId,
  owner: CallId | SessionId = "ses_1",
  feedback: Feedback = "wake",
): Event => ({ type: "process.requested", processId, owner, command: "make", feedback });
export const processDetached = (processId: ProcessId, feedback: Feedback = "wake"): Event => ({
  type: "process.detached",
  processId,
  owner: "ses_1",
  feedback,
});
export const processCancelled = (processId: ProcessId, reason: CancelReason = user): Event => ({
  type: "process.cancel_requested",
  processId,
  reason,
});
type ProcessSettled = Extract<ProcessEvent, { type: "process.settled" }>;
export const processSettled = (
  processId: ProcessId,
  outcome: Outcome = completed,
  more: Partial<Omit<ProcessSettled, "type" | "processId" | "outcome">> = {},
): Event => ({ type: "process.settled", processId, outcome, ...more });
/** A run that nobody asked for, for what is in the inbox. */
export const wokenRun = (runId: RunId): Event => ({
  type: "run.accepted",
  runId,
  prompt: { text: "Something that went on in the background has ended." },
  delivery: "queue",
  wake: true,
});
export const itemsTaken = (turnId: TurnId, ...items: readonly Item[]): Event => ({
  type: "inbox.taken",
  runId: runOf(turnId),
  turnId,
  items,
});
export const turnRequested = (runId: RunId, turnId: TurnId): Event => ({ type: "turn.requested", runId, turnId });
export const requeued = (runId: RunId): Event => ({ type: "run.requeued", runId });

/** A steer that was taken in, and its own outcome. */
export const taken = (runId: RunId, into: RunId, turnId: TurnId): readonly Event[] => [
  { type: "run.taken", runId, into, turnId },
  runSettled(runId, { kind: "completed", into }),
];
