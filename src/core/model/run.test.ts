// How a live run changes with each event.
import { expect, test } from "vitest";
import {
  abandonedBy,
  approval,
  cancelledBy,
  completed,
  failed,
  lost,
  plainQuestion,
  policy,
  user,
} from "../../../test/fixtures/commands.ts";
import { Bug } from "../bug.ts";
import { evolveCall } from "./call.ts";
import type { Outcome } from "./cancel.ts";
import type { QuestionOutcome, Subject } from "./question.ts";
import { evolveRun, type LiveEvent, type Run } from "./run.ts";

const run: Run = {
  phase: "running",
  id: "run_a",
  prompt: { text: "hello" },
  acceptedAt: 2,
  key: "k",
  content: "c",
  attempt: 1,
  recoveries: 0,
  last: undefined,
  model: undefined,
  textChars: 0,
  taken: [],
  turns: 1,
  calls: 0,
  turn: "turn_a.1",
  live: [],
  questions: [],
  asked: 0,
  spent: { inputTokens: 0, outputTokens: 0, estimated: false },
  meter: undefined,
};

const turnSettled = {
  type: "turn.settled",
  runId: "run_a",
  turnId: "turn_a.1",
  outcome: completed,
  next: "end",
} as const;
const requested = { type: "call.requested", runId: "run_a", callId: "call_a.1", name: "build", input: null } as const;
const callSettled = { type: "call.settled", runId: "run_a", callId: "call_a.1", outcome: completed } as const;
const cancelled = { type: "run.cancel_requested", runId: "run_a", reason: user } as const;

/** The run after these events, the first of which is at position 10. */
const after = (...events: readonly LiveEvent[]): Run =>
  events.reduce<Run>((state, event, index) => evolveRun(state, event, 10 + index), run);

test("a cancel is kept with its reason and position", () => {
  expect(after(cancelled)).toEqual({ ...run, phase: "stopping", reason: user, since: 10, abandoned: [] });
});

test("a parked run keeps everything but its phase", () => {
  expect(after({ type: "run.parked", runId: "run_a" })).toEqual({ ...run, phase: "parked" });
});

test("a recovered run runs, and remembers its attempts", () => {
  const events = [
    { type: "run.parked", runId: "run_a" },
    { type: "run.recovered", runId: "run_a", attempt: 2 },
  ] as const;
  expect(after(...events)).toEqual({ ...run, attempt: 2, recoveries: 1 });
});

test("a requested turn is owned and counted", () => {
  const next = { type: "turn.requested", runId: "run_a", turnId: "turn_a.2" } as const;
  expect(after({ ...turnSettled, next: "turn" }, next)).toEqual({
    ...run,
    turn: "turn_a.2",
    turns: 2,
    last: { turnId: "turn_a.2", text: "" },
  });
});

test("kept text is that of its last turn", () => {
  expect(after({ type: "turn.extended", runId: "run_a", turnId: "turn_a.1", text: "x" })).toEqual({
    ...run,
    textChars: 1,
    last: { turnId: "turn_a.1", text: "x" },
  });
});

test("G18: the known cost of a live turn is kept with its text", () => {
  const usage = { inputTokens: 3, outputTokens: 1, estimated: true };
  const extended = { type: "turn.extended", runId: "run_a", turnId: "turn_a.1", text: "x" } as const;
  expect(after({ ...extended, usage })).toMatchObject({ meter: usage, textChars: 1 });
  expect(after({ ...extended, usage }, extended)).toMatchObject({ meter: usage, textChars: 2 });
});

test("G5: steers taken in are kept for a repeated turn, until one that had them completes", () => {
  const taken = [{ text: "and quickly" }];
  const settled = (outcome: Outcome): Run =>
    evolveRun({ ...run, taken }, { ...turnSettled, outcome, next: "turn" }, 10);
  expect(settled(completed).taken).toEqual([]);
  for (const outcome of [lost, failed, cancelledBy({ kind: "shutdown" })]) {
    expect(settled(outcome).taken).toEqual(taken);
  }
});

test("requested calls are owned and counted, in their order", () => {
  expect(after(requested, { ...requested, callId: "call_a.2", name: "test" })).toStrictEqual({
    ...run,
    calls: 2,
    live: [
      { phase: "running", id: "call_a.1", name: "build" },
      { phase: "running", id: "call_a.2", name: "test" },
    ],
  });
});

test("a settled call is removed, and its siblings stay", () => {
  const state = after(requested, { ...requested, callId: "call_a.2", name: "test" }, callSettled);
  expect(state).toEqual({ ...run, calls: 2, live: [{ phase: "running", id: "call_a.2", name: "test" }] });
});

test("a cancelled call is kept with its reason and position, and its siblings are unchanged", () => {
  const cancel = { type: "call.cancel_requested", runId: "run_a", callId: "call_a.2", reason: policy } as const;
  expect(after(requested, { ...requested, callId: "call_a.2", name: "test" }, cancel).live).toEqual([
    { phase: "running", id: "call_a.1", name: "build" },
    { phase: "stopping", id: "call_a.2", name: "test", reason: policy, since: 12, remind: false },
  ]);
});

test("a call's request is not a change of the call", () => {
  const call = { phase: "running", id: "call_a.1", name: "build" } as const;
  expect(evolveCall(call, requested, 9)).toBe(call);
});

test("a turn that ends the run while calls are live makes it an ending run", () => {
  const state = after(requested, { ...turnSettled, outcome: failed });
  expect(state).toMatchObject({ phase: "ending", outcome: failed, turn: undefined });
});

