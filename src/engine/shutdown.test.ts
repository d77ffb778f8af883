// A graceful shutdown: what is stopped, what is parked, which callers get an error, and that it terminates.
import { describe, expect, test } from "vitest";
import { gate } from "../../test/fixtures/belay.ts";
import { watch } from "../../test/fixtures/commit.ts";
import { asked, eventsOf, live, neighbour, testEngine } from "../../test/fixtures/engine.ts";
import { HOOK_MS } from "../core/limits.ts";
import { Gate } from "../testing/gate.ts";
import { settled } from "../testing/manual-clock.ts";
import { shutDown } from "./shutdown.ts";

const SHUTTING_DOWN = { code: "shutting_down", message: "Belay is shutting down and accepts nothing new." };
const USER = { kind: "user" } as const;
const unlimited = (): Promise<void> => new Promise(() => {});

describe("a shutdown that cancels", () => {
  test("ends live and waiting runs, releases its leases, and leaves no timer", async () => {
    const house = testEngine();
    const { engine, clock, store } = house;
    const { sessionId, turn } = await live(house);
    await engine.prompt(sessionId, asked("waits")).accepted;
    await engine.create(undefined, {});
    const closed = shutDown(engine, "cancel", unlimited());
    expect(engine.phase).toBe("closing");
    await turn.cancelled;
    turn.endCancelled();
    const { close } = store;
    const log: unknown[] = [];
    store.close = async () => {
      log.push(...(await eventsOf(house, sessionId)).slice(-3));
      await close();
    };
    expect(await closed).toEqual({ unfinished: [] });
    const outcome = { kind: "cancelled", reason: { kind: "shutdown" } };
    expect(log).toMatchObject([
      { type: "run.settled", outcome },
      { type: "turn.settled", outcome },
      { type: "run.settled", outcome },
    ]);
    expect(store.calls("release")).toBe(2);
    expect([engine.phase, clock.pending]).toEqual(["closed", []]);
  });

  test("leaves alone what another worker drives", async () => {
    const there = testEngine();
    const { sessionId, turn } = await live(there);
    const here = neighbour(there);
    await here.engine.loaded(sessionId);
    here.store.close = async () => {};
    expect(await shutDown(here.engine, "cancel", unlimited())).toEqual({ unfinished: [] });
    expect(turn.given.signal.aborted).toBe(false);
    expect((await eventsOf(there, sessionId)).at(-1)).toMatchObject({ type: "turn.requested" });
    expect(here.store.calls("release")).toBe(0);
  });

  test("reports what was busy at the limit, and rejects the callers that wait for it", async () => {
    const house = testEngine();
    const { sessionId } = await live(house);
    const limit = new Gate();
    const closed = watch(shutDown(house.engine, "cancel", limit.opened));
    await settled();
    expect(closed.is).toBe("waiting");
    limit.open();
    await settled();
    expect(closed).toEqual({ is: "answered", value: { unfinished: [sessionId] } });
  });

  test("does not touch sessions that are not loaded yet, and rejects the callers that wait for them", async () => {
    const there = testEngine({ liveRunsMax: 0 });
    const { sessionId, accepted } = there.engine.begin(undefined, {}, asked("waits"));
    await accepted;
    await there.log.release(sessionId, there.engine.worker);
    const here = neighbour(there);
    here.store.close = async () => {};
    // It has the lease by now, but not the log.
    here.store.plan("load", 1, { kind: "delay", until: new Gate() });
    const refused = watch(here.engine.prompt(sessionId, asked("second")).accepted);
    const { sessionId: busy } = await live(here);
    const limit = new Gate();
    const closed = shutDown(here.engine, "cancel", limit.opened);
    await settled();
    expect(refused.is).toBe("refused");
    limit.open();
    expect(await closed).toEqual({ unfinished: [busy] });
    expect(refused).toMatchObject({ is: "refused", value: SHUTTING_DOWN });
    expect((await eventsOf(there, sessionId)).at(-1)).toMatchObject({ type: "run.accepted" });
  });

  test("leaves no caller waiting for a session that it began to load while it closed", async () => {
    const house = testEngine();
    await live(house);
    const limit = new Gate();
    const closed = shutDown(house.engine, "cancel", limit.opened);
    house.store.plan("load", 1, { kind: "delay", until: new Gate() });
    const cancelled = watch(house.engine.cancel.session("ses_other", { reason: USER }));
    limit.open();
    await closed;
    expect(cancelled).toMatchObject({ is: "refused", value: SHUTTING_DOWN });
  });

  test("terminates although the store does not: waiting callers are rejected soon", async () => {
    const house = testEngine();
    const { engine, clock, store } = house;
    const { id } = await engine.create(undefined, {});
    store.always("append", { kind: "delay", until: new Gate() });
    const sent = watch(engine.prompt(id, asked("sent")).accepted);
    await settled();
    store.close = unlimited;
    const closed = watch(shutDown(engine, "cancel", Promise.resolve()));
    await clock.advance(999);
    expect(closed.is).toBe("waiting");
    await clock.advance(1);
    expect(closed).toEqual({ is: "answered", value: { unfinished: [id] } });
    expect(sent).toMatchObject({ is: "refused", value: { code: "unavailable" } });
    // A caller that reads now gets what is durable.
    expect((await engine.loaded(id))?.durable).toMatchObject({ phase: "open", head: 1 });
  });
});

