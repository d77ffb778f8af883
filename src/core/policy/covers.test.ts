// What each stop covers in each state, that decisions agree with it, and when work may begin or be stopped.
import { describe, expect, test } from "vitest";
import {
  accept,
  approval,
  ask,
  beginProcess,
  call,
  cancelCall,
  cancelKey,
  cancelProcess,
  cancelQuestion,
  cancelRun,
  cancelSession,
  cancelSessionOnly,
  close,
  detachProcess,
  park,
  running,
  settleCall,
  settleProcess,
  settleTurn,
  start,
  user,
} from "../../../test/fixtures/commands.ts";
import { type Given, given, givenNoSession } from "../../testing/given.ts";
import type { CancelReason } from "../model/cancel.ts";
import type { Command } from "../model/command.ts";
import type { Event } from "../model/event.ts";
import {
  type Coverage,
  covers,
  isCallStopRefusable,
  isRequested,
  isRunning,
  mayBegin,
  mayStart,
  mayStop,
  stopReason,
} from "./covers.ts";
import { decide } from "./decide.ts";

const CALL = "call_a.1";
const TURN = "turn_a.1";
const PROCESS = "proc_1.1";

const lasting = { ...beginProcess(), lasting: true } as const;
/** `run_a` is live, under the key "k". */
const live = given(accept("run_a", { key: "k" }), start);
const withCall = live.and(call(CALL));
const withSteer = live.and(accept("run_s", { delivery: "steer", key: "s" }));
const interrupted = live.and(accept("run_b", { delivery: "interrupt" }));

const STATES = {
  absent: givenNoSession(),
  idle: given(),
  closed: given().and(close()),
  queued: given(accept("run_a", { key: "k" }), accept("run_b")),
  live,
  "live, with a queue": live.and(accept("run_b")),
  "live, with a steer": withSteer,
  "live, with two calls": withCall.and(call("call_a.2")),
  "live, with a call that is being stopped": withCall.and(call("call_a.2"), cancelCall(CALL)),
  "live, with a process of a call": withCall.and(beginProcess(CALL)),
  "live, with a process moved to the background": withCall.and(beginProcess(CALL), detachProcess(PROCESS)),
  "live, between turns": withCall.and(settleTurn(TURN, { next: "turn", finish: "calls" })),
  stopping: withCall.and(accept("run_b"), cancelRun("run_a")),
  "stopping, by an interrupt": interrupted,
  "ending, with a call and its process": withCall.and(beginProcess(CALL), settleTurn(TURN)),
  parked: live.and(accept("run_b"), park),
  "background process": given(beginProcess()),
  "background process that is being stopped": given(beginProcess()).and(cancelProcess(PROCESS)),
  "lasting process": given(lasting),
  "process that has ended": given(beginProcess("ses_1", "silent")).and(settleProcess(PROCESS)),
  "process that has ended and woken its session": given(beginProcess()).and(settleProcess(PROCESS)),
  everything: withSteer.and(call(CALL), beginProcess(CALL), beginProcess(), lasting, accept("run_b")),
} satisfies Readonly<Record<string, Given>>;

const STOPS = {
  session: cancelSession(),
  "session, keeping the background": cancelSessionOnly(),
  close: close(),
  "run a": cancelRun("run_a"),
  "withdraw a": { type: "withdraw", runId: "run_a", reason: user },
  "run b": cancelRun("run_b"),
  "steer s": cancelRun("run_s"),
  "key k": cancelKey("k"),
  "key s": cancelKey("s"),
  "call 1": cancelCall(CALL),
  "process 1": cancelProcess(PROCESS),
} satisfies Readonly<Record<string, Command>>;

type State = keyof typeof STATES;
type Stop = keyof typeof STOPS;

/** Shorthand for everything that a stop of one run, or of the whole session, covers. */
const ofRun = (covered: string) => ({ "run a": covered, "withdraw a": covered, "key k": covered }) as const;
const ofSession = (covered: string, kept = covered) =>
  ({ session: covered, "session, keeping the background": kept, close: covered }) as const;

