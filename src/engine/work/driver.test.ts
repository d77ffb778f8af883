// What the state demands is begun and stopped, once each: never too early, and never late.
import { describe, expect, test } from "vitest";
import {
  accept,
  call,
  cancelCall,
  cancelRun,
  park,
  running,
  settleTurn,
  user,
  wanted,
} from "../../../test/fixtures/commands.ts";
import { ControlError } from "../../core/errors.ts";
import { DEATH_MS, RETURN_MS } from "../../core/limits.ts";
import type { CancelReason } from "../../core/model/cancel.ts";
import type { Work } from "../../core/model/ids.ts";
import { type Given, given } from "../../testing/given.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { SessionState } from "../log/session-state.ts";
import { AbortQueue } from "./abort-queue.ts";
import { Driver } from "./driver.ts";
import { LiveWork } from "./live-work.ts";

const GRACE_MS = 1_000;
const TURN = "turn_a.1";
const CALL = "call_a.1";

const inTurn = given(...running("run_a"));
const inCall = inTurn.and(call(CALL));
const interrupted = inTurn.and(accept("run_b", { delivery: "interrupt" }));

/** A lane with these decided and durable states, and a work starter that records its calls. */
function stage(decided: Given, durable: Given = decided) {
  const clock = manualClock();
  const done: string[] = [];
  const lane = new SessionState("ses_1");
  Object.assign(lane, { phase: "ready", epoch: 1, decided: decided.lane, durable: durable.lane });
  const world = { opens: true, unknown: [] as Work[], processes: 0 };
  class ScriptedWork extends LiveWork {
    begin(): void {
      done.push(`begin ${this.id}`);
    }

    abandon(reason: CancelReason, how: string): void {
      done.push(`${how} ${this.id}: ${reason.kind}`);
    }
  }
  const add = (id: Work): LiveWork => {
    const work = new ScriptedWork(id, id);
    lane.works.push(work);
    return work;
  };
  const drive = new Driver({
    clock,
    aborts: new AbortQueue(clock),
    graceMs: GRACE_MS,
    world: {
      begins: () => world.opens,
      handle: (_, id) => lane.work(id) ?? (world.unknown.includes(id) ? undefined : add(id)),
      unbegun: (_, id) => void done.push(`unbegun ${id}`),
      hasProcesses: () => world.processes > 0,
    },
  });
  /** Sets the decided state, and the durable state, which is the same by default. */
  const becomes = (next: Given, known: Given = next): void => {
    Object.assign(lane, { decided: next.lane, durable: known.lane });
    drive.satisfy(lane);
  };
  return { clock, done, lane, world, add, drive, becomes };
}

/** Live work with this id, and its recorded calls. */
function liveOne(decided: Given, id: Work = CALL) {
  const one = stage(decided);
  one.drive.satisfy(one.lane);
  one.done.length = 0;
  const work = one.lane.work(id);
  if (work === undefined) throw new Error(`${id} is not live`);
  return { ...one, work };
}

describe("demanded work begins", () => {
  test("once, however often the state is checked", () => {
    const { drive, lane, done } = stage(inCall);
    drive.satisfy(lane);
    drive.satisfy(lane);
    expect(done).toEqual([`begin ${TURN}`, `begin ${CALL}`]);
    expect(lane.works.map(({ phase }) => phase)).toEqual(["live", "live"]);
  });

  test("not before its request is durable, and without live work until then", () => {
    const { done, lane, becomes } = stage(inCall);
    becomes(inCall, inTurn);
    expect(done).toEqual([`begin ${TURN}`]);
    expect(lane.work(CALL)).toBeUndefined();
    becomes(inCall);
    expect(done).toEqual([`begin ${TURN}`, `begin ${CALL}`]);
  });

  test("not if the durable state stops it, has ended it, or has another run", () => {
    for (const known of [
      inCall.and(cancelRun("run_a")),
      inCall.and(cancelCall(CALL), cancelRun("run_a")),
      given(),
      given(...running("run_b"), call("call_b.1")),
    ]) {
      const { done, drive, lane } = stage(inCall, known);
      drive.satisfy(lane);
      expect(done).toEqual([]);
      expect(lane.works).toEqual([]);
    }
    const { done, drive, lane } = stage(inCall, inCall.and(cancelCall(CALL)));
    drive.satisfy(lane);
    expect(done).toEqual([`begin ${TURN}`]);
  });

  test("not while it is unknown what was written, nor while runs are parked, nor without the lease", () => {
    const trouble = { error: new ControlError("unavailable", "No answer."), until: 50, failures: 1 };
    for (const state of [{ health: { kind: "unknown", ...trouble } }, { epoch: undefined }]) {
      const { done, drive, lane } = stage(inCall);
      Object.assign(lane, state);
      drive.satisfy(lane);
      expect(done).toEqual([]);
    }
    const { done, drive, lane, world } = stage(inCall);
    world.opens = false;
    drive.satisfy(lane);
    expect(done).toEqual([]);
    expect(lane.works).toEqual([]);
  });

  test("or is settled as never begun, if it is durable and this worker cannot run it", () => {
    const { done, lane, world, becomes } = stage(inCall);
    world.unknown.push(CALL);
    const sibling = "call_a.2";
    world.unknown.push(sibling);
    const both = inCall.and(call(sibling));
    becomes(both.and(cancelCall(CALL)), inTurn.and(call(sibling)));
    expect(done).toEqual([`begin ${TURN}`, `unbegun ${sibling}`]);
    done.length = 0;
    becomes(both);
    expect(done).toEqual([`unbegun ${CALL}`, `unbegun ${sibling}`]);
    expect(lane.work(CALL)).toBeUndefined();
  });

  test("not for a lane without a live run, or with a parked one", () => {
    for (const state of [given(), given(accept("run_a")), inTurn.and(park)]) {
      const { done, drive, lane } = stage(state);
      drive.satisfy(lane);
      expect(done).toEqual([]);
    }
  });
});

