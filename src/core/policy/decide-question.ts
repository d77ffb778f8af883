// The policy of questions: who may ask, who may answer, and what settles them. Pure.

import { QUESTIONS_BYTES_MAX, QUESTIONS_OPEN_MAX } from "../limits.ts";
import type { CancelReceipt } from "../model/cancel.ts";
import type { Answers, CommandOf } from "../model/command.ts";
import type { Event } from "../model/event.ts";
import { type CallId, type QuestionId, questionId, runOf, type Work } from "../model/ids.ts";
import type { Lane } from "../model/lane.ts";
import { utf8Bytes } from "../model/prompt.ts";
import { misfit, type Question, type QuestionOutcome, type QuestionReply, type Subject } from "../model/question.ts";
import type { Run } from "../model/run.ts";
import { cancelOneCall, type Decided } from "./decide-run.ts";

export function ask(lane: Lane, { owner, about, deadlineMs }: CommandOf<"ask">): Decided<Answers["ask"]> {
  const run = lane.live;
  if (run?.id !== runOf(owner) || !isRunning(run, owner)) {
    return {
      events: [],
      answer: { kind: "refused", code: "busy", message: `${owner} has ended, and can ask nothing more.` },
    };
  }
  if (about.kind === "approval" && isGranted(lane, run, owner, about)) {
    return { events: [], answer: { kind: "granted" } };
  }
  // Asked before a restart and still open: clients that show it can answer it.
  const open = run.questions.find((one) => one.owner === owner && sameApproval(one.about, about));
  // @fault asked-again-after-restart
  if (open !== undefined) return { events: [], answer: { kind: "asked", questionId: open.id } };
  const full = tooMany(run, about);
  if (full !== undefined) return { events: [], answer: { kind: "refused", code: "queue_full", message: full } };
  const id = questionId(run.id, run.asked + 1);
  const limit = deadlineMs === undefined ? {} : { deadlineMs };
  return {
    events: [
      ...outdated(run, owner, about),
      { type: "question.asked", runId: run.id, questionId: id, owner, about, ...limit },
    ],
    answer: { kind: "asked", questionId: id },
  };
}

function tooMany({ id, questions }: Run, about: Subject): string | undefined {
  if (questions.length >= QUESTIONS_OPEN_MAX)
    return `${questions.length} questions of ${id} are open; that is the limit.`;
  const bytes = [...questions.map((one) => one.about), about].reduce((sum, one) => sum + aboutBytes(one), 0);
  return bytes <= QUESTIONS_BYTES_MAX
    ? undefined
    : `The open questions of ${id} would exceed ${QUESTIONS_BYTES_MAX} bytes.`;
}

const aboutBytes = (about: Subject): number => utf8Bytes(JSON.stringify(about));

/**
 * A call that an earlier worker left begins without an answer: a hook approved it, or it needs no approval any more. An
 * open approval would mean that the call has not begun, and after the next crash it would be begun again.
 */
export function admitCall(lane: Lane, { callId }: CommandOf<"admit-call">): Decided<Answers["admit-call"]> {
  const run = lane.live;
  if (run?.id !== runOf(callId) || !isRunning(run, callId) || isDenied(run, callId)) {
    return { events: [], answer: "denied" };
  }
  return { events: withdrawApprovals(run, callId), answer: "admitted" };
}

/** Whether an approval of the call must be settled, or was denied, before the call begins. */
export const isUndecided = ({ live }: Lane, callId: CallId): boolean =>
  live !== undefined && (approvalsOf(live, callId).length > 0 || isDenied(live, callId));

const isDenied = (run: Run, callId: CallId): boolean =>
  run.live.some((call) => call.id === callId && call.verdict?.allowed === false);

const approvalsOf = (run: Run, owner: Work): readonly Question[] =>
  run.questions.filter((one) => one.owner === owner && one.about.kind === "approval");

