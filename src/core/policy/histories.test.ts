// Random histories: any commands in any order, driven to their end. The log and the answers must keep the contract.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  abandonedBy,
  accept,
  answer,
  approval,
  ask,
  beginProcess,
  call,
  cancelCall,
  cancelKey,
  cancelledBy,
  cancelProcess,
  cancelQuestion,
  cancelReminding,
  cancelRun,
  cancelSession,
  cancelSessionOnly,
  close,
  compact,
  completed,
  detachProcess,
  expire,
  failed,
  loseProcess,
  lost,
  noteProcess,
  park,
  plainQuestion,
  policy,
  post,
  recover,
  setMode,
  settleCall,
  settleProcess,
  settleTurn,
  start,
  stopProcess,
  user,
  wanted as wantedCall,
} from "../../../test/fixtures/commands.ts";
import { DecidedHistory } from "../../../test/fixtures/decided-history.ts";
import { transcriptErrors } from "../../../test/oracle/check-transcript.ts";
import type { Outcome } from "../model/cancel.ts";
import type { Accept, Command } from "../model/command.ts";
import {
  type CallId,
  callId,
  type ProcessId,
  type QuestionId,
  questionId,
  type RunId,
  type TurnId,
  turnId,
} from "../model/ids.ts";
import { emptyLane, evolve, type Lane } from "../model/lane.ts";
import type { QuestionReply } from "../model/question.ts";

/** A command to be made: a description, and random numbers that pick its target among what exists at its time. */
interface Wish {
  readonly want: keyof typeof makers;
  readonly die: number;
  readonly other: number;
}

const deliveries = ["queue", "steer", "interrupt", "reject"] as const;
const outcomes = [completed, failed, cancelledBy(user), lost, abandonedBy(user, "it")];
const replies: readonly QuestionReply[] = [
  { kind: "allowed" },
  { kind: "allowed", remember: "session" },
  { kind: "denied" },
  { kind: "answered", value: 1 },
];
const feedbacks = ["wake", "wake", "next-turn", "silent"] as const;
const notStarted = { failed: { code: "not_started", message: "There is no such program." } };
const nextTurn = ["turn", "end"] as const;