describe("work that must stop", () => {
  test("is stopped in the tick of the decision, durable or not, and only once", () => {
    const { work, done, becomes, clock } = liveOne(inCall);
    becomes(inCall.and(cancelCall(CALL)), inCall);
    expect(work.scope.reason).toEqual(user);
    expect(work.phase).toBe("stopping");
    becomes(inCall.and(cancelCall(CALL)));
    expect(done).toEqual([]);
    expect(clock.pending).toHaveLength(1);
  });

  test("includes the turn and calls of a run, and a call that was stopped before keeps its reason", () => {
    const note = (text: string): CancelReason => ({ kind: "user", note: text });
    const { lane, becomes } = liveOne(inCall);
    becomes(inCall.and(cancelCall(CALL, note("call")), cancelRun("run_a", note("run"))));
    expect(lane.work(CALL)?.scope.reason).toEqual(note("call"));
    expect(lane.work(TURN)?.scope.reason).toEqual(note("run"));
  });

  test("is stopped in the tick in which a stop covers it, even if the state does not demand it yet", () => {
    const sibling = "call_a.2";
    const { lane, drive, work } = liveOne(inCall.and(call(sibling)));
    drive.stopAll(lane, [CALL, "call_a.9"], user, drive.deadline());
    expect(work.scope.reason).toEqual(user);
    expect([lane.work(sibling)?.phase, lane.work(TURN)?.phase]).toEqual(["live", "live"]);
    drive.stopAll(lane, [CALL, TURN], { kind: "user", note: "again" }, drive.deadline());
    expect(work.scope.reason).toEqual(user);
    expect(lane.work(TURN)?.scope.reason).toEqual({ kind: "user", note: "again" });
  });

  test("never begins if it had not begun, and has ended at once", () => {
    const { add, done, drive, lane, clock } = stage(inTurn);
    const work = add(CALL);
    drive.stop(lane, work, user);
    expect(done).toEqual([`unbegun ${CALL}: user`]);
    expect(work.scope.reason).toEqual(user);
    expect(work.phase).toBe("abandoned");
    expect(clock.pending).toEqual([]);
  });

  test("is abandoned at its deadline if it has not stopped, and its late result does not count", async () => {
    const { work, done, drive, lane, clock } = liveOne(inCall);
    drive.stop(lane, work, user);
    await clock.advance(GRACE_MS - 1);
    expect(done).toEqual([]);
    await clock.advance(1);
    expect(done).toEqual([`abandoned ${CALL}: user`]);
    drive.stop(lane, work, user);
    expect(drive.ended(lane, work)).toBe(false);
    expect(work.phase).toBe("abandoned");
    expect(done).toEqual([`abandoned ${CALL}: user`]);
  });

  test("has ended by itself if it stops, and its timer is cancelled", () => {
    const { work, done, drive, lane, clock } = liveOne(inCall);
    drive.stop(lane, work, user);
    expect(drive.ended(lane, work)).toBe(true);
    expect(clock.pending).toEqual([]);
    drive.stop(lane, work, user);
    expect(work.phase).toBe("ended");
    expect(done).toEqual([]);
  });

  test.each([
    ["a call", inCall, CALL],
    ["a turn", inTurn, TURN],
  ] as const)("has the grace period: %s", (_, state, id) => {
    const { work, drive, lane, clock } = liveOne(state, id);
    drive.stop(lane, work, user);
    expect(clock.pending).toEqual([{ inMs: GRACE_MS, idle: false }]);
  });

  test("has a deadline that a second stop can only shorten", () => {
    const { work, drive, lane, clock } = liveOne(inCall);
    drive.stop(lane, work, user, { stopBy: 500, deadBy: 900 });
    drive.stop(lane, work, user, { stopBy: 700, deadBy: 1_100 });
    expect(clock.pending).toEqual([{ inMs: 500, idle: false }]);
    drive.stop(lane, work, user, { stopBy: 200, deadBy: 600 });
    expect(clock.pending).toEqual([{ inMs: 200, idle: false }]);
  });

  test("G12: as a turn that waits for its call, is abandoned only after the call was answered", async () => {
    const { work, drive, lane, clock, done } = liveOne(inCall, TURN);
    const waited = lane.work(CALL) as LiveWork;
    drive.stop(lane, work, user);
    drive.stop(lane, waited, user);
    await clock.advance(GRACE_MS + DEATH_MS + 2_000);
    expect(done).toEqual([`abandoned ${CALL}: user`]);
    drive.forget(lane, waited);
    expect(clock.pending).toEqual([{ inMs: RETURN_MS, idle: false }]);
    await clock.advance(RETURN_MS);
    expect(done).toEqual([`abandoned ${CALL}: user`, `abandoned ${TURN}: user`]);
  });

  test("G12: as a turn whose call was answered after the grace, has until the deadline of processes", async () => {
    const { work, drive, lane, clock } = liveOne(inCall, TURN);
    const waited = lane.work(CALL) as LiveWork;
    drive.stop(lane, work, user);
    await clock.advance(GRACE_MS + 10);
    drive.forget(lane, waited);
    expect(clock.pending).toEqual([{ inMs: DEATH_MS - 10, idle: false }]);
  });

  test("G12: as a call that waits for its process, is abandoned only after the process has ended", async () => {
    const { work, drive, lane, clock, world, done } = liveOne(inCall);
    world.processes = 1;
    drive.stop(lane, work, user);
    await clock.advance(GRACE_MS + DEATH_MS);
    expect(done).toEqual([]);
    world.processes = 0;
    drive.processOver(lane, CALL);
    await clock.advance(RETURN_MS - 1);
    expect(done).toEqual([]);
    await clock.advance(1);
    expect(done).toEqual([`abandoned ${CALL}: user`]);
  });

  test("does not wait for a call that was parked, or has ended and is recorded", () => {
    for (const over of ["park", "forget"] as const) {
      const { work, drive, lane, clock } = liveOne(inCall, TURN);
      const done = lane.work(CALL) as LiveWork;
      drive.ended(lane, done);
      drive[over](lane, done);
      drive.stop(lane, work, user);
      expect(clock.pending).toEqual([{ inMs: GRACE_MS, idle: false }]);
    }
  });
});

