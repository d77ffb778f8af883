// The evidence of one round, for the model: and what only a crash loop has, which are the rows of its store, the
// transcripts its agent was given, and the runs whose tool kills the server.

import { ATTEMPTS_MAX } from "../../src/core/limits.ts";
import type { RunId, SessionId } from "../../src/core/model/ids.ts";
import type { RunRow } from "../../src/core/model/rows.ts";
import type { Message } from "../../src/core/read/transcript.ts";
import type { CallerHistory } from "../oracle/caller-history.ts";
import { check } from "../oracle/check.ts";
import type { Effect as ModelEffect } from "../oracle/check-effects.ts";
import { acknowledged } from "../oracle/check-prompts.ts";
import { type Finding, findingsInto, type Report } from "../oracle/finding.ts";
import { type LabelOf, type LoggedRun, LogIndex, type Logs, print, same } from "../oracle/log-index.ts";
import type { Effect } from "./effects.ts";
import { scriptOf } from "./script.ts";

export interface RoundEvidence {
  readonly history: CallerHistory;
  readonly logs: Logs;
  readonly effects: readonly Effect[];
  /** The rows that the store has derived, by run. */
  readonly rows: ReadonlyMap<RunId, RunRow>;
  /** The transcript of each session that the last server returned when everything was at rest. */
  readonly transcripts: ReadonlyMap<SessionId, readonly Message[]>;
}

export interface Verdict {
  readonly findings: readonly Finding[];
  /** Prompts that were acknowledged. */
  readonly acked: number;
}

export function checkRound({ history, logs, effects, rows, transcripts }: RoundEvidence): Verdict {
  const found: Finding[] = [];
  const report = findingsInto(found);
  const { runs } = new LogIndex(logs, labelOf);
  for (const run of runs.values()) {
    checkRow(run, rows.get(run.runId), report);
    if (killsOf(run).size > 0) checkKilling(run, effects, report);
  }
  for (const effect of effects) {
    if (effect.kind !== "bad-transcript") continue;
    report("brokenTranscripts", `A turn of ${effect.runId} was given what no provider takes: ${effect.why}.`);
  }
  const carriedOut = effects.flatMap((effect) => modelEffect(effect, runs));
  const findings = check({ history, logs, effects: carriedOut, labelOf, storeFails: false, transcripts });
  return { findings: [...findings, ...found], acked: acknowledged(history) };
}

const labelOf: LabelOf = ({ prompt }) => scriptOf(prompt.data)?.label;

/** A run that kills its server repeats its steps. */
function modelEffect(effect: Effect, runs: ReadonlyMap<RunId, LoggedRun>): readonly ModelEffect[] {
  if (effect.kind === "bad-transcript") return [];
  const { kind, callId: work, runId } = effect;
  const run = runs.get(runId);
  const repeats = run !== undefined && killsOf(run).size > 0;
  return [{ kind, work, step: repeats ? undefined : `${runId} ${effect.step}` }];
}

function checkRow({ runId, outcome }: LoggedRun, row: RunRow | undefined, report: Report): void {
  if (same(row?.outcome, outcome)) return;
  report("brokenLogs", `The row of ${runId} has ${print(row?.outcome)}, its log ${print(outcome)}.`);
}

/** The steps of a run that kill its server, by name. */
function killsOf({ accepted }: LoggedRun): ReadonlySet<string> {
  const named = (scriptOf(accepted.prompt.data)?.turns ?? []).flatMap((steps, turn) =>
    steps.flatMap((step, index) => (step.do === "kill" ? [`${turn}.${index}`] : [])),
  );
  return new Set(named);
}

/** A run that crashes its worker three times fails. */
function checkKilling(run: LoggedRun, effects: readonly Effect[], report: Report): void {
  const { runId, outcome, started } = run;
  const kills = killsOf(run);
  const times = effects.filter((one) => one.kind === "begin" && one.runId === runId && kills.has(one.step)).length;
  if (times > ATTEMPTS_MAX) report("repeatedCalls", `${runId} killed its server ${times} times.`);
  if (!started || outcome === undefined || outcome.kind === "cancelled") return;
  if (outcome.kind === "failed" && outcome.code === "crash_loop") return;
  report("falseOutcomes", `${runId} killed its server ${times} times, and ended as ${print(outcome)}.`);
}