/** What is covered, in the order runs, work, processes. A stop that is not listed covers nothing. */
const COVERED: Readonly<Record<State, Partial<Readonly<Record<Stop, string>>>>> = {
  absent: {},
  idle: {},
  closed: {},
  queued: { ...ofSession("run_a run_b"), ...ofRun("run_a"), "run b": "run_b" },
  live: { ...ofSession("run_a turn_a.1"), ...ofRun("run_a turn_a.1") },
  "live, with a queue": { ...ofSession("run_a run_b turn_a.1"), ...ofRun("run_a turn_a.1"), "run b": "run_b" },
  "live, with a steer": {
    ...{ ...ofSession("run_a run_s turn_a.1"), ...ofRun("run_a turn_a.1") },
    ...{ "steer s": "run_s", "key s": "run_s" },
  },
  "live, with two calls": {
    ...{ ...ofSession("run_a call_a.1 call_a.2 turn_a.1"), ...ofRun("run_a call_a.1 call_a.2 turn_a.1") },
    "call 1": "call_a.1",
  },
  "live, with a call that is being stopped": {
    ...{ ...ofSession("run_a call_a.1 call_a.2 turn_a.1"), ...ofRun("run_a call_a.1 call_a.2 turn_a.1") },
    "call 1": "call_a.1",
  },
  "live, with a process of a call": {
    ...ofSession("run_a call_a.1 turn_a.1 proc_1.1"),
    ...ofRun("run_a call_a.1 turn_a.1 proc_1.1"),
    "call 1": "call_a.1 proc_1.1",
  },
  "live, with a process moved to the background": {
    ...ofSession("run_a call_a.1 turn_a.1 proc_1.1", "run_a call_a.1 turn_a.1"),
    ...ofRun("run_a call_a.1 turn_a.1"),
    "call 1": "call_a.1",
  },
  "live, between turns": { ...ofSession("run_a call_a.1"), ...ofRun("run_a call_a.1"), "call 1": "call_a.1" },
  stopping: {
    ...{ ...ofSession("run_a run_b call_a.1 turn_a.1"), ...ofRun("run_a call_a.1 turn_a.1") },
    ...{ "run b": "run_b", "call 1": "call_a.1" },
  },
  "stopping, by an interrupt": {
    ...{ ...ofSession("run_a run_b turn_a.1"), ...ofRun("run_a turn_a.1") },
    "run b": "run_b",
  },
  "ending, with a call and its process": {
    ...{ ...ofSession("run_a call_a.1 proc_1.1"), ...ofRun("run_a call_a.1 proc_1.1") },
    "call 1": "call_a.1 proc_1.1",
  },
  parked: { ...ofSession("run_a run_b"), ...ofRun("run_a"), "run b": "run_b" },
  "background process": ofSession("proc_1.1", ""),
  "background process that is being stopped": ofSession("proc_1.1", ""),
  "lasting process": { close: "proc_1.1" },
  "process that has ended": {},
  "process that has ended and woken its session": ofSession("run_1.w5"),
  everything: {
    session: "run_a run_b run_s call_a.1 turn_a.1 proc_1.1 proc_1.2",
    "session, keeping the background": "run_a run_b run_s call_a.1 turn_a.1 proc_1.1",
    close: "run_a run_b run_s call_a.1 turn_a.1 proc_1.1 proc_1.2 proc_1.3",
    ...ofRun("run_a call_a.1 turn_a.1 proc_1.1"),
    ...{ "run b": "run_b", "steer s": "run_s", "key s": "run_s", "call 1": "call_a.1 proc_1.1" },
  },
};

const inShort = ({ runs, work, processes }: Coverage): string => [...runs, ...work, ...processes].join(" ");
const states = Object.keys(STATES) as readonly State[];

describe.each(states)("in the state `%s`", (state) => {
  const { lane } = STATES[state];
  const stops = Object.entries(STOPS) as readonly (readonly [Stop, Command])[];

  test.each(stops)("a stop of %s covers exactly this", (stop, command) => {
    // A stop of a process covers the id that it names, whether or not the process exists.
    const expected = stop === "process 1" ? PROCESS : (COVERED[state][stop] ?? "");
    expect(inShort(covers(lane, command))).toBe(expected);
  });

  test.each(stops)("a stop of %s stops exactly what it covers", (stop, command) => {
    const { runs, work, processes } = covers(lane, command);
    const covered = new Set<string>([...runs, ...work, ...processes]);
    const { events } = decide(lane, command);
    const stopped = events.flatMap(stoppedBy);
    expect(stopped.filter((id) => !covered.has(id))).toEqual([]);
    // A run that waits is withdrawn; the live one is stopped, unless it is being stopped already. `withdraw` is for
    // runs that have not begun.
    const alive = stop === "withdraw a" || lane.live?.phase === "stopping" ? lane.live?.id : undefined;
    expect(runs.filter((id) => id !== alive && !stopped.includes(id))).toEqual([]);
  });
});

