// Ends of turns and calls: while the store is slow, while runs are parked, and when they come too late.
import { describe, expect, test } from "vitest";
import { gate, openTestBelay, untilAborted } from "../../test/fixtures/belay.ts";
import { slots } from "../agent/loop/slots.ts";
import { ControlError } from "../core/errors.ts";
import { CALLS_LIVE_MAX, SHUTDOWN_MS } from "../core/limits.ts";
import type { Recorded } from "../core/model/event.ts";
import type { Agent, CallRequest, Execute, LiveCall, Turn } from "../ports/agent.ts";
import type { Notice } from "../ports/hooks.ts";
import type { BelayOptions } from "../sdk/belay-options.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { faultyStore } from "../testing/faulty-store.ts";
import { Gate } from "../testing/gate.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import { sequentialIds } from "../testing/sequential-ids.ts";
import { Engine } from "./engine.ts";
import type { ShutdownReport } from "./shutdown.ts";

async function calm(): Promise<void> {
  for (let round = 0; round < 5; round += 1) await settled();
}

/** A run of this agent, in a store that outlives its engine. */
async function stage(agent: Agent, options: Partial<BelayOptions> = {}) {
  const clock = manualClock();
  const memory = new MemoryStore({ clock });
  memory.close = async () => {};
  const store = faultyStore(memory);
  const { belay, notices } = await openTestBelay({}, { agent, clock, store, graceMs: 1_000, ...options });
  const session = await belay.createSession();
  const run = session.prompt("go");
  run.outcome.catch(() => {});
  await calm();
  const log = async (): Promise<readonly Recorded[]> =>
    (await memory.read(session.id, { after: 0, limit: 1_000 })).events;
  /** The events in the log after the first of this type, with outcomes. */
  const since = async (type: Recorded["type"]): Promise<readonly string[]> => {
    const events = await log();
    const after = events.slice(events.findIndex((event) => event.type === type) + 1);
    return after.map((event) => ("outcome" in event ? `${event.type}: ${event.outcome.kind}` : event.type));
  };
  /** Parks everything, without a time limit. */
  const park = async (): Promise<ShutdownReport> => {
    const closed = belay.close();
    await calm();
    await clock.advance(SHUTDOWN_MS);
    return closed;
  };
  return { clock, store, belay, notices, session, run, log, since, park };
}

const calling = (execute: Execute, more: Partial<CallRequest> = {}): Agent => {
  const agent: Agent = async (turn) =>
    turn.spent.turns === 0 ? { calls: [{ name: "tool", input: null, execute, ...more }] } : "went on";
  return agent;
};