describe("a stop that is not urgent waits until it is durable:", () => {
  const withCall = inCall.and(cancelCall(CALL));

  test("that of a call which waits for an approval, so that an earlier answer counts", () => {
    for (const waits of ["approval", "slot", "hook", undefined] as const) {
      const { work, becomes } = liveOne(inCall);
      Object.assign(work, { waits });
      becomes(withCall, inCall);
      expect(work.scope.reason).toEqual(waits === "approval" ? undefined : user);
      becomes(withCall);
      expect(work.scope.reason).toEqual(user);
    }
  });

  test("the same while an interrupt stops its run, which can still be refused itself", () => {
    const { work, becomes } = liveOne(inCall);
    Object.assign(work, { waits: "approval" });
    const both = withCall.and(accept("run_b", { delivery: "interrupt" }));
    becomes(both, inCall);
    expect(work.scope.reason).toBeUndefined();
    becomes(both);
    expect(work.scope.reason).toEqual(user);
  });

  test("that of a call which has not begun", () => {
    const { add, lane, done, becomes } = stage(inCall);
    const work = add(CALL);
    becomes(withCall, inCall);
    expect(work.phase).toBe("waiting");
    expect(lane.work(TURN)?.phase).toBe("live");
    becomes(withCall);
    expect(done).toEqual([`begin ${TURN}`, `unbegun ${CALL}: user`]);
  });

  test("not if its request is not durable either, or the whole run stops", () => {
    const sibling = "call_a.2";
    for (const known of [given(), inTurn, inTurn.and(call(sibling))]) {
      const unasked = stage(inTurn);
      const work = unasked.add(CALL);
      unasked.becomes(withCall.and(call(sibling)), known);
      expect(work.phase).toBe("abandoned");
    }
    const whole = liveOne(inCall);
    Object.assign(whole.work, { waits: "approval" });
    whole.becomes(inCall.and(cancelRun("run_a")), inCall);
    expect(whole.work.scope.reason).toEqual(user);
  });

  test("an interrupt, which the store can still refuse", () => {
    const { work, becomes } = liveOne(inTurn, TURN);
    becomes(interrupted, inTurn);
    expect(work.scope.reason).toBeUndefined();
    becomes(interrupted);
    expect(work.scope.reason).toEqual({ kind: "superseded", by: "run_b" });
  });

  test("an interrupt, even if its run is not known to have started, or an earlier one is known to stop", () => {
    const { work, becomes } = liveOne(inTurn, TURN);
    becomes(interrupted, given());
    expect(work.scope.reason).toBeUndefined();
    becomes(interrupted, given(...running("run_z")).and(cancelRun("run_z")));
    expect(work.scope.reason).toBeUndefined();
  });
});

