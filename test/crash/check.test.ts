// What only a crash loop checks; the model itself is tested in test/oracle.
import { expect, test } from "vitest";
import type { Outcome } from "../../src/core/model/cancel.ts";
import type { Event, Recorded } from "../../src/core/model/event.ts";
import type { CallId, RunId, SessionId } from "../../src/core/model/ids.ts";
import type { RunRow } from "../../src/core/model/rows.ts";
import { checkRound, type RoundEvidence } from "./check.ts";
import type { Effect } from "./effects.ts";
import type { FindingKind } from "./finding.ts";
import type { Step } from "./script.ts";

const sessionId: SessionId = "ses_a";
const runId: RunId = "run_one";
const callId: CallId = "call_one.1";
const outcome: Outcome = { kind: "completed" };

/** One run with one call, which does this step. */
const log = (step: Step): readonly Recorded[] => {
  const turn = { runId, turnId: "turn_one.1" } as const;
  const data = { label: "first", turns: [[{ ...step }]] };
  const events: readonly Event[] = [
    { type: "session.created", sessionId },
    { type: "run.accepted", runId, prompt: { text: "first", data }, delivery: "queue" },
    { type: "run.started", runId },
    { type: "turn.requested", ...turn },
    { type: "call.requested", runId, callId, name: "call", input: { step: "0.0" } },
    { type: "call.settled", runId, callId, outcome },
    { type: "turn.settled", ...turn, outcome, next: "end", text: "" },
    { type: "run.settled", runId, outcome },
  ];
  return events.map((event, index) => ({ ...event, seq: index + 1, at: 0 }));
};

const begin: Effect = { kind: "begin", runId, callId, step: "0.0" };
const end: Effect = { ...begin, kind: "end" };
const row: RunRow = {
  ...{ id: runId, session: sessionId, phase: "settled", acceptedAt: 2, settledAt: 8, outcome },
  ...{ key: undefined, content: undefined },
};

function kinds(changed: Partial<RoundEvidence>, step: Step = { do: "call", ms: 0 }): readonly FindingKind[] {
  const { findings } = checkRound({
    ...{ history: { requests: [], slices: [] }, logs: new Map([[sessionId, log(step)]]), effects: [begin, end] },
    ...{ rows: new Map([[runId, row]]), transcripts: new Map(), ...changed },
  });
  return [...new Set(findings.map(({ kind }) => kind))];
}

test("a round that fits its log has no findings, and its acknowledged prompts are counted", () => {
  expect(kinds({})).toEqual([]);
  const receipt = { kind: "accepted", runId, seq: 2, joined: "queue", ahead: 0, repeated: false } as const;
  const prompt = { name: "prompt", sessionId, params: { label: "first" }, sentAt: 1, answeredAt: 2 } as const;
  const requests = [1, 2].map(() => ({ ...prompt, answer: { kind: "returned", value: receipt } }) as const);
  const evidence = { logs: new Map([[sessionId, log({ do: "call", ms: 0 })]]), effects: [begin, end] };
  expect(
    checkRound({
      ...evidence,
      history: { requests, slices: [] },
      rows: new Map([[runId, row]]),
      transcripts: new Map(),
    }),
  ).toEqual({ findings: [], acked: 1 });
});

test("a row that differs from its log is found", () => {
  expect(kinds({ rows: new Map() })).toEqual(["brokenLogs"]);
});

test("a run that kills its server and does not fail, or begins a fourth time, is found", () => {
  expect(kinds({}, { do: "kill" })).toEqual(["falseOutcomes"]);
  const others = [2, 3, 4].map((n): Effect => ({ ...begin, callId: `call_one.${n}` }));
  expect(kinds({ effects: [begin, end, ...others] }, { do: "kill" })).toContain("repeatedCalls");
});

test("a transcript that no provider takes, given to a turn, is found", () => {
  const bad: Effect = { kind: "bad-transcript", runId, why: "results without calls" };
  expect(kinds({ effects: [begin, end, bad] })).toEqual(["brokenTranscripts"]);
});
