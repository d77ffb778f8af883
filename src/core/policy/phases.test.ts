// Every phase a lane can be in × every command: nothing throws, every property of the state machine holds, and
// driven to its end the log and the answers keep the guarantees.
import { describe, expect, test } from "vitest";
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
  settleAsking,
  settleCall,
  settleFor,
  settleProcess,
  settleTurn,
  start,
  stopProcess,
  user,
  wanted,
} from "../../../test/fixtures/commands.ts";
import { checkedStep } from "../../../test/fixtures/core-properties.ts";
import { DecidedHistory } from "../../../test/fixtures/decided-history.ts";
import { type Given, given, givenNoSession } from "../../testing/given.ts";
import type { Accept, Command } from "../model/command.ts";
import type { Event } from "../model/event.ts";
import type { CallId } from "../model/ids.ts";
import { evolve, type Lane } from "../model/lane.ts";
import { keep } from "../model/memo.ts";
import type { Json } from "../model/prompt.ts";
import type { QuestionReply } from "../model/question.ts";
import type { Run } from "../model/run.ts";
import { type Finding, verify } from "../read/verify.ts";
import { decide } from "./decide.ts";

const queued = given(accept("run_a", { key: "ka", content: "a" }), accept("run_b", { key: "kb" }), accept("run_c"));
const live = queued.and(start);
const calling = live.and(call("call_a.1", "build"), call("call_a.2", "test"));
const steered = calling.and(accept("run_s", { key: "ks", delivery: "steer" }), { type: "steer", runId: "run_b" });
const between = steered.and(settleTurn("turn_a.1", { next: "turn" }));
const lastCall = between.and(settleCall("call_a.1"));
const stopping = steered.and(cancelRun("run_a"));

const asking = calling.and(ask("call_a.1"), ask("call_a.2", plainQuestion), post("news"));
const byEnd = queued.and(
  start,
  accept("run_s", { key: "ks", delivery: "steer" }),
  settleAsking("turn_a.1", wanted("call_a.1"), wanted("call_a.2", { idempotent: true })),
);
const waiting = byEnd.and(ask("call_a.1"), ask("call_a.2", plainQuestion), post("news"));

/** proc_1.1 belongs to a call, proc_1.2 to the session. */
const spawning = (past: Given): Given => past.and(beginProcess("call_a.1"), beginProcess());
const processes = spawning(calling);
const idle = given(beginProcess(), beginProcess("ses_1", "next-turn"));

