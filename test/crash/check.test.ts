import { describe, expect, test } from "vitest";
import type { Outcome } from "../../src/core/cancel.ts";
import type { Event, Recorded } from "../../src/core/event.ts";
import type { CallId, RunId, SessionId, TurnId } from "../../src/core/ids.ts";
import type { RunRow } from "../../src/core/rows.ts";
import { transcript } from "../../src/core/transcript.ts";
import { check, type Evidence } from "./check.ts";
import type { Effect } from "./effects.ts";
import type { FindingKind } from "./finding.ts";
import type { Operation, OperationOf } from "./history.ts";
import type { Step } from "./script.ts";

const sessionId: SessionId = "ses_a";
const [one, two]: readonly [RunId, RunId] = ["run_one", "run_two"];
const call: CallId = "call_one.1";
const completed: Outcome = { kind: "completed" };
const enough: Outcome = { kind: "cancelled", reason: { kind: "user" } };

const accepted = (runId: RunId, label: string, step: Step = { do: "call", ms: 0 }): Event => ({
  type: "run.accepted",
  runId,
  prompt: { text: label, data: { label, turns: [[{ ...step }]] } },
  delivery: "queue",
});
const turn = (runId: RunId): { runId: RunId; turnId: TurnId } => ({ runId, turnId: `turn_${runId.slice(4)}.1` });
const settledTurn = (runId: RunId, outcome: Outcome): Event => ({
  ...{ type: "turn.settled", ...turn(runId), outcome, next: "end", text: "" },
});

/** One run with one call, and one that was withdrawn before it began. */
const GOOD: readonly Event[] = [
  { type: "session.created", sessionId },
  accepted(one, "first"),
  { type: "run.started", runId: one },
  { type: "turn.requested", ...turn(one) },
  { type: "call.requested", runId: one, callId: call, name: "call", input: { step: "0.0" } },
  accepted(two, "second"),
  { type: "run.settled", runId: two, outcome: enough },
  { type: "call.settled", runId: one, callId: call, outcome: completed },
  settledTurn(one, completed),
  { type: "run.settled", runId: one, outcome: completed },
];

const begin: Effect = { kind: "begin", runId: one, callId: call, step: "0.0" };
const end: Effect = { ...begin, kind: "end" };

const prompt = (label: string, runId: RunId, seq: number, began: number): Operation => ({
  ...{ name: "prompt", sessionId, began, ended: began + 1 },
  ask: { label, key: `key-${label}`, delivery: "queue" },
  end: { kind: "ok", told: { kind: "accepted", runId, seq, joined: "queue", ahead: 0, repeated: false } },
});
const outcomeTold = (runId: RunId, told: Outcome): Operation => ({
  ...{ name: "outcome", sessionId, ask: { runId }, began: 50, ended: 51, end: { kind: "ok", told } },
});
const OPERATIONS: readonly Operation[] = [
  prompt("first", one, 2, 1),
  prompt("second", two, 6, 3),
  outcomeTold(one, completed),
  {
    ...{ name: "cancel-run", sessionId, ask: { runId: two }, began: 5, ended: 6 },
    end: { kind: "ok", told: { kind: "withdrawn" } },
  },
];

const record = (events: readonly Event[]): readonly Recorded[] =>
  events.map((event, index) => ({ ...event, seq: index + 1, at: 0 }));

interface Made {
  readonly events?: readonly Event[];
  readonly operations?: readonly Operation[];
  readonly effects?: readonly Effect[];
  readonly evidence?: Partial<Evidence>;
}

function evidenceOf({ events = GOOD, operations = OPERATIONS, effects = [begin, end], evidence }: Made): Evidence {
  const log = record(events);
  const rows = new Map<RunId, RunRow>();
  for (const event of log) {
    if (event.type !== "run.settled" || rows.has(event.runId)) continue;
    const { runId: id, seq: settledAt, outcome } = event;
    const none = { acceptedAt: 0, key: undefined, content: undefined };
    rows.set(id, { ...none, id, session: sessionId, phase: "settled", settledAt, outcome });
  }
  return {
    ...{ history: { operations, slices: [] }, logs: new Map([[sessionId, log]]), rows, effects },
    transcripts: new Map([[sessionId, transcript(log)]]),
    ...evidence,
  };
}

const kinds = (made: Made): readonly FindingKind[] => [
  ...new Set(check(evidenceOf(made)).findings.map(({ kind }) => kind)),
];

/** Puts something else in place of one event. */
const but = (at: number, ...events: readonly Event[]): readonly Event[] => GOOD.toSpliced(at, 1, ...events);

test("a history that fits its log has no findings, and its acknowledged prompts are counted", () => {
  expect(check(evidenceOf({}))).toEqual({ findings: [], acked: 2 });
});