const makers = {
  accept: (history: History, { die, other }: Wish): Command => {
    const key = other % 3 === 0 ? {} : { key: `k${other % 12}`, content: `c${other % 2}` };
    return history.remembered(accept(`run_${history.accepted++}`, { delivery: pick(deliveries, die), ...key }));
  },
  "accept again": (history: History, { die }: Wish): Command =>
    history.remembered(accept(anyRun(history.lane, die), { content: `c${die % 2}` })),
  edit: ({ lane }: History, { die }: Wish): Command => ({
    type: "edit",
    runId: anyRun(lane, die),
    prompt: { text: `edit ${die}` },
  }),
  move: ({ lane }: History, { die, other }: Wish): Command => ({
    type: "move",
    runId: anyRun(lane, die),
    to: pick(["front", "back", { before: anyRun(lane, other) }], other),
  }),
  withdraw: ({ lane }: History, { die }: Wish): Command => ({
    type: "withdraw",
    runId: anyRun(lane, die),
    reason: policy,
  }),
  steer: ({ lane }: History, { die }: Wish): Command => ({ type: "steer", runId: anyRun(lane, die) }),
  "cancel session": (_: History, { die }: Wish): Command => cancelSession(pick([user, policy], die)),
  "cancel run": ({ lane }: History, { die, other }: Wish): Command =>
    cancelRun(anyRun(lane, die), pick([user, policy], other)),
  "cancel key": (_: History, { die }: Wish): Command => cancelKey(`k${die % 12}`),
  "cancel call": ({ lane }: History, { die }: Wish): Command => cancelCall(anyCall(lane, die)),
  close: (): Command => close(),
  start: (): Command => start,
  take: ({ lane }: History, { die }: Wish): Command => ({ type: "take", turnId: anyTurn(lane, die) }),
  extend: ({ lane }: History, { die }: Wish): Command => ({ type: "extend", turnId: anyTurn(lane, die), text: "x" }),
  call: ({ lane }: History): Command => call(callId(lane.live?.id ?? "run_x", (lane.live?.calls ?? 0) + 1)),
  "call again": ({ lane }: History, { die }: Wish): Command => call(lane.live?.live[die % 4]?.id ?? "call_x.1"),
  "settle turn": ({ lane }: History, { die, other }: Wish): Command =>
    settleTurn(anyTurn(lane, die), { outcome: pick(outcomes, other), next: pick(nextTurn, die) }),
  "settle call": ({ lane }: History, { die, other }: Wish): Command =>
    settleCall(anyCall(lane, die), { outcome: honest(lane, anyCall(lane, die), pick(outcomes, other)) }),
  "settle turn asking": ({ lane }: History, { die, other }: Wish): Command => {
    const next = (lane.live?.calls ?? 0) + 1;
    const calls = Array.from({ length: 1 + (other % 3) }, (_, index) =>
      wantedCall(callId(lane.live?.id ?? "run_x", next + index), (other + index) % 2 === 0 ? { idempotent: true } : {}),
    );
    return settleTurn(anyTurn(lane, die), { next: "turn", calls });
  },
  "cancel call reminding": ({ lane }: History, { die }: Wish): Command => cancelReminding(anyCall(lane, die)),
  "extend metered": ({ lane }: History, { die, other }: Wish): Command => ({
    type: "extend",
    turnId: anyTurn(lane, die),
    text: "x",
    usage: { inputTokens: die, outputTokens: other, estimated: true },
  }),
  "ask of a call": ({ lane }: History, { die, other }: Wish): Command => ask(anyCall(lane, die), anyAbout(other)),
  "ask of a turn": ({ lane }: History, { die }: Wish): Command => ask(anyTurn(lane, die), plainQuestion),
  answer: ({ lane }: History, { die, other }: Wish): Command => answer(anyQuestion(lane, die), pick(replies, other)),
  "admit call": ({ lane }: History, { die }: Wish): Command => ({ type: "admit-call", callId: anyCall(lane, die) }),
  expire: ({ lane }: History, { die }: Wish): Command => expire(anyQuestion(lane, die)),
  "cancel question": ({ lane }: History, { die }: Wish): Command => cancelQuestion(anyQuestion(lane, die)),
  post: (_: History, { die }: Wish): Command => post(`news ${die}`),
  "set mode": (_: History, { die }: Wish): Command => setMode(pick(["ask", "auto"], die)),
  compact: ({ lane }: History, { die }: Wish): Command => compact(anyTurn(lane, die)),
  "begin process": ({ lane }: History, { die, other }: Wish): Command =>
    beginProcess(other % 2 === 0 ? "ses_1" : anyCall(lane, die), pick(feedbacks, die)),
  "note process": ({ lane }: History, { die }: Wish): Command => noteProcess(anyProcess(lane, die)),
  "detach process": ({ lane }: History, { die, other }: Wish): Command =>
    detachProcess(anyProcess(lane, die), pick(feedbacks, other)),
  "cancel process": ({ lane }: History, { die, other }: Wish): Command =>
    cancelProcess(anyProcess(lane, die), pick([user, policy], other)),
  "settle process": ({ lane }: History, { die, other }: Wish): Command => {
    const id = anyProcess(lane, die);
    const end = pick([settleProcess(id), stopProcess(id), loseProcess(id), settleProcess(id, notStarted)], other);
    return other % 3 === 0
      ? end
      : { ...end, waiters: [anyCall(lane, other), other % 2 === 0 ? anyTurn(lane, die) : anyCall(lane, die)] };
  },
  "settle call hearing": ({ lane }: History, { die, other }: Wish): Command =>
    settleCall(anyCall(lane, die), {
      outcome: honest(lane, anyCall(lane, die), pick([completed, completed, failed], other)),
      heard: anyResults(lane, die),
    }),
  "settle turn hearing": ({ lane }: History, { die, other }: Wish): Command =>
    settleTurn(anyTurn(lane, die), {
      outcome: pick([completed, completed, failed], other),
      next: pick(nextTurn, die),
      heard: anyResults(lane, other),
    }),
  "cancel session only": (_: History, { die }: Wish): Command => cancelSessionOnly(pick([user, policy], die)),
  recover: (_: History, { die }: Wish): Command => recover(die % 5 === 0 ? "lose" : "resume"),
  park: (): Command => park,
};

const often = [
  "accept",
  "start",
  "call",
  "settle turn",
  "settle turn asking",
  "settle call",
  "ask of a call",
  "begin process",
  "settle process",
  "cancel run",
  "steer",
] as const;
const wanted = Object.keys(makers).filter((want): want is keyof typeof makers => want in makers && want !== "close");
const wish: fc.Arbitrary<Wish> = fc.record({
  want: fc.oneof(
    { arbitrary: fc.constantFrom(...often), weight: 10 },
    { arbitrary: fc.constantFrom(...wanted), weight: 9 },
    { arbitrary: fc.constant("close" as const), weight: 1 },
  ),
  die: fc.nat(1_000),
  other: fc.nat(1_000),
});

const ofProcesses = [
  "begin process",
  "begin process",
  "note process",
  "detach process",
  "settle process",
  "settle process",
  "settle call",
  "settle call hearing",
  "settle call hearing",
  "settle turn asking",
  "settle turn",
  "call",
  "take",
  "start",
  "start",
] as const;
const rarely = [
  "accept",
  "post",
  "cancel process",
  "cancel call reminding",
  "cancel run",
  "cancel session",
  "cancel session only",
  "withdraw",
  "recover",
  "park",
] as const;
const processWish: fc.Arbitrary<Wish> = fc.record({
  want: fc.oneof(
    { arbitrary: fc.constantFrom(...ofProcesses), weight: 40 },
    { arbitrary: fc.constantFrom(...rarely), weight: 10 },
    { arbitrary: fc.constant("close" as const), weight: 1 },
  ),
  die: fc.nat(1_000),
  other: fc.nat(1_000),
});