describe("G33: when a worker parks its runs,", () => {
  test("work that has not ended and stops when asked: its text is kept, and the next worker continues it", async () => {
    const { park, since } = await stage(async (turn) => {
      turn.emit("so far");
      await turn.call("tool", null, ({ signal }) => untilAborted(signal));
      return untilAborted(turn.signal);
    });
    await park();
    const downs = ["call.settled: cancelled", "turn.settled: cancelled", "run.parked"];
    expect(await since("call.requested")).toEqual(downs);
    const talking = await stage((turn) => {
      turn.emit("so far");
      return untilAborted(turn.signal);
    });
    await talking.park();
    expect(await talking.since("turn.requested")).toEqual(["turn.extended", "turn.settled: cancelled", "run.parked"]);
  });

  test("work that does not stop when asked is not reported as abandoned", async () => {
    const deaf = (): Promise<never> => new Promise(() => {});
    const turn = await stage(deaf);
    await turn.park();
    expect(await turn.since("turn.requested")).toEqual(["turn.settled: cancelled", "run.parked"]);
    const call = await stage(calling(deaf));
    await call.park();
    expect(await call.since("call.requested")).toEqual(["call.settled: cancelled", "run.parked"]);
    for (const event of [...(await turn.log()), ...(await call.log())])
      expect(event).not.toHaveProperty("outcome.abandoned");
  });

  test("work that ends by itself meanwhile has ended", async () => {
    const finishes: Execute = ({ signal }) => untilAborted(signal).catch(() => "finished anyway");
    const call = await stage(calling(finishes));
    await call.park();
    expect((await call.since("call.requested")).slice(0, 1)).toEqual(["call.settled: completed"]);
    const turn = await stage(({ signal }) => untilAborted(signal).catch(() => "finished anyway"));
    await turn.park();
    expect(await turn.since("turn.requested")).toEqual(["turn.settled: completed", "run.settled: completed"]);
  });

  test("calls that a turn requests at its end are recorded, and do not begin", async () => {
    const begun: string[] = [];
    const { park, since } = await stage(async ({ signal }) => {
      await untilAborted(signal).catch(() => {});
      return { calls: [{ name: "tool", input: null, execute: () => void begun.push("tool") }] };
    });
    await park();
    const ends = ["turn.settled: completed", "call.requested", "call.settled: cancelled", "run.parked"];
    expect(await since("turn.requested")).toEqual(ends);
    expect(begun).toEqual([]);
  });

  test("calls that a turn requests at its end delay no caller, although another call of it does not stop", async () => {
    const { park, since } = await stage(async (turn) => {
      turn.call("deaf", null, () => new Promise<never>(() => {})).catch(() => {});
      await untilAborted(turn.signal).catch(() => {});
      return { calls: [{ name: "tool", input: null, execute: () => null }] };
    });
    expect(await park()).toEqual({ unfinished: [] });
    expect((await since("turn.settled")).at(-1)).toBe("run.parked");
  });

  test("a run whose cancel is not durable yet ends as cancelled, not parked", async () => {
    const goOn = gate();
    const { store, run, clock, park, since, session } = await stage(async ({ signal }) => {
      await untilAborted(signal).catch(() => {});
      await goOn.passed;
      throw new Error("stopped");
    });
    store.always("append", { kind: "fail", code: "unavailable" });
    store.always("read", { kind: "fail", code: "unavailable" });
    session.prompt("lost").outcome.catch(() => {});
    await settled();
    run.cancel().catch(() => {});
    await settled();
    const parked = park();
    goOn.open();
    await settled();
    store.heal();
    await clock.advance(500);
    expect(await parked).toEqual({ unfinished: [] });
    expect(await since("run.cancel_requested")).toEqual(["turn.settled: cancelled", "run.settled: cancelled"]);
  });

  test("a run that was cancelled before ends instead of being parked", async () => {
    const turn = await stage(async ({ signal }) => {
      await untilAborted(signal).catch(() => {});
      return new Promise<undefined>(() => {});
    });
    turn.run.cancel().catch(() => {});
    await turn.park();
    expect(await turn.since("run.cancel_requested")).toEqual(["turn.settled: cancelled", "run.settled: cancelled"]);
    const call = await stage(calling(() => new Promise<never>(() => {})));
    call.run.cancel().catch(() => {});
    await call.park();
    expect(await call.since("run.cancel_requested")).toEqual(["call.settled: cancelled", "run.settled: cancelled"]);
  });
});

