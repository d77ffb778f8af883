// A cancelled run names the work that did not stop, and no other (G12).
import type { Outcome } from "../../src/core/model/cancel.ts";
import type { RunId } from "../../src/core/model/ids.ts";
import type { Report } from "./finding.ts";
import type { LogIndex } from "./log-index.ts";

const isAbandoned = (outcome: Outcome): boolean => outcome.kind === "cancelled" && outcome.abandoned !== undefined;

export function checkAbandoned(index: LogIndex, report: Report): void {
  const abandoned = new Map<RunId, string[]>();
  for (const log of index.logs.values()) {
    for (const event of log) {
      if ((event.type !== "turn.settled" && event.type !== "call.settled") || !isAbandoned(event.outcome)) continue;
      const { runId, seq } = event;
      const since = index.runs.get(runId)?.cancel?.at;
      if (since === undefined || seq < since) continue;
      const name = event.type === "turn.settled" ? "turn" : (index.calls.get(event.callId)?.name ?? "");
      abandoned.set(runId, [...(abandoned.get(runId) ?? []), name]);
    }
  }
  for (const { runId, cancel, outcome } of index.runs.values()) {
    if (cancel === undefined || outcome?.kind !== "cancelled") continue;
    const named = [...(outcome.abandoned ?? [])].sort().join(", ");
    const expected = (abandoned.get(runId) ?? []).sort().join(", ");
    if (named === expected) continue;
    report("falseOutcomes", `${runId} names [${named}] as abandoned; its log has [${expected}].`, "G12");
  }
}