describe("a lane is still", () => {
  const isStill = async (promise: Promise<void>): Promise<boolean> =>
    Promise.race([promise.then(() => true), new Promise<boolean>((resolve) => setImmediate(resolve, false))]);

  test("if no work is running", async () => {
    const { drive, lane } = stage(given());
    expect(await isStill(drive.still(lane))).toBe(true);
  });

  const ends: Readonly<Record<string, (one: ReturnType<typeof liveOne>) => Promise<void> | void>> = {
    "has ended": ({ drive, lane, work }) => void drive.ended(lane, work),
    "was given up": async ({ drive, lane, work, clock }) => {
      drive.stop(lane, work, user);
      await clock.advance(GRACE_MS);
    },
    "was forgotten": ({ drive, lane, work }) => drive.forget(lane, work),
  };
  test.each(Object.keys(ends))("once the last work %s", async (how) => {
    const one = liveOne(inCall);
    const still = [one.drive.still(one.lane), one.drive.still(one.lane)];
    const turn = one.lane.work(TURN);
    if (turn !== undefined) one.drive.ended(one.lane, turn);
    expect(await isStill(Promise.any(still))).toBe(false);
    await ends[how]?.(one);
    for (const each of still) expect(await isStill(each)).toBe(true);
    expect(one.lane.still).toEqual([]);
  });

  test("once work that had not begun never will", async () => {
    const { add, drive, lane } = stage(inTurn);
    const work = add(CALL);
    const still = drive.still(lane);
    drive.stop(lane, work, user);
    expect(await isStill(still)).toBe(true);
  });
});

test("a lane that is released stops all its work, and ended work waits for no answer any more", () => {
  const { add, drive, lane, done } = stage(inCall);
  const [live, waiting, ended, stopping] = [add(TURN), add(CALL), add("call_a.2"), add("call_a.3")];
  live.phase = "live";
  ended.phase = "ended";
  stopping.phase = "live";
  drive.stop(lane, stopping, user);
  drive.release(lane);
  expect([live, waiting, ended, stopping].map(({ scope, phase }) => [scope.reason?.kind, phase])).toEqual([
    ["shutdown", "stopping"],
    ["shutdown", "abandoned"],
    ["shutdown", "ended"],
    ["user", "stopping"],
  ]);
  expect(done).toEqual([`unbegun ${CALL}: shutdown`]);
});

test("forgotten work is demanded anew, and forgetting it twice does not end another", () => {
  const { drive, lane, work, done } = liveOne(inCall);
  drive.forget(lane, work);
  drive.forget(lane, work);
  expect(lane.works.map(({ id }) => id)).toEqual([TURN]);
  drive.satisfy(lane);
  expect(done).toEqual([`begin ${CALL}`]);
});

test("a call that outlives its turn is stopped as its child", () => {
  const { work, becomes } = liveOne(inCall);
  becomes(inCall.and(settleTurn(TURN)));
  expect(work.scope.reason).toEqual({ kind: "parent", id: "run_a" });
});

test("calls that a turn requested at its end begin when that is durable", () => {
  const asked = inTurn.and(settleTurn(TURN, { next: "turn", calls: [wanted(CALL)] }));
  const { done, becomes } = liveOne(inTurn, TURN);
  becomes(asked, inTurn);
  expect(done).toEqual([]);
  becomes(asked);
  expect(done).toEqual([`begin ${CALL}`]);
});

test("G12: of many live calls, only the one of an event is checked", () => {
  const calls = Array.from({ length: 100 }, (_, index): `call_${string}` => `call_a.${index + 1}`);
  const before = inTurn.and(...calls.map((id) => call(id)));
  const { drive, lane, done } = stage(before);
  drive.satisfy(lane);
  done.length = 0;
  const after = before.and(cancelCall("call_a.7"));
  const events = after.events.slice(before.events.length);
  const looked: Work[] = [];
  const { work } = lane;
  Object.assign(lane, {
    decided: after.lane,
    durable: after.lane,
    work: (id: Work) => {
      looked.push(id);
      return work.call(lane, id);
    },
  });
  drive.satisfy(lane, events);
  expect(looked).toEqual(["call_a.7"]);
  expect(lane.work("call_a.7")?.scope.reason).toEqual(user);
});