describe("G28: while the store is slow,", () => {
  const held = async (started: (call: LiveCall) => void, more: Partial<CallRequest> = {}) => {
    const one = await stage(
      calling((call) => {
        started(call);
        return untilAborted(call.signal);
      }, more),
    );
    return one;
  };

  /** From now on nothing can be recorded: a batch hangs, the store refuses, or it is unknown what was written. */
  const hinder = ({ store, session }: Awaited<ReturnType<typeof stage>>, how: Trouble): void => {
    const trouble: Record<Trouble, () => void> = {
      hanging: () => store.always("append", { kind: "delay", until: new Gate() }),
      refusing: () => store.always("append", { kind: "fail", code: "store_full" }),
      unknown: () => {
        store.always("append", { kind: "fail", code: "unavailable" });
        store.always("read", { kind: "fail", code: "unavailable" });
      },
    };
    trouble[how]();
    session.prompt("other", { key: "k" }).outcome.catch(() => {});
  };
  type Trouble = "hanging" | "refusing" | "unknown";
  const troubles: readonly Trouble[] = ["hanging", "refusing", "unknown"];

  test.each(troubles)("a call that reaches its time limit is stopped at once (store: %s)", async (how) => {
    let signal: AbortSignal | undefined;
    const one = await held((call) => (signal = call.signal), { timeoutMs: 40 });
    hinder(one, how);
    await one.clock.advance(39);
    expect(signal?.aborted).toBe(false);
    await one.clock.advance(1);
    expect(signal?.aborted).toBe(true);
    expect(signal?.reason).toMatchObject({ reason: { kind: "timeout", limitMs: 40 } });
  });

  test.each(troubles)("an agent that stops its own run stops all of it at once (store: %s)", async (how) => {
    const aborted: string[] = [];
    let stop: Turn["stop"] | undefined;
    const one = await stage(async (turn) => {
      stop = turn.stop;
      turn.signal.addEventListener("abort", () => aborted.push("turn"));
      await turn.call("tool", null, ({ signal }) => {
        signal.addEventListener("abort", () => aborted.push("tool"));
        return untilAborted(signal);
      });
      return untilAborted(turn.signal);
    });
    hinder(one, how);
    await settled();
    expect(aborted).toEqual([]);
    stop?.("The budget is used up.").catch(() => {});
    expect(aborted.toSorted()).toEqual(["tool", "turn"]);
  });

  /** A call that has waited for a slot, which it gets while a decision is pending that the store can still refuse. */
  const about = async (decided: (one: Awaited<ReturnType<typeof stage>>) => void) => {
    const places = slots(1);
    const mine = Promise.withResolvers<() => void>();
    places.take(mine.resolve);
    const begun: string[] = [];
    const one = await stage(calling(() => void begun.push("tool"), { slots: places }));
    const stalled = new Gate();
    one.store.always("append", { kind: "delay", until: stalled });
    decided(one);
    await settled();
    (await mine.promise)();
    await calm();
    expect(begun).toEqual([]);
    return { ...one, begun, stalled };
  };

  test("a call does not begin after an interrupt that is decided, and never if that is recorded", async () => {
    const one = await about(({ session }) => session.prompt("urgent", { delivery: "interrupt" }).outcome);
    one.store.heal();
    one.stalled.open();
    expect(await one.run.outcome).toMatchObject({ kind: "cancelled", reason: { kind: "superseded" } });
    expect(one.begun).toEqual([]);
  });

  test("G33: a worker that closes before it is known whether a call may begin does not loop", async () => {
    const one = await about(({ session }) =>
      session.prompt("urgent", { delivery: "interrupt" }).outcome.catch(() => {}),
    );
    const parked = one.park();
    await one.clock.advance(SHUTDOWN_MS);
    expect(await parked).toEqual({ unfinished: [one.session.id] });
    await calm();
    expect(one.begun).toEqual([]);
  });

  test("G33: work that runs behind an unrecorded interrupt is stopped when its worker leaves", async () => {
    let signal: AbortSignal | undefined;
    const one = await held((call) => (signal = call.signal));
    one.store.always("append", { kind: "delay", until: new Gate() });
    one.session.prompt("urgent", { delivery: "interrupt" }).outcome.catch(() => {});
    const parked = one.park();
    await one.clock.advance(SHUTDOWN_MS);
    await parked;
    expect(signal?.reason).toMatchObject({ reason: { kind: "shutdown" } });
  });

  test("a call begins once the interrupt that it has waited for was refused", async () => {
    const one = await about(({ session }) => {
      session.prompt("first").outcome.catch(() => {});
      // Once that is being written, so that it is part of the next batch.
      queueMicrotask(() => session.prompt("urgent", { delivery: "interrupt" }).outcome.catch(() => {}));
    });
    one.store.heal();
    one.store.always("append", { kind: "fail", code: "store_full" });
    one.stalled.open();
    await expect.poll(() => one.begun).toEqual(["tool"]);
  });

  test("a call that was approved does not begin after its own cancel, which is decided and not durable", async () => {
    const begun: string[] = [];
    const one = await stage(calling(() => void begun.push("tool"), { approval: true }));
    const [call] = (await one.session.explain()).live?.calls ?? [];
    const [question] = await one.session.questions();
    const [answered, cancelled] = [new Gate(), new Gate()];
    one.store.plan("append", 1, { kind: "delay", until: answered });
    one.store.plan("append", 2, { kind: "delay", until: cancelled });
    void one.belay.questions.allow(question?.id ?? "");
    await settled();
    one.belay.cancel(call?.callId ?? "").catch(() => {});
    await settled();
    answered.open();
    await calm();
    expect(begun).toEqual([]);
    cancelled.open();
    expect(await one.run.outcome).toEqual({ kind: "completed" });
    expect(begun).toEqual([]);
    expect(await one.since("call.cancel_requested")).toContain("call.settled: cancelled");
  });

  test("a call begins although another one is being stopped", async () => {
    const places = slots(1);
    const mine = Promise.withResolvers<() => void>();
    places.take(mine.resolve);
    const begun: string[] = [];
    const agent: Agent = ({ spent }) =>
      spent.turns > 0
        ? "went on"
        : {
            calls: [
              { name: "sibling", input: null, execute: () => new Promise<never>(() => {}) },
              { name: "tool", input: null, slots: places, execute: () => void begun.push("tool") },
            ],
          };
    const one = await stage(agent);
    const [sibling] = (await one.session.explain()).live?.calls ?? [];
    one.store.always("append", { kind: "delay", until: new Gate() });
    one.belay.cancel(sibling?.callId ?? "").catch(() => {});
    await settled();
    (await mine.promise)();
    await calm();
    expect(begun).toEqual(["tool"]);
  });

  test("a call begins while no stop of it is decided, whatever else is being written", async () => {
    const places = slots(1);
    const mine = Promise.withResolvers<() => void>();
    places.take(mine.resolve);
    const begun: string[] = [];
    const one = await stage(calling(() => void begun.push("tool"), { slots: places }));
    one.store.always("append", { kind: "delay", until: new Gate() });
    one.session.prompt("queued").outcome.catch(() => {});
    await settled();
    (await mine.promise)();
    await calm();
    expect(begun).toEqual(["tool"]);
  });
});