/** The ids of the runs, calls and processes that an event stops, or ends as cancelled. */
function stoppedBy(event: Event): readonly string[] {
  switch (event.type) {
    case "run.cancel_requested":
      return [event.runId];
    case "call.cancel_requested":
      return [event.callId];
    case "process.cancel_requested":
      return [event.processId];
    case "session.cancel_requested":
      return event.covers;
    case "run.settled":
      return event.outcome.kind === "cancelled" ? [event.runId] : [];
    default:
      return [];
  }
}

describe("a command that is not a stop", () => {
  const others: readonly Command[] = [
    ...[accept("run_x", { delivery: "interrupt" }), start, park, settleTurn(TURN), settleCall(CALL)],
    ...[beginProcess(), settleProcess(PROCESS), detachProcess(PROCESS), cancelQuestion("ask_a.1"), call("call_a.9")],
  ];
  test.each(others.map((command) => [command.type, command] as const))("covers nothing: %s", (_, command) => {
    expect(covers(STATES.everything.lane, command)).toEqual({ runs: [], work: [], processes: [] });
  });
});

test("a stop by key covers only the prompt with the content that it names", () => {
  const { lane } = given(accept("run_a", { key: "k", content: "one" }));
  expect(covers(lane, { ...cancelKey("k"), content: "one" }).runs).toEqual(["run_a"]);
  expect(covers(lane, { ...cancelKey("k"), content: "other" }).runs).toEqual([]);
  expect(covers(lane, cancelKey("k")).runs).toEqual(["run_a"]);
  expect(covers(lane, cancelKey("other")).runs).toEqual([]);
});

test("a stop covers nothing that comes later", () => {
  const { lane } = live;
  const before = covers(lane, cancelSession());
  const { lane: later } = live.and(accept("run_z"), call("call_a.1"), beginProcess());
  expect(before).toEqual({ runs: ["run_a"], work: [TURN], processes: [] });
  expect(inShort(covers(later, cancelSession()))).toBe("run_a run_z call_a.1 turn_a.1 proc_1.1");
});

describe("mayBegin(): a turn or call begins when it is durable and no stop of it is decided", () => {
  const stopped = withCall.and(cancelCall(CALL));
  const cases: readonly (readonly [string, Given, Given, boolean])[] = [
    ["decided and durable", withCall, withCall, true],
    ["decided, not durable", withCall, live, false],
    ["its stop decided, not durable", stopped, withCall, false],
    ["its stop durable, and not known to the decided state", withCall, stopped, false],
    ["its run stopped, not durable", withCall.and(cancelRun("run_a")), withCall, false],
    ["its run interrupted, not durable", withCall.and(accept("run_b", { delivery: "interrupt" })), withCall, false],
    ["its run parked", withCall.and(park), withCall, false],
    ["its run ending", withCall.and(settleTurn(TURN)), withCall, false],
    ["settled", withCall.and(settleCall(CALL)), withCall, false],
    ["of another run", given(...running("run_b")), given(...running("run_b")), false],
    ["no live run", given(), given(), false],
  ];
  test.each(cases)("%s", (_, decided, durable, expected) => {
    expect(mayBegin(decided.lane, durable.lane, CALL)).toBe(expected);
  });

  test("a stop of one call does not keep its turn or another call from beginning", () => {
    const both = stopped.and(call("call_a.2"));
    expect(mayBegin(both.lane, both.lane, TURN)).toBe(true);
    expect(mayBegin(both.lane, both.lane, "call_a.2")).toBe(true);
  });
});

describe("mayStop(): a stop is carried out at once, unless the store can still refuse it", () => {
  const superseded: CancelReason = { kind: "superseded", by: "run_b" };

  test("for every reason but an interrupt", () => {
    const reasons: readonly CancelReason[] = [
      ...([user, { kind: "policy", note: "" }, { kind: "timeout", limitMs: 1 }] as const),
      ...([{ kind: "parent", id: "run_a" }, { kind: "closed" }, { kind: "shutdown" }] as const),
    ];
    for (const reason of reasons) expect(mayStop(interrupted.lane, live.lane, reason)).toBe(true);
  });

  test("by an interrupt once that is durable, and only for the same run", () => {
    expect(mayStop(interrupted.lane, live.lane, superseded)).toBe(false);
    expect(mayStop(interrupted.lane, interrupted.lane, superseded)).toBe(true);
    expect(mayStop(given().lane, interrupted.lane, superseded)).toBe(false);
    const another = given(...running("run_z")).and(cancelRun("run_z"));
    expect(mayStop(interrupted.lane, another.lane, superseded)).toBe(false);
  });
});

