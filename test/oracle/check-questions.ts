// Compares the replies to questions with the logs: a reply that was recorded is the one that counted, it fits what was
// asked, and an ending goes back to a reply or to a limit.
import type { CallId } from "../../src/core/model/ids.ts";
import { type CallerHistory, headOf, type RequestOf, requestsOf } from "./caller-history.ts";
import { checkNoTrace } from "./check-changes.ts";
import type { CoverageRules } from "./check-coverage.ts";
import type { Report } from "./finding.ts";
import { isBy, type LoggedQuestion, type LogIndex, noteOf, print, same } from "./log-index.ts";

type AnswerRequest = RequestOf<"answer">;
type Params = AnswerRequest["params"];

export function checkQuestions(
  history: CallerHistory,
  index: LogIndex,
  { complete = false }: CoverageRules,
  report: Report,
): void {
  const answers = requestsOf(history, "answer");
  for (const request of answers) {
    checkNoTrace(request, answers, index, report);
    checkReceipt(request, index, report);
  }
  for (const request of requestsOf(history, "cancel-question")) checkCancel(request, index, report);
  const byQuestion = Map.groupBy(answers, ({ params }) => params.questionId);
  for (const question of index.questions.values()) {
    checkEnding(question, byQuestion.get(question.questionId) ?? [], report);
    checkAskedOnce(question, index, report);
    if (complete) checkCause(question, answers, index, report);
  }
}

/** Whether a question must be known: it was there when the request was sent, and its log is complete. */
const isKnown = (question: LoggedQuestion | undefined, { moment }: Pick<AnswerRequest, "moment">): boolean =>
  moment !== undefined && isBy(question?.seq, moment.sentHead) && moment.trimmedTo === 0;

function checkReceipt(request: AnswerRequest, index: LogIndex, report: Report): void {
  const { sessionId, params, answer } = request;
  if (answer.kind !== "returned") return;
  const { value } = answer;
  const { questionId, event, reply } = params;
  const question = index.questions.get(questionId);
  const ending = isBy(question?.settledAt, headOf(request)) ? question?.ending : undefined;
  const lie = (why: string): void => report("falseReceipts", `A reply to ${questionId} was ${value.kind}: ${why}.`);
  switch (value.kind) {
    case "recorded":
      if (value.questionId !== questionId) lie(`it is recorded for ${value.questionId}`);
      if (reply === undefined ? index.count(sessionId, event) !== 1 : !same(ending, reply)) {
        lie(`the question ended as ${print(ending)}`);
      }
      if (question !== undefined && isMisfit(params, question)) lie("it does not fit the question");
      return;
    case "settled":
      if (!same(value.ending, ending)) lie(`as ${print(value.ending)}, and the log has ${print(ending)}`);
      return;
    case "refused":
      if (question !== undefined && reply !== undefined && !isMisfit(params, question)) lie("it fits the question");
      return;
    case "unknown":
      if (isKnown(question, request)) lie("the question is in the log");
  }
}

/** Whether this is not a reply to what is asked: another kind, other bytes, or none of the options. */
function isMisfit({ reply, digest }: Params, { about }: LoggedQuestion): boolean {
  if (reply === undefined) return false;
  if (about.kind === "approval") return reply.kind === "answered" || (digest !== undefined && digest !== about.digest);
  if (reply.kind !== "answered") return true;
  return about.only === true && !(about.options ?? []).some((option) => option === reply.value);
}

