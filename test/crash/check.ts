// Holds what clients were told, and what tools really did, against the log. Pure: everything comes in, findings go out.
// Knows nothing of how a server is built; what it shares with one is the words of the log.
import { isDeepStrictEqual } from "node:util";
import type { Recorded } from "../../src/core/event.ts";
import type { RunId, SessionId } from "../../src/core/ids.ts";
import type { RunRow } from "../../src/core/rows.ts";
import { type Message, transcript } from "../../src/core/transcript.ts";
import { verifyAtRest } from "../../src/core/verify.ts";
import { checkEffects } from "./check-effects.ts";
import { checkReceipts } from "./check-receipts.ts";
import type { Effect } from "./effects.ts";
import type { Finding, Report } from "./finding.ts";
import type { History, OperationOf, Slice } from "./history.ts";
import { LogIndex, type Logs } from "./log-index.ts";
import { mispaired } from "./pairs.ts";

export interface Evidence {
  readonly history: History;
  readonly logs: Logs;
  readonly effects: readonly Effect[];
  /** The rows that the store has derived, by run. */
  readonly rows: ReadonlyMap<RunId, RunRow>;
  /** What the last server told of each session when everything had come to rest. */
  readonly transcripts: ReadonlyMap<SessionId, readonly Message[]>;
}

export interface Verdict {
  readonly findings: readonly Finding[];
  /** Prompts that were acknowledged. */
  readonly acked: number;
}

export function check(evidence: Evidence): Verdict {
  const findings: Finding[] = [];
  const report: Report = (kind, message) => findings.push({ kind, message });
  const index = new LogIndex(evidence.logs);
  const acked = checkPrompts(evidence.history, index, report);
  checkOutcomes(evidence, index, report);
  checkOrder(evidence.history, report);
  checkReceipts(evidence.history, index, report);
  checkEffects(evidence.effects, index, report);
  for (const slice of evidence.history.slices) checkSlice(slice, index, report);
  checkLogs(evidence, report);
  return { findings, acked };
}

type PromptOperation = OperationOf<"prompt">;

const promptsOf = ({ operations }: History): readonly PromptOperation[] =>
  operations.filter((one) => one.name === "prompt");

/** Answers how many were acknowledged. */
function checkPrompts(history: History, index: LogIndex, report: Report): number {
  const byLabel = Map.groupBy(promptsOf(history), ({ ask }) => ask.label);
  let acked = 0;
  for (const [label, tries] of byLabel) {
    const logged = index.labels.get(label) ?? [];
    const told = tries.flatMap(({ end }) => (end.kind === "ok" ? [end.told] : []));
    if (told.length > 0) acked += 1;
    for (const { runId, seq } of told) {
      const run = logged.find((one) => one.runId === runId);
      if (run === undefined) report("lost", `${label} was accepted as ${runId}, and the log has no such run.`);
      else if (run.seq !== seq) report("falseReceipts", `${runId} was accepted at ${run.seq}, and ${seq} was told.`);
    }
    if (new Set(told.map(({ runId }) => runId)).size > 1 || logged.length > 1) {
      report("doublePrompts", `${label} is ${logged.map(({ runId }) => runId).join(" and ")}.`);
    }
    if (tries.every(({ end }) => end.kind === "fail") && logged.length > 0) {
      report("refusedTraces", `${label} was refused, and is ${logged[0]?.runId} in the log.`);
    }
  }
  return acked;
}

function checkOutcomes({ history, rows }: Evidence, index: LogIndex, report: Report): void {
  for (const { runId, outcomes } of index.runs.values()) {
    if (outcomes.length === 0) report("withoutOutcome", `${runId} was accepted and has no outcome.`);
    if (outcomes.length > 1) report("twoOutcomes", `${runId} has ${outcomes.length} outcomes.`);
    const row = rows.get(runId);
    if (!isDeepStrictEqual(row?.outcome, outcomes[0])) {
      report("brokenLogs", `The row of ${runId} says ${said(row?.outcome)}, its log ${said(outcomes[0])}.`);
    }
  }
  for (const operation of history.operations) {
    if (operation.name !== "outcome" || operation.end.kind !== "ok") continue;
    const { runId } = operation.ask;
    const logged = index.runs.get(runId)?.outcomes[0];
    if (!isDeepStrictEqual(operation.end.told, logged)) {
      report("falseOutcomes", `${runId} was said to be ${said(operation.end.told)}, the log has ${said(logged)}.`);
    }
  }
}

/** What was acknowledged before another was sent stands before it. */
function checkOrder(history: History, report: Report): void {
  const prompts = promptsOf(history).flatMap((one) => (one.end.kind === "ok" ? [{ ...one, told: one.end.told }] : []));
  for (const later of prompts) {
    // A second sending is answered with where the first one stands.
    if (later.told.repeated) continue;
    for (const earlier of prompts) {
      if (earlier.sessionId !== later.sessionId || earlier.ended >= later.began) continue;
      if (earlier.told.seq < later.told.seq) continue;
      report(
        "outOfOrder",
        `${earlier.ask.label} was accepted before ${later.ask.label} was sent, and stands behind it.`,
      );
    }
  }
}

/** A follower hears a contiguous piece of the log, and nothing else. */
function checkSlice({ sessionId, after, events }: Slice, index: LogIndex, report: Report): void {
  const log = index.logs.get(sessionId) ?? [];
  for (const [at, heard] of events.entries()) {
    const expected = after + at + 1;
    if (heard.seq !== expected) {
      report("brokenSlices", `A follower of ${sessionId} heard ${heard.seq} where ${expected} follows.`);
      return;
    }
    const there = log[expected - 1];
    if (!isDeepStrictEqual(heard, there === undefined ? there : placeless(there))) {
      const had = there?.type ?? "nothing";
      report("brokenSlices", `A follower of ${sessionId} heard ${heard.type} at ${expected}; the log has ${had}.`);
      return;
    }
  }
}

/** Where the server keeps its files is told to nobody. */
function placeless(event: Recorded): Recorded {
  if (event.type !== "process.settled" || event.output === undefined) return event;
  const { dir: _, ...output } = event.output;
  return { ...event, output };
}

function checkLogs({ logs, transcripts }: Evidence, report: Report): void {
  for (const [sessionId, events] of logs) {
    for (const { guarantee, seq, message } of verifyAtRest(events)) {
      report("brokenLogs", `${sessionId} at ${seq}: ${guarantee}: ${message}`);
    }
    const messages = transcript(events);
    const why = mispaired(messages);
    if (why !== undefined) report("brokenTranscripts", `${sessionId}: ${why}.`);
    const told = transcripts.get(sessionId);
    if (told !== undefined && !isDeepStrictEqual(told, JSON.parse(JSON.stringify(messages)))) {
      report("brokenTranscripts", `${sessionId}: the transcript that was told is not that of the log.`);
    }
  }
}

const said = (value: unknown): string => JSON.stringify(value) ?? "nothing";