const phases: Readonly<Record<string, Given>> = {
  absent: givenNoSession(),
  "open and idle": given(),
  queued,
  "queued, with interrupts": queued.and(accept("run_i", { delivery: "interrupt" })),
  "running a turn": live,
  "running a turn and calls": calling,
  "running, with steers": steered,
  "running, one call being stopped": steered.and(cancelCall("call_a.1")),
  "running calls between turns": between,
  "running its last call between turns": lastCall,
  "running, its last call being stopped": lastCall.and(cancelCall("call_a.2")),
  "running for the last time": live.and(recover(), recover()),
  ending: steered.and(settleTurn("turn_a.1", { outcome: failed })),
  "ending with its last call": steered.and(settleCall("call_a.1"), settleTurn("turn_a.1")),
  "ending, one call being stopped": steered.and(settleTurn("turn_a.1"), cancelCall("call_a.1")),
  stopping,
  "stopping a turn": live.and(cancelRun("run_a")),
  "stopping its last call": lastCall.and(cancelRun("run_a")),
  "stopping, something abandoned": stopping.and(settleCall("call_a.1", { outcome: abandonedBy(user, "build") })),
  "stopping, one call stopped before": steered.and(cancelCall("call_a.1", policy), cancelRun("run_a")),
  "stopping by an interrupt": live.and(accept("run_i", { delivery: "interrupt" })),
  parked: live.and(park),
  "parked, with steers": steered.and(park),
  "running, its turn asks": steered.and(ask("turn_a.1", plainQuestion), post("news")),
  "running calls, approvals open": asking,
  "running, its end has asked for calls": byEnd,
  "running, calls by its end wait for approvals": waiting,
  "running, a call by its end being stopped with a reminder": waiting.and(cancelReminding("call_a.1")),
  "running, what it asked was denied": waiting.and(answer("ask_a.1", { kind: "denied" })),
  "running, what it asked was allowed": waiting.and(answer("ask_a.1")),
  "running after a crash, with kept calls": waiting.and(recover()),
  "ending, a call stopped with a reminder": asking.and(cancelReminding("call_a.2"), settleTurn("turn_a.1")),
  "stopping, a call stopped with a reminder": asking.and(cancelReminding("call_a.2"), cancelRun("run_a")),
  "parked, with kept calls": waiting.and(park),
  "parked, an approval answered since": waiting.and(park, answer("ask_a.1")),
  "parked, an approval denied since": waiting.and(park, answer("ask_a.1", { kind: "denied" })),
  "parked, a kept call cancelled since": waiting.and(park, cancelReminding("call_a.1")),
  "open with a mode": given(setMode("auto")),
  "open with things in the inbox": given(post("one"), post("two")),
  "closed with things in the inbox": given(post("one"), close()),
  "open, with background processes": idle,
  "open, one of them being stopped": idle.and(cancelProcess("proc_1.1")),
  "queued, begun by what is in the inbox": idle.and(settleProcess("proc_1.1")),
  "queued, with something that wants to be heard": idle.and(accept("run_a"), settleProcess("proc_1.1")),
  "running, with processes": processes,
  "running, with processes and steers": spawning(steered),
  "running, one process being stopped": processes.and(cancelProcess("proc_1.1")),
  "running, a result held for a call": processes.and(settleFor("call_a.1", "proc_1.2")),
  "running, by what was in the inbox": idle.and(settleProcess("proc_1.1"), start),
  "running calls by its end, with processes": spawning(byEnd),
  "running, a result held for a call by its end": spawning(byEnd).and(settleFor("call_a.2", "proc_1.2")),
  "ending, with processes": processes.and(settleTurn("turn_a.1")),
  "stopping, with processes": processes.and(cancelRun("run_a")),
  "stopping, with something that wants to be heard": processes.and(settleProcess("proc_1.2"), cancelRun("run_a")),
  "parked, a kept call with a process": spawning(waiting).and(park),
  "parked, a result held for a kept call": spawning(byEnd).and(settleFor("call_a.2", "proc_1.2"), park),
  "closed, with processes being stopped": idle.and(close()),
  "closed and idle": given(close()),
  "closed, stopping": steered.and(close()),
};

const replies: readonly QuestionReply[] = [
  { kind: "allowed", remember: "session" },
  { kind: "denied", note: "no" },
  { kind: "answered", value: "this one" },
];

const cut = [completed, failed, lost, cancelledBy(user), abandonedBy(user, "x")];

