// Compares what callers were told about the processes they started and waited for with the logs.
import { type CallerHistory, headOf, requestsOf } from "./caller-history.ts";
import type { Report } from "./finding.ts";
import { isBy, type LogIndex, outcomeBy, print, same } from "./log-index.ts";

export function checkProcesses(history: CallerHistory, index: LogIndex, report: Report): void {
  for (const request of requestsOf(history, "start-process")) {
    if (request.answer.kind !== "returned") continue;
    const { command } = request.params;
    const { processId } = request.answer.value;
    const process = index.processes.get(processId);
    if (isBy(process?.seq, headOf(request)) && same(process?.requested.command, command)) continue;
    report("lost", `${print(command)} was started as ${processId}, and the log does not have that.`);
  }
  for (const request of requestsOf(history, "process-result")) {
    // The limit came first: how long it was is not part of the history.
    if (request.answer.kind !== "returned" || request.answer.value === undefined) continue;
    const { processId, outcome } = request.answer.value;
    const { params } = request;
    if (processId !== params.processId) {
      report("falseOutcomes", `The wait for ${params.processId} returned the result of ${processId}.`, "G16");
    }
    const recorded = outcomeBy(index.processes.get(processId), headOf(request));
    if (same(outcome, recorded)) continue;
    const [value, found] = [print(outcome), print(recorded)];
    report("falseOutcomes", `${processId} was reported as ${value}; the log had ${found}.`, "G16");
  }
}
