// What holds for the answers of all requests: each is answered, and refused only for a reason that exists. And the
// outcomes that were returned are those of the logs.
import {
  type CallerHistory,
  type CallerRequest,
  describeRequest,
  headOf,
  type RequestOf,
  requestsOf,
} from "./caller-history.ts";
import type { Report } from "./finding.ts";
import { isBy, type LogIndex, outcomeBy, print, same } from "./log-index.ts";

export function checkAnswers(history: CallerHistory, index: LogIndex, report: Report): void {
  for (const request of history.requests) checkAnswered(request, report);
  for (const request of requestsOf(history, "outcome")) checkOutcome(request, index, report);
}

function checkAnswered(request: CallerRequest, report: Report): void {
  const { answer, moment } = request;
  if (answer.kind === "pending") report("stuck", `${describeRequest(request)} was never answered.`);
  if (answer.kind === "error") report("faults", `${describeRequest(request)} was rejected with: ${answer.error}`);
  if (moment === undefined || (answer.kind !== "refused" && answer.kind !== "unknown")) return;
  const isTrouble = answer.code === "unavailable" || answer.code.startsWith("store_");
  if (!isTrouble || moment.storeFailed || moment.server !== "serving") return;
  report("faults", `${describeRequest(request)} was refused as ${answer.code}, and the store had not failed.`);
}

function checkOutcome(request: RequestOf<"outcome">, index: LogIndex, report: Report): void {
  const { params, answer, moment } = request;
  if (answer.kind !== "returned") return;
  const run = index.runs.get(params.runId);
  if (answer.value === undefined) {
    const isKnown = isBy(run?.seq, headOf(request)) && (moment === undefined || moment.server === "serving");
    if (isKnown) report("falseOutcomes", `${params.runId} is in the log, and was reported as unknown.`, "G16");
    return;
  }
  const recorded = outcomeBy(run, headOf(request));
  if (same(answer.value, recorded)) return;
  const [value, found] = [print(answer.value), print(recorded)];
  if (same(answer.value, run?.outcome)) {
    report("falseOutcomes", `${params.runId} was reported as ${value} before that was recorded.`, "G16");
  } else report("falseOutcomes", `${params.runId} was reported as ${value}; the log has ${found}.`);
}