/** Every command, for every target that exists, and for one that does not. The keys make sure that none is missing. */
const commands: { readonly [T in Command["type"]]: readonly Extract<Command, { type: T }>[] } = {
  create: [{ type: "create" }, { type: "create", title: "again" }],
  accept: [
    ...(["queue", "steer", "interrupt", "reject"] as const).map((delivery) => accept("run_n", { delivery })),
    ...(["run_a", "run_b", "run_s"] as const).map((runId) => accept(runId, { content: "a" })),
    ...["ka", "kb", "ks", "kn"].map((key) => accept("run_n", { key })),
    accept("run_n", { key: "ka", content: "a" }),
    accept("run_n", { earlier: { runId: "run_z", acceptedAt: 1, content: undefined } }),
  ],
  "keep-answer": [{ type: "keep-answer", answer: null, once: { key: "kept", content: "c" } }],
  edit: targets((runId) => ({ type: "edit", runId, prompt: { text: "better" } })),
  move: [
    ...targets((runId) => ({ type: "move", runId, to: "front" }) as const),
    ...targets((runId) => ({ type: "move", runId, to: "back" }) as const),
    ...targets((before) => ({ type: "move", runId: "run_c", to: { before } }) as const),
  ],
  withdraw: targets((runId) => ({ type: "withdraw", runId, reason: policy })),
  steer: targets((runId) => ({ type: "steer", runId })),
  "cancel-session": [cancelSession(), cancelSession(policy), cancelSessionOnly()],
  "cancel-run": targets((runId) => cancelRun(runId, policy)),
  "cancel-key": ["ka", "kb", "ks", "kx"].map((key) => cancelKey(key)),
  "cancel-call": (["call_a.1", "call_a.2", "call_a.9", "call_x.1"] as const).flatMap((callId) => [
    cancelCall(callId),
    cancelReminding(callId),
  ]),
  "cancel-question": questions((id) => cancelQuestion(id)),
  answer: questions((id) => id).flatMap((id) => replies.map((reply) => answer(id, reply))),
  "set-mode": [setMode("auto"), setMode("read-only")],
  post: [post("more")],
  compact: turns((turnId) => compact(turnId)),
  ask: (["turn_a.1", "turn_a.2", "call_a.1", "call_a.2", "call_x.1"] as const).flatMap((owner) => [
    ask(owner),
    ask(owner, approval("d2", "other")),
    ask(owner, plainQuestion),
  ]),
  "admit-call": (["call_a.1", "call_a.2", "call_x.1"] as const).map((callId) => ({ type: "admit-call", callId })),
  expire: questions((id) => expire(id)),
  close: [close(), close(user)],
  start: [{ type: "start" }],
  take: turns((turnId) => ({ type: "take", turnId })),
  extend: turns((turnId) => ({ type: "extend", turnId, text: "more" })),
  call: (["call_a.1", "call_a.3", "call_x.1"] as const).map((callId) => call(callId)),
  "settle-turn": turns((turnId) =>
    cut.flatMap((outcome) => [
      settleTurn(turnId, { outcome }),
      settleTurn(turnId, { outcome, next: "turn" }),
      settleTurn(turnId, { outcome, next: "turn", heard: ["proc_1.2"] }),
      settleTurn(turnId, { outcome, next: "turn", calls: [wanted("call_a.7"), wanted("call_a.8")] }),
    ]),
  ).flat(),
  "settle-call": (["call_a.1", "call_a.2", "call_a.9", "call_x.1"] as const).flatMap((callId) => [
    settleCall(callId),
    ...cut.map((outcome) => settleCall(callId, { outcome, heard: ["proc_1.2"] })),
  ]),
  "cancel-process": processIds((id) => cancelProcess(id, policy)),
  "begin-process": [
    beginProcess("call_a.1"),
    beginProcess("call_x.1", "silent"),
    beginProcess(),
    beginProcess("ses_1", "silent"),
  ],
  "note-process": [noteProcess("proc_1.1"), noteProcess("proc_x.1")],
  "detach-process": processIds((id) => detachProcess(id)),
  "settle-process": [
    settleProcess("proc_x.1"),
    ...(["proc_1.1", "proc_1.2"] as const).flatMap((id) => [
      settleProcess(id),
      stopProcess(id),
      loseProcess(id),
      settleProcess(id, { failed: { code: "not_started", message: "No." } }),
      settleFor("call_a.2", id),
    ]),
  ],
  recover: [recover(), recover("lose")],
  park: [{ type: "park" }],
};

function targets<C>(aim: (runId: "run_a" | "run_b" | "run_c" | "run_i" | "run_s" | "run_x") => C): readonly C[] {
  return (["run_a", "run_b", "run_c", "run_i", "run_s", "run_x"] as const).map(aim);
}

function turns<C>(aim: (turnId: "turn_a.1" | "turn_a.2" | "turn_a.3" | "turn_x.1") => C): readonly C[] {
  return (["turn_a.1", "turn_a.2", "turn_a.3", "turn_x.1"] as const).map(aim);
}

function questions<C>(aim: (id: "ask_a.1" | "ask_a.2" | "ask_x.1") => C): readonly C[] {
  return (["ask_a.1", "ask_a.2", "ask_x.1"] as const).map(aim);
}

function processIds<C>(aim: (id: "proc_1.1" | "proc_1.2" | "proc_x.1") => C): readonly C[] {
  return (["proc_1.1", "proc_1.2", "proc_x.1"] as const).map(aim);
}

const isRefused = (answer: unknown): boolean =>
  typeof answer === "object" && answer !== null && "kind" in answer && answer.kind === "refused";

const everyCommand: readonly (readonly [string, readonly Command[]])[] = Object.entries(commands);

function hasSettled(log: readonly Event[], { runId, key }: Accept): boolean {
  const earlier = log.flatMap((event) =>
    event.type === "run.accepted" && (event.runId === runId || (key !== undefined && event.key === key))
      ? [event.runId]
      : [],
  );
  return log.some((event) => event.type === "run.settled" && earlier.includes(event.runId));
}

const isNew = (id: CallId, live: Run | undefined): boolean =>
  Number(id.slice(id.indexOf(".") + 1)) > (live?.calls ?? 0) || live?.live.some((call) => call.id === id) === true;

const brokenBy = (events: readonly Event[]): readonly Finding[] =>
  verify(events.map((event, index) => ({ ...event, seq: index + 1, at: 0 })));

