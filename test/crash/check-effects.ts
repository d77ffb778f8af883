// Whether tools did what the log says, and no more often than they may.
import type { CallId } from "../../src/core/ids.ts";
import { ATTEMPTS_MAX } from "../../src/core/limits.ts";
import type { Effect } from "./effects.ts";
import type { Report } from "./finding.ts";
import type { LoggedCall, LoggedRun, LogIndex } from "./log-index.ts";

type Done = Exclude<Effect, { kind: "bad-transcript" }>;

export function checkEffects(effects: readonly Effect[], index: LogIndex, report: Report): void {
  const begun = new Map<CallId, number>();
  const ended = new Map<CallId, number>();
  for (const effect of effects) {
    if (effect.kind === "bad-transcript") {
      report("brokenTranscripts", `A turn of ${effect.runId} was given what no provider takes: ${effect.why}.`);
      continue;
    }
    const counts = effect.kind === "begin" ? begun : ended;
    counts.set(effect.callId, (counts.get(effect.callId) ?? 0) + 1);
  }
  for (const [callId, times] of begun) {
    const call = index.calls.get(callId);
    if (call === undefined) report("repeatedCalls", `${callId} was carried out, and the log does not know of it.`);
    else if (times > 1 && !call.idempotent) report("repeatedCalls", `${callId} was begun ${times} times.`);
  }
  for (const { callId, outcome } of index.calls.values()) {
    if (outcome?.kind === "completed" && !ended.has(callId)) {
      report("falseOutcomes", `${callId} is recorded as completed, and its tool never came to its end.`);
    }
  }
  checkSteps(
    effects.filter((one): one is Done => one.kind === "begin"),
    index,
    report,
  );
  for (const run of index.runs.values()) if (isPoison(run)) checkPoison(run, effects, report);
}

/** A step of a run is done once: after it has completed, or its end is unknown, it is not begun under another name. */
function checkSteps(begins: readonly Done[], index: LogIndex, report: Report): void {
  const steps = Map.groupBy(begins, ({ runId, step }) => `${runId} ${step}`);
  for (const [step, done] of steps) {
    const calls = [...new Set(done.map(({ callId }) => callId))].flatMap((id) => index.calls.get(id) ?? []);
    for (const [at, call] of calls.entries()) {
      const next = calls[at + 1];
      if (next === undefined || mayFollow(call) || isPoison(index.runs.get(call.runId))) continue;
      report("repeatedCalls", `Step ${step} was done by ${call.callId}, and again by ${next.callId}.`);
    }
  }
}

/** Whether the same step may be begun once more after this call. */
const mayFollow = (call: LoggedCall): boolean => call.outcome?.kind === "lost" && call.idempotent;

const isPoison = (run: LoggedRun | undefined): boolean => run !== undefined && killsOf(run).size > 0;

/** The steps of a run that take its server with them, by name. */
function killsOf({ script }: LoggedRun): ReadonlySet<string> {
  const named = (script?.turns ?? []).flatMap((steps, turn) =>
    steps.flatMap((step, index) => (step.do === "kill" ? [`${turn}.${index}`] : [])),
  );
  return new Set(named);
}

/** A run that takes its worker down is given up after three times. */
function checkPoison(run: LoggedRun, effects: readonly Effect[], report: Report): void {
  const { runId, outcomes, started } = run;
  const kills = killsOf(run);
  const times = effects.filter((one) => one.kind === "begin" && one.runId === runId && kills.has(one.step)).length;
  if (times > ATTEMPTS_MAX) report("repeatedCalls", `${runId} took its server down ${times} times.`);
  const [outcome] = outcomes;
  if (!started || outcome === undefined || outcome.kind === "cancelled") return;
  if (outcome.kind === "failed" && outcome.code === "crash_loop") return;
  report("falseOutcomes", `${runId} took its server down ${times} times, and ended as ${JSON.stringify(outcome)}.`);
}