class History extends DecidedHistory {
  accepted = 0;

  /** What a store adds to a prompt: the run that was accepted under this id or key before, settled or not. */
  remembered(command: Accept): Accept {
    const at = this.events.findIndex(
      (event) =>
        event.type === "run.accepted" &&
        (event.runId === command.runId || (command.key !== undefined && event.key === command.key)),
    );
    const event = this.events[at];
    if (event?.type !== "run.accepted") return command;
    return { ...command, earlier: { runId: event.runId, acceptedAt: at + 1, content: event.content } };
  }
}

test("G4, G7, G8, G14, G16, G19, G22: any history, driven to its end, keeps the guarantees", () => {
  fc.assert(
    fc.property(fc.array(wish, { maxLength: 80, size: "max" }), (wishes) => lawful([], wishes)),
    { numRuns: 400 },
  );
});

test("G9, G15, G19, G22: the same for a session with many calls and processes", () => {
  const busy = [accept("run_a"), start, call("call_a.1"), call("call_a.2"), beginProcess()];
  fc.assert(
    fc.property(fc.array(processWish, { maxLength: 40, size: "max" }), (wishes) => lawful(busy, wishes)),
    { numRuns: 400 },
  );
});

/** Runs these commands, then any generated ones, and then drives the lane to its end. */
function lawful(first: readonly Command[], wishes: readonly Wish[]): void {
  const history = new History();
  history.run({ type: "create" });
  for (const command of first) history.run(command);
  for (const one of wishes) {
    history.run(makers[one.want](history, one));
    expect(transcriptErrors(history.events)).toEqual([]);
  }
  history.finish();
  expect(history.findings()).toEqual([]);
  expect(history.events.reduce(evolve, emptyLane("ses_1"))).toEqual(history.lane);
}

test("G7: a prompt received after a cancel of its session is never covered by it", {
  meta: { id: "G7/later-prompt-untouched" },
}, () => {
  fc.assert(
    fc.property(fc.array(wish, { maxLength: 40, size: "max" }), fc.constantFrom(...deliveries), (wishes, delivery) => {
      const history = new History();
      history.run({ type: "create" });
      for (const one of wishes) if (one.want !== "close") history.run(makers[one.want](history, one));
      history.run(cancelSession());
      history.run(accept("run_after", { delivery }));
      const refused = !history.events.some((event) => event.type === "run.accepted" && event.runId === "run_after");
      expect(refused).toBe(delivery === "reject" && history.lane.live !== undefined);
      history.finish();
      const outcome = history.events.find((event) => event.type === "run.settled" && event.runId === "run_after");
      if (!refused) expect(outcome).toMatchObject({ outcome: { kind: "completed" } });
    }),
    { numRuns: 200 },
  );
});

function pick<T>(from: readonly [T, ...T[]] | readonly T[], die: number): T {
  const one = from[die % from.length];
  if (one === undefined) throw new Error("nothing to pick from");
  return one;
}

/** A run in the lane, or now and then one that is not. */
function anyRun(lane: Lane, die: number): RunId {
  const live = lane.live === undefined ? [] : [lane.live.id];
  const standing: readonly RunId[] = [...live, ...[...lane.queue, ...lane.steers].map((run) => run.id), "run_0"];
  return pick(standing, die);
}

function anyTurn(lane: Lane, die: number): TurnId {
  if (lane.live === undefined) return "turn_x.1";
  return die % 8 === 0 ? turnId(lane.live.id, 1) : (lane.live.turn ?? "turn_x.1");
}

const anyResults = ({ inbox }: Lane, die: number): readonly ProcessId[] =>
  inbox.flatMap((one, index) => (one.processId === undefined || index % 2 > die % 2 ? [] : one.processId));

function anyCall(lane: Lane, die: number): CallId {
  const calls: readonly CallId[] = lane.live?.live.map((one) => one.id) ?? [];
  return die % 8 === 0 || calls.length === 0 ? callId(lane.live?.id ?? "run_x", 1) : pick(calls, die);
}

/** The engine reports a call as cancelled only if it was cancelled. */
function honest(lane: Lane, id: CallId, outcome: Outcome): Outcome {
  const running = lane.live?.live.some((one) => one.id === id && one.phase === "running");
  return outcome.kind === "cancelled" && lane.live?.phase === "running" && running === true ? failed : outcome;
}

function anyQuestion(lane: Lane, die: number): QuestionId {
  const open = lane.live?.questions.map((one) => one.id) ?? [];
  return die % 8 === 0 || open.length === 0 ? questionId(lane.live?.id ?? "run_x", 1) : pick(open, die);
}

function anyProcess(lane: Lane, die: number): ProcessId {
  const going = lane.processes.live.map((one) => one.id);
  return die % 8 === 0 || going.length === 0 ? "proc_1.1" : pick(going, die);
}

/** Mostly with a separate scope: once a scope is granted, its approvals are not requested. */
const anyAbout = (die: number) => (die % 4 === 0 ? plainQuestion : approval(`d${die % 2}`, `scope ${die % 40}`));