/** To cancel an approval is to cancel the call that waits for it; any other question is only withdrawn. */
function checkCancel(request: RequestOf<"cancel-question">, index: LogIndex, report: Report): void {
  const { params, answer } = request;
  if (answer.kind !== "returned") return;
  const receipt = answer.value;
  const head = headOf(request);
  const question = index.questions.get(params.questionId);
  const ending = isBy(question?.settledAt, head) ? question?.ending : undefined;
  const lie = (why: string): void =>
    report("falseReceipts", `${params.questionId} was reported as ${receipt.kind}: ${why}.`);
  switch (receipt.kind) {
    case "withdrawn":
      if (ending?.kind !== "withdrawn") lie(`it ended as ${print(ending)}`);
      else if (params.note !== undefined && noteOf(ending.reason) !== params.note) lie("another request withdrew it");
      else if (
        question?.about.kind === "approval" &&
        !isBy(index.calls.get(question.owner as CallId)?.cancel?.at, head)
      ) {
        lie("its call was not cancelled");
      }
      return;
    case "stopping":
      lie("questions are not stopped");
      return;
    case "settled": {
      const isReply = ending?.kind !== "withdrawn" && ending?.kind !== "expired";
      if (ending === undefined || receipt.outcome.kind !== (isReply ? "completed" : "cancelled")) {
        lie(`as ${print(receipt.outcome)}, and it ended as ${print(ending)}`);
      }
      return;
    }
    case "unknown":
      if (isKnown(question, request)) lie("it is in the log");
  }
}

/** A question ends once, by one reply or by none. */
function checkEnding({ questionId, ending }: LoggedQuestion, answers: readonly AnswerRequest[], report: Report): void {
  if (ending === undefined) return; // `verify` finds it.
  const counted = answers.filter(({ answer }) => answer.kind === "returned" && answer.value.kind === "recorded").length;
  const isReply = ending.kind !== "expired" && ending.kind !== "withdrawn";
  if (counted > (isReply ? 1 : 0)) {
    report("twoOutcomes", `${questionId} is ${ending.kind}, and ${counted} replies were reported as recorded.`);
  }
}

/** After a restart an approval can still be answered: it is not withdrawn and asked again under another id. */
function checkAskedOnce(closed: LoggedQuestion, index: LogIndex, report: Report): void {
  const { questionId, owner, about, ending } = closed;
  if (about.kind !== "approval" || ending?.kind !== "withdrawn" || ending.reason.kind !== "parent") return;
  const isNext = (one: LoggedQuestion): boolean =>
    one.owner === owner && one.about.kind === "approval" && ordinal(one.questionId) > ordinal(questionId);
  // The next one: a host that has put other bytes in its place in between may have changed its mind.
  const next = [...index.questions.values()].find(isNext);
  if (next?.about.kind !== "approval" || next.about.digest !== about.digest) return;
  report("repeatedCalls", `${questionId} was closed, and ${next.questionId} asks for the same.`);
}

const ordinal = (id: string): number => Number(id.split(".").at(-1));

/** A recorded reply was sent by a caller, to this question; and one that expired had that limit. */
function checkCause(
  question: LoggedQuestion,
  answers: readonly AnswerRequest[],
  index: LogIndex,
  report: Report,
): void {
  const { questionId, ending, deadlineMs } = question;
  if (ending?.kind === "expired" && ending.limitMs !== deadlineMs) {
    report("falseOutcomes", `${questionId} expired after ${ending.limitMs} ms; it had ${deadlineMs}.`, "G34");
  }
  if (ending === undefined || ending.kind === "expired" || ending.kind === "withdrawn") return;
  const sent = answers.find(({ params }) => same(params.reply, ending));
  if (sent !== undefined && isReplyTo(sent.params, question, index)) return;
  report("falseOutcomes", `${questionId} has a reply that no caller sent to it.`, "G14");
}

/** An approval for the whole session is also one for what waits already. */
function isReplyTo({ questionId, reply }: Params, question: LoggedQuestion, index: LogIndex): boolean {
  if (questionId === question.questionId) return true;
  if (reply?.kind !== "allowed" || reply.remember !== "session") return false;
  const answered = index.questions.get(questionId);
  return answered?.sessionId === question.sessionId && scopeOf(answered) === scopeOf(question);
}

const scopeOf = ({ about }: LoggedQuestion): string | undefined =>
  about.kind === "approval" ? about.scope : undefined;
