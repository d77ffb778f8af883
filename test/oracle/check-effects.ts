// Compares the work that was really carried out with the logs: everything was requested first, nothing is repeated that
// must not be, and nothing is recorded as completed that did not come to its end.
import type { CallId } from "../../src/core/model/ids.ts";
import type { Report } from "./finding.ts";
import type { LoggedCall, LogIndex } from "./log-index.ts";

/** A turn, call or process began, or a call came to its end. */
export interface Effect {
  readonly kind: "begin" | "end";
  readonly work: string;
  /** The life of the server in which it happened, if that is known. */
  readonly life?: number;
  /** Which step of its run it is: the same if a turn is requested again. Undefined: it may be repeated. */
  readonly step?: string | undefined;
}

export function checkEffects(effects: readonly Effect[], index: LogIndex, report: Report): void {
  const begins = effects.filter(({ kind }) => kind === "begin");
  for (const [work, times] of Map.groupBy(begins, (one) => one.work)) {
    const lives = times.flatMap(({ life }) => life ?? []);
    if (!index.works.has(work)) {
      report("repeatedCalls", `${work} was carried out, and the log never requested it.`, "G1");
    } else if (times.length > 1 && index.calls.get(work as CallId)?.idempotent !== true) {
      report("repeatedCalls", `${work} was carried out ${times.length} times.`);
    } else if (new Set(lives).size < lives.length) {
      report("repeatedCalls", `${work} was carried out more than once in one life of its server.`);
    }
  }
  const ended = new Set(effects.flatMap(({ kind, work }) => (kind === "end" ? [work] : [])));
  for (const { callId, outcome } of index.calls.values()) {
    if (outcome?.kind === "completed" && !ended.has(callId)) {
      report("falseOutcomes", `${callId} is recorded as completed, and its tool never came to its end.`);
    }
  }
  checkSteps(begins, index, report);
}

/** A step is done once: after it has completed, or its end is unknown, no other call begins it again. */
function checkSteps(begins: readonly Effect[], index: LogIndex, report: Report): void {
  const steps = Map.groupBy(begins, ({ step }) => step);
  for (const [step, effects] of steps) {
    if (step === undefined) continue;
    const calls = [...new Set(effects.map(({ work }) => work))].flatMap((id) => index.calls.get(id as CallId) ?? []);
    for (const [at, call] of calls.entries()) {
      const next = calls[at + 1];
      if (next === undefined || mayRepeat(call)) continue;
      report("repeatedCalls", `Step ${step} was done by ${call.callId}, and again by ${next.callId}.`);
    }
  }
}

/** Whether the same step may begin again after this call. */
const mayRepeat = (call: LoggedCall): boolean => call.outcome?.kind === "lost" && call.idempotent;