describe("a shutdown that parks", () => {
  test("suspends live runs, leaves waiting ones unchanged, and the next worker continues both", async () => {
    const house = testEngine();
    const { sessionId, turn } = await live(house);
    await house.engine.prompt(sessionId, asked("waits")).accepted;
    house.store.close = async () => {};
    const closed = shutDown(house.engine, "park", unlimited());
    expect(house.engine.phase).toBe("parking");
    await turn.cancelled;
    turn.endCancelled();
    expect(await closed).toEqual({ unfinished: [] });
    expect((await eventsOf(house, sessionId)).at(-1)).toMatchObject({ type: "run.parked" });
    const next = neighbour(house);
    await next.engine.start();
    const again = await next.agent.nextTurn();
    expect(again.given.prompt).toEqual({ text: "live" });
    again.complete();
    expect((await next.agent.nextTurn()).given.prompt).toEqual({ text: "waits" });
  });

  test("begins no further turn, although the one that ends requests it", async () => {
    const house = testEngine();
    const { sessionId, turn } = await live(house);
    house.store.close = async () => {};
    const closed = shutDown(house.engine, "park", unlimited());
    turn.askAgain("more");
    expect(await closed).toEqual({ unfinished: [] });
    expect(house.agent.turns).toHaveLength(1);
    expect((await eventsOf(house, sessionId)).at(-1)).toMatchObject({ type: "run.parked" });
  });

  test("leaves a queue unchanged", async () => {
    const house = testEngine({ liveRunsMax: 0 });
    const { sessionId, accepted } = house.engine.begin(undefined, {}, asked("waits"));
    await accepted;
    house.store.close = async () => {};
    expect(await shutDown(house.engine, "park", unlimited())).toEqual({ unfinished: [] });
    expect((await eventsOf(house, sessionId)).at(-1)).toMatchObject({ type: "run.accepted" });
  });

  test("ends a run that is already being stopped", async () => {
    const house = testEngine();
    const { sessionId, runId, turn } = await live(house);
    await house.engine.cancel.run(runId, USER);
    house.store.close = async () => {};
    const closed = shutDown(house.engine, "park", unlimited());
    turn.endCancelled();
    expect(await closed).toEqual({ unfinished: [] });
    expect((await eventsOf(house, sessionId)).at(-1)).toMatchObject({
      ...{ type: "run.settled", outcome: { kind: "cancelled", reason: USER } },
    });
  });

  test("ends a run that was cancelled after its work had been stopped", async () => {
    const house = testEngine();
    const { sessionId, runId, turn } = await live(house);
    house.store.close = async () => {};
    const late = new Gate();
    house.store.plan("append", 1, { kind: "delay", until: late });
    const waits = house.engine.prompt(sessionId, asked("waits")).accepted;
    const closed = shutDown(house.engine, "park", unlimited());
    await turn.cancelled;
    turn.endCancelled();
    await settled();
    const cancelled = house.engine.cancel.run(runId, USER);
    late.open();
    await Promise.all([waits, cancelled]);
    expect(await closed).toEqual({ unfinished: [] });
    expect((await eventsOf(house, sessionId)).filter(({ type }) => type === "run.settled")).toMatchObject([
      { runId, outcome: { kind: "cancelled", reason: USER } },
    ]);
  });

  test.each(["returns", "throws", "asks for another turn"] as const)(
    "G25: a run is parked, not completed, if its agent %s after its call was parked",
    async (how) => {
      const house = testEngine();
      const { sessionId, turn } = await live(house);
      const call = turn.call("write");
      const { signal } = await call.begun;
      house.store.close = async () => {};
      const closed = shutDown(house.engine, "park", unlimited());
      await turn.cancelled;
      call.fail(signal.reason);
      await settled();
      if (how === "returns") turn.complete("done");
      else if (how === "throws") turn.fail(new Error("the call was cancelled"));
      else turn.askAgain("more");
      expect(await closed).toEqual({ unfinished: [] });
      const ends = (await eventsOf(house, sessionId)).slice(-3);
      expect(ends).toMatchObject([
        { type: "call.settled", outcome: { kind: "cancelled", reason: { kind: "shutdown" } } },
        { type: "turn.settled", outcome: { kind: "cancelled", reason: { kind: "shutdown" } } },
        { type: "run.parked" },
      ]);
      const next = neighbour(house);
      await next.engine.start();
      expect((await next.agent.nextTurn()).given.prompt).toEqual({ text: "live" });
    },
  );

  test("G33: answers every caller before it reports that the store could not be closed", async () => {
    const house = testEngine();
    const { sessionId, runId } = await live(house);
    const outcome = watch(house.engine.outcome(runId));
    house.store.close = () => Promise.reject(new Error("device is gone"));
    house.store.always("append", { kind: "delay", until: new Gate() });
    const accepted = watch(house.engine.prompt(sessionId, asked("late")).accepted);
    await settled();
    const closed = watch(shutDown(house.engine, "park", Promise.resolve()));
    await settled();
    expect(closed).toMatchObject({ is: "refused", value: { message: "device is gone" } });
    expect([outcome.is, accepted.is]).toEqual(["refused", "refused"]);
  });

  test("G25: waits for running hooks, within their limit", async () => {
    const told = gate();
    const ended: string[] = [];
    const onOutcome = async (): Promise<void> => {
      await told.passed;
      ended.push("hook");
    };
    const house = testEngine({ hooks: { onOutcome } });
    const { turn } = await live(house);
    turn.complete("done");
    await settled();
    const closed = watch(shutDown(house.engine, "park", unlimited()));
    await settled();
    expect(closed.is).toBe("waiting");
    told.open();
    await settled();
    expect([closed.is, ended]).toEqual(["answered", ["hook"]]);
  });

  test("G33: a hook that does not end delays it by no more than the limit of hooks", async () => {
    const house = testEngine({ hooks: { onOutcome: () => new Promise<void>(() => {}) } });
    const { turn } = await live(house);
    turn.complete("done");
    await settled();
    const closed = watch(shutDown(house.engine, "park", unlimited()));
    await house.clock.advance(HOOK_MS);
    expect(closed.is).toBe("answered");
  });

  test.each(["turn", "call"] as const)(
    "G33: leaves no timer, and no promise, of a %s that ignores its stop",
    async (which) => {
      const house = testEngine();
      const { turn } = await live(house);
      const call = which === "call" ? turn.call("write") : undefined;
      await call?.begun;
      turn.say("so far");
      const result = call === undefined ? undefined : watch(call.result);
      await shutDown(house.engine, "park", Promise.resolve());
      await settled();
      expect(house.clock.pending).toEqual([]);
      if (result !== undefined) expect(result.is).toBe("refused");
    },
  );
});