test("G28: a call that the store refuses never begins, and its caller gets the error", async () => {
  const begun: string[] = [];
  const errors: unknown[] = [];
  const goOn = gate();
  const one = await stage(async (turn) => {
    await goOn.passed;
    one.store.plan("append", 1, { kind: "fail", code: "store_full" });
    await turn.call("tool", null, () => void begun.push("tool")).catch((error: unknown) => errors.push(error));
    return "went on";
  });
  goOn.open();
  expect(await one.run.outcome).toEqual({ kind: "completed" });
  expect(await one.run.text()).toBe("went on");
  expect(errors).toEqual([expect.any(ControlError)]);
  expect(errors).toMatchObject([{ code: "store_full" }]);
  expect(begun).toEqual([]);
});

describe("in a separate engine,", () => {
  const house = async (agent: Agent, cwd?: string) => {
    const clock = manualClock();
    const store = faultyStore(new MemoryStore({ clock }));
    const engine = new Engine({
      ...{ store, clock, ids: sequentialIds(), agent, hooks: {}, graceMs: 1_000 },
      ...{ liveRunsMax: 1, resume: "resume", runLimitMs: undefined, tap: undefined, spawner: undefined },
      notify: () => {},
    });
    await engine.start();
    const { id } = await engine.create(undefined, cwd === undefined ? {} : { cwd });
    const { runId } = engine.prompt(id, { prompt: { text: "go" }, delivery: "queue", key: undefined });
    await calm();
    return { engine, store, id, runId, works: () => engine.lanes.peek(id)?.works.map((work) => work.id) };
  };

  test("turns and calls have the working directory of their session", async () => {
    const seen: unknown[] = [];
    await house(async (turn) => {
      seen.push(turn.cwd);
      await turn.call("tool", null, ({ cwd }) => void seen.push(cwd));
    }, "/somewhere");
    expect(seen).toEqual(["/somewhere", "/somewhere"]);
  });

  test("a call does not begin where its request can never become durable, and does not retry either", async () => {
    const places = slots(1);
    const mine = Promise.withResolvers<() => void>();
    places.take(mine.resolve);
    const begun: string[] = [];
    const { engine, store, id } = await house(calling(() => void begun.push("tool"), { slots: places }));
    store.always("append", { kind: "delay", until: new Gate() });
    const { accepted } = engine.prompt(id, { prompt: { text: "urgent" }, delivery: "interrupt", key: undefined });
    accepted.catch(() => {});
    await settled();
    (await mine.promise)();
    await calm();
    engine.commit.leave(engine.lanes.all());
    await calm();
    expect(begun).toEqual([]);
  });

  test("nothing is kept of work that has ended, nor of work that was never recorded", async () => {
    const goOn = gate();
    const refused: unknown[] = [];
    const { engine, runId, works } = await house(async (turn) => {
      await turn.call("done", null, () => null);
      const many = Array.from({ length: CALLS_LIVE_MAX }, () => turn.call("one of many", null, () => goOn.passed));
      await turn.call("one too many", null, () => null).catch((error: unknown) => refused.push(error));
      await Promise.all(many);
      await untilAborted(turn.signal).catch(() => {});
      return { calls: [{ name: "never", input: null, execute: () => null }] };
    });
    expect(refused).toEqual([expect.objectContaining({ code: "overloaded", message: expect.stringContaining("256") })]);
    expect(works()).toHaveLength(CALLS_LIVE_MAX + 1);
    goOn.open();
    await calm();
    expect(works()).toHaveLength(1);
    await engine.cancel.run(runId, { kind: "user" });
    expect(await engine.outcome(runId)).toMatchObject({ kind: "cancelled" });
    await calm();
    expect(works()).toEqual([]);
  });

  test("nothing is kept of a call above the limit, beside those below it", async () => {
    const goOn = gate();
    const calls = Array.from({ length: CALLS_LIVE_MAX }, (_, index): CallRequest => {
      return { name: `number ${index}`, input: null, execute: () => goOn.passed };
    });
    const { engine, runId, works } = await house((turn) => {
      if (turn.spent.turns > 0) return "done";
      void turn.call("held", null, () => goOn.passed);
      return { calls };
    });
    expect(works()).toHaveLength(CALLS_LIVE_MAX);
    goOn.open();
    expect(await engine.outcome(runId)).toEqual({ kind: "completed" });
    await calm();
    expect(works()).toEqual([]);
  });
});