/**
 * Whether an engine would send this command. It reports a call as cancelled only if it was, and as having seen the end
 * of a process only if there was one; it uses the number of a call once; and it adds the earlier run of a prompt that
 * has settled.
 */
function isHonest({ live, processes }: Lane, log: readonly Event[], command: Command): boolean {
  if (command.type === "accept") return !hasSettled(log, command);
  if (command.type === "call") return isNew(command.callId, live);
  if (command.type === "settle-turn" && !(command.end.calls ?? []).every(({ callId }) => isNew(callId, live)))
    return false;
  if (command.type !== "settle-call" && command.type !== "settle-turn") return true;
  const { outcome, heard = [] } = command.end;
  if (outcome.kind === "completed" && heard.length > 0) {
    return processes.count === 2 && !processes.live.some(({ id }) => id === "proc_1.2");
  }
  if (command.type === "settle-turn") return true;
  const { callId } = command.end;
  const call = live?.live.find(({ id }) => id === callId);
  return outcome.kind !== "cancelled" || live?.phase !== "running" || call?.phase !== "running";
}

describe.each(Object.entries(phases))("%s", (_, { lane, events: past }) => {
  test.each(everyCommand)("%s", (__, variants) => {
    for (const command of variants) {
      const history = new DecidedHistory(lane, past);
      history.run(command);
      if (lane.phase === "absent" || !isHonest(lane, past, command)) continue;
      history.finish();
      expect(history.findings(), JSON.stringify(command)).toEqual([]);
    }
  });

  test("G10: cancelling again what was cancelled writes nothing", {
    meta: { id: "G10/second-cancel-writes-nothing" },
  }, () => {
    const { "cancel-run": runs, "cancel-call": calls, "cancel-process": processes } = commands;
    for (const command of [...commands["cancel-session"], ...runs, ...calls, ...processes]) {
      const { lane: after } = checkedStep(lane, command);
      expect(decide(after, command).events).toEqual([]);
    }
  });

  test("G2: any request with a key is answered once, and its repetition changes nothing", () => {
    for (const command of everyCommand.flatMap(([, variants]) => variants)) {
      const plain = decide(lane, command);
      if (plain.answer === undefined || lane.phase === "absent") continue;
      const once = { key: "k", content: "c" };
      const keyed = decide(lane, { ...command, once });
      const { events, answer } = plain;
      if (isRefused(answer)) {
        expect(keyed, "G3: a refusal leaves no record").toEqual(plain);
        continue;
      }
      // A request that changes nothing leaves no event: its answer is kept as a memo, like that of a stop of the
      // session.
      const record = { type: "request.answered", ...once, answer };
      const isMemo = events.length === 0 || command.type === "cancel-session";
      const actor = "actor" in command && command.actor !== undefined ? { actor: command.actor } : {};
      const memo = keep({ kind: "answer", ...once, answer: answer as Json, ...actor });
      const memos = isMemo ? [...(plain.memos ?? []), memo] : plain.memos;
      expect(keyed).toEqual({
        events: events.length === 0 ? [] : [...events, record],
        answer,
        ...(memos && { memos }),
      });
      const after = { ...keyed.events.reduce(evolve, lane), memos: lane.memos.with(memos ?? []) };
      expect(decide(after, { ...command, once })).toEqual({ events: [], answer });
      expect(decide(after, { ...command, once: { key: "k", content: "d" } })).toEqual({
        events: [],
        answer: {
          kind: "refused",
          code: "conflict",
          message: "This idempotency key was used for a different request.",
        },
      });
    }
  });

  test("any two commands in a row keep every property", { meta: { id: "core/any-two-commands-lawful" } }, () => {
    for (const first of everyCommand.flatMap(([, variants]) => variants)) {
      const { lane: after, events } = checkedStep(lane, first);
      if (events.length === 0) continue;
      for (const second of everyCommand.flatMap(([, variants]) => variants)) {
        const step = checkedStep(after, second);
        const log = [...past, ...events];
        if (step.events.length === 0 || !isHonest(lane, past, first) || !isHonest(after, log, second)) continue;
        const found = brokenBy([...log, ...step.events]);
        if (found.length > 0) expect.fail(JSON.stringify({ first, second, found }));
      }
    }
  });
});

test("every constructed phase has its name", () => {
  for (const [name, { lane }] of Object.entries(phases)) {
    const phase = lane.live?.phase ?? (lane.queue.length > 0 ? "queued" : lane.phase);
    expect(name).toContain(phase);
  }
});
