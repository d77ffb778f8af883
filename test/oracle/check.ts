// The independent model of the contract: compares what callers were answered, and what work was really carried out,
// with the logs. Pure: evidence in, findings out.
//
// Invariants
// 1. Shares no code with `decide` or `verify`. What `verify` finds in a log is left to it; it runs here as well.
// 2. Knows nothing of how the evidence was gathered, so that it can be tested with made-up histories.
import type { Recorded } from "../../src/core/model/event.ts";
import type { SessionId } from "../../src/core/model/ids.ts";
import type { Message } from "../../src/core/read/transcript.ts";
import { transcript } from "../../src/core/read/transcript-builder.ts";
import { verifyAtRest } from "../../src/core/read/verify.ts";
import { type CallerHistory, requestsOf } from "./caller-history.ts";
import { checkAbandoned } from "./check-abandoned.ts";
import { checkAnswers } from "./check-answers.ts";
import { type CancelRules, checkCancels } from "./check-cancels.ts";
import { checkChanges } from "./check-changes.ts";
import { type CoverageRules, checkCoverage } from "./check-coverage.ts";
import { checkEffects, type Effect } from "./check-effects.ts";
import { checkProcesses } from "./check-processes.ts";
import { checkPrompts } from "./check-prompts.ts";
import { checkQuestions } from "./check-questions.ts";
import { checkSlice } from "./check-slices.ts";
import { transcriptErrors } from "./check-transcript.ts";
import { type Finding, type FindingKind, findingsInto, type Report } from "./finding.ts";
import { type LabelOf, LogIndex, type Logs, same } from "./log-index.ts";

export interface Evidence extends CancelRules, CoverageRules {
  readonly history: CallerHistory;
  /** Everything that was ever appended, even if it was trimmed since. */
  readonly logs: Logs;
  /** Undefined: nothing was carried out for real. */
  readonly effects?: readonly Effect[];
  readonly labelOf: LabelOf;
  /** The transcripts that a server returned when everything was at rest. */
  readonly transcripts?: ReadonlyMap<SessionId, readonly Message[]>;
}

/** Everything that contradicts the contract, once everything is at rest. An empty list is the good answer. */
export function check(evidence: Evidence): readonly Finding[] {
  const { history, logs, effects, labelOf, transcripts } = evidence;
  const findings: Finding[] = [];
  const report = findingsInto(findings);
  const index = new LogIndex(logs, labelOf);
  noteAliases(history, index);
  checkAnswers(history, index, report);
  checkPrompts(history, index, report);
  checkChanges(history, index, report);
  checkQuestions(history, index, evidence, report);
  checkProcesses(history, index, report);
  checkCancels(history, index, evidence, report);
  checkCoverage(history, index, evidence, report);
  checkAbandoned(index, report);
  if (effects !== undefined) checkEffects(effects, index, report);
  for (const slice of history.slices) checkSlice(slice, index, report);
  for (const [sessionId, log] of logs) {
    checkLog(sessionId, log, report);
    checkTranscript(sessionId, log, transcripts?.get(sessionId), report);
  }
  return findings;
}

/** The kinds of findings that `verify` reports under these guarantees; all others are broken logs. */
const LOG_KINDS: Readonly<Record<string, FindingKind>> = {
  G1: "withoutOutcome",
  G8: "withoutOutcome",
  G24: "withoutOutcome",
  G14: "twoOutcomes",
};

function checkLog(sessionId: SessionId, log: readonly Recorded[], report: Report): void {
  for (const { guarantee, seq, message } of verifyAtRest(log)) {
    report(LOG_KINDS[guarantee] ?? "brokenLogs", `${sessionId} at ${seq}: ${message}`, guarantee);
  }
}

function checkTranscript(
  sessionId: SessionId,
  log: readonly Recorded[],
  returned: readonly Message[] | undefined,
  report: Report,
): void {
  for (const error of transcriptErrors(log)) report("brokenTranscripts", `${sessionId}: ${error}.`);
  if (returned !== undefined && !same(returned, transcript(log))) {
    report("brokenTranscripts", `${sessionId}: the returned transcript is not that of the log.`);
  }
}

/** The id of a prompt that only repeats an earlier one means that one's run, until its acceptance was answered. */
function noteAliases(history: CallerHistory, index: LogIndex): void {
  for (const { params } of requestsOf(history, "prompt")) {
    const { runId, label } = params;
    const run = label === undefined ? undefined : index.labels.get(label)?.[0];
    if (runId !== undefined && run !== undefined && !index.runs.has(runId)) index.aliases.set(runId, run.runId);
  }
}
