// Compares the answers of prompts, outcomes, queue changes and replies with the logs: what was acknowledged is there,
// what was refused left no trace, and every request is answered.
import {
  type CallerHistory,
  type CallerRequest,
  describeRequest,
  type RequestOf,
  requestsOf,
} from "./caller-history.ts";
import type { Report } from "./finding.ts";
import { isExpected, type LogIndex, print, same } from "./log-index.ts";

export function checkAnswers(history: CallerHistory, index: LogIndex, report: Report): void {
  for (const request of history.requests) checkAnswered(request, report);
  checkPrompts(history, index, report);
  checkOrder(history, report);
  for (const request of requestsOf(history, "outcome")) checkOutcome(request, index, report);
  const changes = [...requestsOf(history, "change"), ...requestsOf(history, "answer")];
  for (const request of changes) {
    const { params, answer } = request;
    const again = changes.some(
      (other) => other !== request && other.answer.kind !== "refused" && same(other.params, params),
    );
    // Refused at first, and recorded when it was requested again.
    if (!(answer.kind === "refused" && again)) checkNoTrace(request, index, report);
    if (request.name === "change") checkChange(request, index, report);
    else checkReply(request, index, report);
  }
}

/** How many prompts were acknowledged. */
export function acknowledged(history: CallerHistory): number {
  const returned = requestsOf(history, "prompt").filter(({ answer }) => answer.kind === "returned");
  return new Set(returned.map(({ params }) => params.label)).size;
}

function checkAnswered(request: CallerRequest, report: Report): void {
  const { answer } = request;
  if (answer.kind === "pending") report("stuck", `${describeRequest(request)} was never answered.`);
  if (answer.kind === "error") report("faults", `${describeRequest(request)} was rejected with: ${answer.error}`);
}

function checkPrompts(history: CallerHistory, index: LogIndex, report: Report): void {
  for (const [label, tries] of Map.groupBy(requestsOf(history, "prompt"), ({ params }) => params.label)) {
    const logged = index.labels.get(label) ?? [];
    const receipts = tries.flatMap(({ answer }) => (answer.kind === "returned" ? [answer.value] : []));
    for (const { runId, seq } of receipts) {
      const run = logged.find((one) => one.runId === runId);
      if (run === undefined) report("lost", `${label} was accepted as ${runId}, and the log has no such run of it.`);
      else if (run.seq !== seq) {
        report("falseReceipts", `${runId} was accepted at ${run.seq}, and its receipt has ${seq}.`);
      }
    }
    if (new Set(receipts.map(({ runId }) => runId)).size > 1 || logged.length > 1) {
      report("doublePrompts", `${label} is ${logged.map(({ runId }) => runId).join(" and ")}.`);
    }
    if (tries.every(({ answer }) => answer.kind === "refused") && logged.length > 0) {
      report("refusedTraces", `${label} was refused, and is ${logged[0]?.runId} in the log.`);
    }
    for (const one of tries) checkOwnRun(one, index, report);
  }
}

/** If the caller knew its run's id: that run is not in the log unless its own receipt says so. */
function checkOwnRun({ params: { runId }, answer }: RequestOf<"prompt">, index: LogIndex, report: Report): void {
  if (runId === undefined || !index.runs.has(runId)) return;
  if (answer.kind === "returned" && answer.value.runId !== runId) {
    report("doublePrompts", `${runId} was answered with ${answer.value.runId}, and is in the log as well.`);
  }
  if (answer.kind === "refused") report("refusedTraces", `${runId} was refused (${answer.code}) and is in the log.`);
}

/** A prompt that was acknowledged before another was sent comes before it. */
function checkOrder(history: CallerHistory, report: Report): void {
  const prompts = requestsOf(history, "prompt").flatMap((one) =>
    one.answer.kind === "returned" ? [{ ...one, receipt: one.answer.value }] : [],
  );
  for (const later of prompts) {
    // A repeated request is answered with the position of the first one.
    if (later.receipt.repeated) continue;
    for (const earlier of prompts) {
      if (earlier.sessionId !== later.sessionId || earlier.answeredAt >= later.sentAt) continue;
      if (earlier.receipt.seq < later.receipt.seq) continue;
      const [first, second] = [earlier.params.label, later.params.label];
      report("outOfOrder", `${first} was accepted before ${second} was sent, and comes after it.`);
    }
  }
}

function checkOutcome({ params: { runId }, answer }: RequestOf<"outcome">, index: LogIndex, report: Report): void {
  if (answer.kind !== "returned") return;
  const logged = index.runs.get(runId)?.outcome;
  if (same(answer.value, logged)) return;
  report("falseOutcomes", `${runId} was reported as ${print(answer.value)}; the log has ${print(logged)}.`);
}

/** Answers that say that nothing was recorded. */
const UNRECORDED: ReadonlySet<string> = new Set(["refused", "started", "unchanged", "unknown"]);

function checkNoTrace(request: RequestOf<"change" | "answer">, index: LogIndex, report: Report): void {
  const { sessionId, params, answer } = request;
  const kind = answer.kind === "returned" ? answer.value.kind : answer.kind;
  // An answer that is not known is not one that says so.
  if (answer.kind === "unknown" || !UNRECORDED.has(kind) || !params.event.unique) return;
  if (index.count(sessionId, params.event) === 0) return;
  report("refusedTraces", `${params.event.type} ${print(params.event.like)} was answered as ${kind}, and is recorded.`);
}

function checkChange({ sessionId, params, answer }: RequestOf<"change">, index: LogIndex, report: Report): void {
  if (answer.kind !== "returned") return;
  const { value } = answer;
  const { event, runId } = params;
  const name = `${event.type} ${print(event.like)}`;
  if (value.kind === "changed" || value.kind === "posted") {
    const there = index.at(sessionId, value.seq);
    if (there === undefined || !isExpected(there, event)) {
      report("falseReceipts", `${name} was recorded at ${value.seq}, and the log has ${there?.type} there.`, "G6");
    } else if (event.unique && index.count(sessionId, event) > 1) {
      report("falseReceipts", `${name} was recorded more than once.`, "G6");
    }
  }
  if (value.kind !== "started" || runId === undefined) return;
  const run = index.runs.get(runId);
  if (run?.started === true || run?.outcome !== undefined) return;
  report("falseReceipts", `${runId} was reported as started, and it has not started.`, "G6");
}

function checkReply({ sessionId, params, answer }: RequestOf<"answer">, index: LogIndex, report: Report): void {
  if (answer.kind !== "returned") return;
  const { value } = answer;
  const { questionId, event } = params;
  const ending = index.questions.get(questionId);
  if (value.kind === "recorded" && index.count(sessionId, event) !== 1) {
    report("falseReceipts", `The reply to ${questionId} was recorded, and it ended as ${print(ending)}.`);
  }
  if (value.kind === "settled" && !same(value.ending, ending)) {
    report("falseReceipts", `${questionId} was reported as ${print(value.ending)}; the log has ${print(ending)}.`);
  }
}