const withdrawApprovals = (run: Run, owner: Work): readonly Event[] =>
  approvalsOf(run, owner).map((one) => settled(one.id, { kind: "withdrawn", reason: { kind: "parent", id: owner } }));

/** An approval is for one input. When the input has changed, the approval for the old input is withdrawn. */
function outdated(run: Run, owner: Work, about: Subject): readonly Event[] {
  return about.kind === "approval" ? withdrawApprovals(run, owner) : [];
}

export function answer(lane: Lane, { questionId: id, reply, digest }: CommandOf<"answer">): Decided<Answers["answer"]> {
  const question = openQuestion(lane, id);
  if (question === undefined) return { events: [], answer: { kind: "unknown" } };
  const refusal = misfit(question.about, reply, digest);
  if (refusal !== undefined) return { events: [], answer: refusal };
  // @fault grant-covers-other-sessions:answer
  const events = [question, ...covered(lane, question, reply)].map((one) => settled(one.id, reply));
  return { events, answer: { kind: "recorded", questionId: id } };
}

/** An approval for the whole session also answers the open approvals of its scope. */
function covered(lane: Lane, question: Question, reply: QuestionReply): readonly Question[] {
  const { about } = question;
  if (about.kind !== "approval" || reply.kind !== "allowed" || reply.remember !== "session") return [];
  const waiting = lane.live?.questions ?? [];
  return waiting.filter((one) => one !== question && one.about.kind === "approval" && one.about.scope === about.scope);
}

export function expire(lane: Lane, { questionId: id, limitMs }: CommandOf<"expire">): Decided<undefined> {
  const open = openQuestion(lane, id) !== undefined;
  // @fault expired-but-open
  return { events: open ? [settled(id, { kind: "expired", limitMs })] : [], answer: undefined };
}

/**
 * Cancels a question. Cancelling an approval stops the call that waits for it; the owner of another question continues.
 */
export function cancelQuestion(
  lane: Lane,
  { questionId: id, reason, begun }: CommandOf<"cancel-question">,
): Decided<CancelReceipt> {
  const question = openQuestion(lane, id);
  const run = lane.live;
  if (question === undefined || run === undefined) return { events: [], answer: { kind: "unknown" } };
  const { owner } = question;
  // @fault withdrawn-approval-lets-the-call-wait, no-reminder-by-question
  const events: readonly Event[] =
    question.about.kind === "approval" && isCall(owner)
      ? cancelOneCall(run, owner, { reason, remind: true, begun }, lane.head + 1).events
      : [settled(id, { kind: "withdrawn", reason })];
  return { events, answer: { kind: "withdrawn" } };
}

function openQuestion(lane: Lane, id: QuestionId): Question | undefined {
  return lane.live?.id === runOf(id) ? lane.live.questions.find((one) => one.id === id) : undefined;
}

/** Whether a turn or call is live and not being stopped. */
function isRunning(run: Run, work: Work): boolean {
  if (run.phase !== "running") return false;
  return run.turn === work || run.live.some((call) => call.id === work && call.phase === "running");
}

/** Approved for the whole session; or for this call, which was interrupted after its approval. */
function isGranted({ grants }: Lane, run: Run, owner: Work, { scope, digest }: Approval): boolean {
  const verdict = run.live.find((call) => call.id === owner)?.verdict;
  // @fault grant-covers-other-scopes, grant-covers-other-sessions:granted
  return grants.includes(scope) || (verdict?.allowed === true && verdict.digest === digest);
}

type Approval = Extract<Subject, { kind: "approval" }>;

const sameApproval = (one: Subject, other: Subject): boolean =>
  one.kind === "approval" && other.kind === "approval" && one.digest === other.digest;

const isCall = (work: Work): work is Extract<Work, `call_${string}`> => work.startsWith("call_");

const settled = (id: QuestionId, ending: QuestionOutcome): Event => ({
  type: "question.settled",
  runId: runOf(id),
  questionId: id,
  ending,
});