describe("the checker finds", () => {
  test("a prompt that was acknowledged and is not in the log", () => {
    expect(kinds({ operations: [...OPERATIONS, prompt("third", "run_three", 11, 9)] })).toEqual(["lost"]);
  });

  test("a run that has no outcome", () => {
    expect(kinds({ events: GOOD.slice(0, -1), operations: [] })).toContain("withoutOutcome");
  });

  test("a run that has two outcomes", () => {
    const twice: Event = { type: "run.settled", runId: one, outcome: completed };
    expect(kinds({ events: [...GOOD, twice] })).toContain("twoOutcomes");
  });

  test("an outcome that was told and is not the recorded one", () => {
    expect(kinds({ operations: [...OPERATIONS, outcomeTold(one, { kind: "lost" })] })).toEqual(["falseOutcomes"]);
  });

  test("a row that says something else than its log", () => {
    expect(kinds({ evidence: { rows: new Map() } })).toEqual(["brokenLogs"]);
  });

  test("one key with two runs", () => {
    const again = accepted("run_three", "first");
    const last: Event = { type: "run.settled", runId: "run_three", outcome: enough };
    expect(kinds({ events: [...GOOD, again, last] })).toContain("doublePrompts");
  });

  test("something that was refused and is in the log", () => {
    const refused = OPERATIONS.map((operation) =>
      operation.name === "prompt" && operation.ask.label === "second"
        ? { ...operation, end: { kind: "fail", code: "busy" } as const }
        : operation,
    );
    expect(kinds({ operations: refused })).toEqual(["refusedTraces"]);
  });

  test("a prompt of which nobody knows, in the log or not, is no finding", () => {
    const unsure = (label: string): OperationOf<"prompt"> => ({
      ...{ name: "prompt", sessionId, began: 1, ended: 2, ask: { label, key: undefined, delivery: "queue" } },
      end: { kind: "info", code: "disconnected" },
    });
    expect(kinds({ operations: [unsure("first"), unsure("second"), unsure("third")] })).toEqual([]);
  });

  test("prompts that stand in another order than they were accepted in", () => {
    expect(kinds({ operations: [prompt("second", two, 6, 1), prompt("first", one, 2, 3)] })).toEqual(["outOfOrder"]);
  });

  test("a call that was carried out twice, or under the name of another call", () => {
    expect(kinds({ effects: [begin, begin, end] })).toEqual(["repeatedCalls"]);
    const again: CallId = "call_one.2";
    const asked: Event = { type: "call.requested", runId: one, callId: again, name: "call", input: { step: "0.0" } };
    const settled: Event = { type: "call.settled", runId: one, callId: again, outcome: completed };
    const effects: readonly Effect[] = [begin, end, { ...begin, callId: again }, { ...end, callId: again }];
    expect(kinds({ events: GOOD.toSpliced(8, 0, asked, settled), effects })).toEqual(["repeatedCalls"]);
  });

  test("a call that was carried out and of which the log does not know", () => {
    expect(kinds({ effects: [begin, end, { ...begin, callId: "call_one.7", step: "0.7" }] })).toEqual([
      "repeatedCalls",
    ]);
  });

  test("a call that is said to have completed and never came to its end", () => {
    expect(kinds({ effects: [begin] })).toEqual(["falseOutcomes"]);
  });

  test("a call that may be repeated, and was, is no finding", () => {
    const asked: Event = {
      ...{ type: "call.requested", runId: one, callId: call, name: "call", input: { step: "0.0" }, idempotent: true },
    };
    expect(kinds({ events: but(4, asked), effects: [begin, begin, end] })).toEqual([]);
  });

  test("a run that kills its server and does not fail, or is begun a fourth time", () => {
    const poison = accepted(one, "first", { do: "kill" });
    expect(kinds({ events: but(1, poison) })).toEqual(["falseOutcomes"]);
    const others = [2, 3, 4].map((n): Effect => ({ ...begin, callId: `call_one.${n}` }));
    expect(kinds({ events: but(1, poison), effects: [begin, end, ...others] })).toContain("repeatedCalls");
  });

  test("a transcript that no provider takes, told to a turn or to a client", () => {
    const bad: Effect = { kind: "bad-transcript", runId: one, why: "results without calls" };
    expect(kinds({ effects: [begin, end, bad] })).toEqual(["brokenTranscripts"]);
    expect(kinds({ evidence: { transcripts: new Map([[sessionId, []]]) } })).toEqual(["brokenTranscripts"]);
  });

  test("a follower that missed something, or heard something else", () => {
    const heard = record(GOOD);
    const slice = (events: readonly Recorded[]): Partial<Evidence> => ({
      history: { operations: OPERATIONS, slices: [{ sessionId, after: 0, events }] },
    });
    expect(kinds({ evidence: slice(heard) })).toEqual([]);
    expect(kinds({ evidence: slice(heard.toSpliced(3, 1)) })).toEqual(["brokenSlices"]);
    const other: Recorded = { type: "run.started", runId: two, seq: 3, at: 0 };
    expect(kinds({ evidence: slice(heard.toSpliced(2, 1, other)) })).toEqual(["brokenSlices"]);
    const beyond: Recorded = { type: "run.started", runId: two, seq: 11, at: 0 };
    expect(kinds({ evidence: slice([...heard, beyond]) })).toEqual(["brokenSlices"]);
  });

  test("a log that breaks the contract in itself", () => {
    expect(kinds({ events: GOOD.toSpliced(3, 0, { type: "run.started", runId: two }) })).toContain("brokenLogs");
  });
});