describe("G12: an end after the work was abandoned", () => {
  const late = async (fenced: boolean) => {
    const clock = manualClock();
    const notices: Notice[] = [];
    const end = gate();
    const agent: Agent = async (turn) => {
      await turn.call("tool", null, () => end.passed);
      return undefined;
    };
    const engine = new Engine({
      ...{ store: new MemoryStore({ clock }), clock, ids: sequentialIds(), agent, hooks: {}, graceMs: 1_000 },
      ...{ liveRunsMax: 1, resume: "resume", runLimitMs: undefined, tap: undefined, spawner: undefined },
      notify: (notice) => notices.push(notice),
    });
    await engine.start();
    const { id } = await engine.create(undefined, {});
    const { runId } = engine.prompt(id, { prompt: { text: "go" }, delivery: "queue", key: undefined });
    await calm();
    if (fenced) engine.commit.fence(engine.lanes.get(id));
    else void engine.cancel.run(runId, { kind: "user" });
    await clock.advance(1_000);
    end.open();
    await calm();
    return { engine, runId, notices: notices.filter(({ type }) => type === "late") };
  };

  test("is dropped, reported in a notice, and counted", async () => {
    const { engine, runId, notices } = await late(false);
    expect(notices).toEqual([{ type: "late", runId, work: "tool", outcome: "completed" }]);
    expect(engine.late).toBe(1);
  });

  test("is not even reported if another worker drives the session by then", async () => {
    expect((await late(true)).notices).toEqual([]);
  });
});