test("a turn that ends the run with no live calls leaves it running: its outcome follows at once", () => {
  expect(after(turnSettled)).toEqual({ ...run, turn: undefined });
});

test("a turn that asks for another does not make it an ending run", () => {
  expect(after(requested, { ...turnSettled, next: "turn" })).toMatchObject({ phase: "running", turn: undefined });
});

test("a turn that ends while the run is being stopped leaves it being stopped", () => {
  expect(after(requested, cancelled, turnSettled)).toMatchObject({ phase: "stopping", turn: undefined, abandoned: [] });
});

test("G12: abandoned work is noted by name, the turn as `turn`", () => {
  const state = after(
    requested,
    { ...requested, callId: "call_a.2", name: "test" },
    cancelled,
    { ...callSettled, outcome: abandonedBy(user, "anything") },
    { ...turnSettled, outcome: abandonedBy(user, "anything") },
  );
  expect(state).toMatchObject({ phase: "stopping", abandoned: ["build", "turn"] });
});

test("work that stopped in time, completed or failed is not noted", () => {
  for (const outcome of [cancelledBy(user), completed, failed]) {
    expect(after(requested, cancelled, { ...callSettled, outcome })).toMatchObject({ abandoned: [] });
    expect(after(cancelled, { ...turnSettled, outcome })).toMatchObject({ abandoned: [] });
  }
});

test("a call abandoned in a run that continues is not noted", () => {
  const state = after(requested, { ...callSettled, outcome: abandonedBy(user, "build") });
  expect(state).toEqual({ ...run, calls: 1 });
});

test("an abandoned call whose request is unknown is noted by its id", () => {
  const state = after(cancelled, { ...callSettled, outcome: abandonedBy(user, "build") });
  expect(state).toMatchObject({ abandoned: ["call_a.1"] });
});

test("an ending run that is cancelled loses its ending outcome", () => {
  const state = after(requested, turnSettled, cancelled);
  expect(state).toEqual({
    ...run,
    phase: "stopping",
    turn: undefined,
    calls: 1,
    live: [{ phase: "running", id: "call_a.1", name: "build" }],
    reason: user,
    since: 12,
    abandoned: [],
  });
});

test("settling a turn that the run does not own is a contradiction", () => {
  expect(() => after({ ...turnSettled, turnId: "turn_a.2" })).toThrow(
    new Bug("turn_a.2 settled, but run_a owns turn_a.1"),
  );
  expect(() => after({ ...turnSettled, next: "turn" }, turnSettled)).toThrow(
    new Bug("turn_a.1 settled, but run_a owns no turn"),
  );
});

test("a refused call leaves a gap in the numbers, and its number is not reused", () => {
  const later = { type: "call.requested", runId: "run_a", callId: "call_a.3", name: "build", input: null } as const;
  expect(after(later).calls).toBe(3);
});

const askedFor = (questionId: "ask_a.1" | "ask_a.2", about: Subject): LiveEvent => ({
  type: "question.asked",
  runId: "run_a",
  questionId,
  owner: "call_a.1",
  about,
});
const endedAs = (questionId: "ask_a.1" | "ask_a.2", ending: QuestionOutcome): LiveEvent => ({
  type: "question.settled",
  runId: "run_a",
  questionId,
  ending,
});

test("questions are open and counted until they settle, each separately", () => {
  const two = [askedFor("ask_a.1", approval()), askedFor("ask_a.2", plainQuestion)];
  expect(after(requested, ...two)).toMatchObject({ asked: 2, questions: [{ id: "ask_a.1" }, { id: "ask_a.2" }] });
  const one = after(requested, ...two, endedAs("ask_a.1", { kind: "expired", limitMs: 1 }));
  expect(one).toMatchObject({ asked: 2, questions: [{ id: "ask_a.2", owner: "call_a.1", about: plainQuestion }] });
});

test("the answer to an approval stays with its call; an expired one is a no, and a withdrawn one is no answer", () => {
  const verdictAfter = (ending: QuestionOutcome, about: Subject = approval()) =>
    after(requested, { ...requested, callId: "call_a.2" }, askedFor("ask_a.1", about), endedAs("ask_a.1", ending)).live;
  const call = { phase: "running", id: "call_a.1", name: "build" } as const;
  const sibling = { ...call, id: "call_a.2" };
  const verdict = (allowed: boolean) => [{ ...call, verdict: { digest: "d1", allowed } }, sibling];
  expect(verdictAfter({ kind: "allowed" })).toEqual(verdict(true));
  expect(verdictAfter({ kind: "denied" })).toEqual(verdict(false));
  expect(verdictAfter({ kind: "expired", limitMs: 1 })).toEqual(verdict(false));
  expect(verdictAfter({ kind: "withdrawn", reason: user })).toEqual([call, sibling]);
  expect(verdictAfter({ kind: "answered", value: 1 }, plainQuestion)).toEqual([call, sibling]);
});

test("a call that is requested when no turn is live belongs to the end of a turn", () => {
  const state = after({ ...turnSettled, next: "turn" }, { ...requested, idempotent: true });
  expect(state.live).toEqual([{ phase: "running", id: "call_a.1", name: "build", byEnd: true, idempotent: true }]);
});

test("taking items from the inbox does not change the run", () => {
  expect(after({ type: "inbox.taken", runId: "run_a", turnId: "turn_a.1", items: [] })).toBe(run);
});