describe("isCallStopRefusable(): nothing of a call begins while a stop of it can still be refused", () => {
  const stopped = withCall.and(cancelCall(CALL));
  test.each([
    ["of the call, not durable", stopped, withCall, true],
    ["of its run, not durable", withCall.and(cancelRun("run_a")), withCall, true],
    ["of the call, durable", stopped, stopped, false],
    ["none", withCall, withCall, false],
    ["of the call, which only the log knows", withCall, stopped, false],
  ] as const)("%s", (_, decided, durable, expected) => {
    expect(isCallStopRefusable(decided.lane, durable.lane, CALL)).toBe(expected);
  });
});

describe("isRunning(): a call whose stop can be refused runs as far as the log knows", () => {
  const interrupted = withCall.and(accept("run_b", { delivery: "interrupt" }));
  test.each([
    ["nothing is stopped", withCall, withCall, true],
    ["an interrupt that is not durable", interrupted, withCall, true],
    ["an interrupt that is durable", interrupted, interrupted, false],
    ["a stop of its run that is not durable", withCall.and(cancelRun("run_a")), withCall, false],
    ["a stop of the call that is durable", withCall, withCall.and(cancelCall(CALL)), false],
    ["a request that is not durable", withCall, live, false],
    ["no live run", given(), withCall, false],
  ] as const)("%s", (_, decided, durable, expected) => {
    expect(isRunning(decided.lane, durable.lane, CALL)).toBe(expected);
  });
});

test("isRequested(): from the request of a call to its end", () => {
  const states = [live, withCall, withCall.and(settleCall(CALL)), given()];
  expect(states.map(({ lane }) => isRequested(lane, CALL))).toEqual([false, true, false, false]);
});

describe("mayStart(): a process is started when its request is durable and no stop of it is decided", () => {
  const requested = withCall.and(beginProcess(CALL));
  const cases: readonly (readonly [string, Given, Given, boolean])[] = [
    ["decided and durable", requested, requested, true],
    ["not durable", requested, withCall, false],
    ["settled", requested.and(settleProcess(PROCESS)), requested, false],
    ["stopped, not durable", requested.and(cancelProcess(PROCESS)), requested, false],
    ["its call stopped, not durable", requested.and(cancelCall(CALL)), requested, false],
    ["its run stopped, not durable", requested.and(cancelRun("run_a")), requested, false],
    ["its run ending", requested.and(settleTurn(TURN)), requested, false],
    [
      "in the background, its run stopped",
      live.and(beginProcess(), cancelRun("run_a")),
      live.and(beginProcess()),
      true,
    ],
  ];
  test.each(cases)("%s", (_, decided, durable, expected) => {
    expect(mayStart(decided.lane, durable.lane, PROCESS)).toBe(expected);
  });
});

test("stopReason(): a process ends for its own stop first, then for that of its call, then for that of its run", () => {
  const note = (text: string): CancelReason => ({ kind: "user", note: text });
  const requested = withCall.and(beginProcess(CALL));
  const reasonIn = ({ lane }: Given): CancelReason | undefined => {
    const [process] = lane.processes.live;
    return process === undefined ? undefined : stopReason(lane, process);
  };
  expect(reasonIn(requested)).toBeUndefined();
  expect(reasonIn(requested.and(cancelRun("run_a", note("run"))))).toEqual(note("run"));
  expect(reasonIn(requested.and(cancelCall(CALL, note("call")), cancelRun("run_a", note("run"))))).toEqual(
    note("call"),
  );
  const own = requested.and(cancelProcess(PROCESS, note("own")), cancelCall(CALL, note("call")));
  expect(reasonIn(own)).toEqual(note("own"));
  expect(reasonIn(requested.and(settleTurn(TURN)))).toEqual({ kind: "parent", id: "run_a" });
  expect(reasonIn(live.and(beginProcess(), cancelRun("run_a")))).toBeUndefined();
});

test("a question of a covered call does not change what a stop covers", () => {
  const asked = withCall.and(ask(CALL, approval()));
  expect(inShort(covers(asked.lane, cancelCall(CALL)))).toBe("call_a.1");
  expect(inShort(covers(asked.lane, cancelQuestion("ask_a.1")))).toBe("");
});