describe("a receipt is false if", () => {
  const told = (operation: Operation): readonly FindingKind[] => kinds({ operations: [...OPERATIONS, operation] });
  const moment = { sessionId, began: 60, ended: 61 };

  test("what is stopping was not stopped", () => {
    const ask = { runId: one };
    const stopping = { kind: "ok", told: { kind: "stopping", since: 4, first: true } } as const;
    expect(told({ ...moment, name: "cancel-run", ask, end: stopping })).toEqual(["falseReceipts"]);
    expect(told({ ...moment, name: "cancel-call", ask: { callId: call }, end: stopping })).toEqual(["falseReceipts"]);
  });

  test("what was withdrawn had begun", () => {
    const withdrawn = { kind: "ok", told: { kind: "withdrawn" } } as const;
    expect(told({ ...moment, name: "cancel-run", ask: { runId: one }, end: withdrawn })).toEqual(["falseReceipts"]);
    const runs = [{ runId: one, receipt: { kind: "withdrawn" } }] as const;
    expect(
      told({
        ...{ ...moment, name: "cancel-session", ask: { background: "stop" } },
        end: { kind: "ok", told: { kind: "withdrawn", runs } },
      }),
    ).toEqual(["falseReceipts"]);
  });

  test("what had ended had ended otherwise", () => {
    const settled = { kind: "ok", told: { kind: "settled", outcome: { kind: "lost" } } } as const;
    expect(told({ ...moment, name: "cancel-run", ask: { runId: one }, end: settled })).toEqual(["falseReceipts"]);
    expect(told({ ...moment, name: "cancel-prompt", ask: { label: "first" }, end: settled })).toEqual([
      "falseReceipts",
    ]);
  });

  test("what is there was called unknown, or its stop was refused", () => {
    const unknown = { kind: "ok", told: { kind: "unknown" } } as const;
    expect(told({ ...moment, name: "cancel-run", ask: { runId: one }, end: unknown })).toEqual(["falseReceipts"]);
    expect(told({ ...moment, name: "cancel-prompt", ask: { label: "first" }, end: unknown })).toEqual([
      "falseReceipts",
    ]);
    const refused = { kind: "fail", code: "busy" } as const;
    expect(told({ ...moment, name: "cancel-run", ask: { runId: one }, end: refused })).toEqual(["falseReceipts"]);
  });

  test("the stop of a prompt counted, and the prompt is nowhere", () => {
    const withdrawn = { kind: "ok", told: { kind: "withdrawn" } } as const;
    expect(told({ ...moment, name: "cancel-prompt", ask: { label: "none" }, end: withdrawn })).toEqual(["lost"]);
  });

  test("a change of the queue is not where it is said to be", () => {
    const changed = { kind: "ok", told: { kind: "changed", seq: 7 } } as const;
    expect(told({ ...moment, name: "withdraw", ask: { runId: two }, end: changed })).toEqual([]);
    expect(told({ ...moment, name: "move", ask: { runId: two }, end: changed })).toEqual(["falseReceipts"]);
    expect(told({ ...moment, name: "edit", ask: { runId: two, text: "x" }, end: changed })).toEqual(["falseReceipts"]);
  });

  test("a change that came too late has been made", () => {
    const edited: Event = { type: "run.edited", runId: two, prompt: { text: "other" } };
    const late: Operation = {
      ...{ ...moment, name: "edit", ask: { runId: two, text: "other" } },
      end: { kind: "ok", told: { kind: "started" } },
    };
    expect(kinds({ events: GOOD.toSpliced(6, 0, edited), operations: [late] })).toEqual(["refusedTraces"]);
  });

  test("an answer was not the one that counted", () => {
    const recorded = { kind: "ok", told: { kind: "recorded", questionId: "ask_one.1" } } as const;
    const ask = { questionId: "ask_one.1", reply: "allowed" } as const;
    expect(told({ ...moment, name: "answer", ask, end: recorded })).toEqual(["falseReceipts"]);
  });
});
