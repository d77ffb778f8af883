// The whole engine: what it accepts, what it keeps in memory, what followers receive, and what it releases.
import { describe, expect, test } from "vitest";
import { watch } from "../../test/fixtures/commit.ts";
import { asked, eventsOf, live, neighbour, type TestEngine, testEngine } from "../../test/fixtures/engine.ts";
import { CONTEXT_KEPT_BYTES, IDLE_LANES_MAX, LEASE_RENEW_MS, LEASE_TTL_MS, RETRY_LAST_MS } from "../core/limits.ts";
import type { SessionId } from "../core/model/ids.ts";
import { Gate } from "../testing/gate.ts";
import { settled } from "../testing/manual-clock.ts";

const SHUTTING_DOWN = { code: "shutting_down", message: "Belay is shutting down and accepts nothing new." };
const USER = { kind: "user" } as const;

/** The items that a follower receives, in order. */
function follow({ engine }: TestEngine, session: SessionId): string[] {
  const heard: string[] = [];
  void (async () => {
    for await (const one of engine.follow(session, { after: 0, signal: undefined, deltas: "with" })) {
      heard.push(one.type === "delta" ? one.text : one.type);
    }
    heard.push("over");
  })();
  return heard;
}

async function typesOf(house: TestEngine, session: SessionId): Promise<readonly string[]> {
  return (await eventsOf(house, session)).map(({ type }) => type);
}

describe("sessions", () => {
  test("a new session costs one claim and no lookup", async () => {
    const { engine, store } = testEngine();
    const { id, created } = await engine.create(undefined, { title: "new" });
    expect(created).toEqual({ kind: "created", seq: 1 });
    await engine.begin(undefined, {}, asked("one")).accepted;
    expect([store.calls("claim"), store.calls("load"), store.calls("run")]).toEqual([2, 0, 0]);
    expect(await store.session(id)).toMatchObject({ title: "new", phase: "open" });
  });

  test("a session with a given id is created with its first prompt; later it is the same session", async () => {
    const house = testEngine();
    const { engine } = house;
    const { turn } = await live(house, "ses_given");
    const lane = engine.lanes.peek("ses_given");
    expect(await engine.create("ses_given", {})).toMatchObject({ created: { kind: "existed" } });
    const joined = engine.begin("ses_given", {}, asked("second"));
    expect(await joined.accepted).toMatchObject({ ahead: 1 });
    expect(engine.lanes.peek("ses_given")).toBe(lane);
    turn.complete();
    expect((await house.agent.nextTurn()).given.prompt).toEqual({ text: "second" });
  });

  test("a session that does not exist is not kept, and cannot be changed", async () => {
    const { engine } = testEngine();
    expect(await engine.loaded("ses_none")).toBeUndefined();
    engine.lanes.get("ses_neither");
    await settled();
    expect([...engine.lanes.all()]).toEqual([]);
    expect(await engine.change("ses_none", { type: "steer", runId: "run_1" })).toEqual({
      ...{ kind: "refused", code: "not_found", message: "There is no session ses_none." },
    });
  });

  test("a change gets the answer of its decision; that of an unknown run gets `unknown`", async () => {
    const house = testEngine();
    const { sessionId } = await live(house);
    const { runId, accepted } = house.engine.prompt(sessionId, asked("waits"));
    await accepted;
    const change = { type: "edit", prompt: { text: "edited" } } as const;
    expect(await house.engine.change(sessionId, { ...change, runId })).toMatchObject({ kind: "changed" });
    expect(await house.engine.change(sessionId, { ...change, runId: "run_9" })).toMatchObject({ kind: "unknown" });
  });

  test("G11: a repeated key gets its first answer, or a conflict; a refusal binds no key", async () => {
    const { engine } = testEngine();
    const { id } = await engine.create(undefined, {});
    const mode = { type: "set-mode", mode: "plan" } as const;
    const first = await engine.ask(id, mode, "k");
    expect(await engine.ask(id, mode, "k")).toEqual(first);
    await expect(engine.ask(id, { ...mode, mode: "act" }, "k")).rejects.toMatchObject({
      ...{ code: "conflict", message: "This idempotency key was used for a different request." },
    });
    await engine.ask(id, { type: "close", reason: USER });
    expect(await engine.ask(id, mode, "other")).toMatchObject({ kind: "refused", code: "closed" });
  });
});

describe("memory", () => {
  test("holds a run until its end, its waiters, a question and a follower; and nothing afterwards", async () => {
    const house = testEngine();
    const { engine } = house;
    const { sessionId, runId, turn } = await live(house);
    expect(engine.lanes.sessionOf(runId)).toBe(sessionId);
    expect(engine.held).toBe(1);
    const outcome = engine.outcome(runId);
    expect(engine.held).toBe(2);
    const question = turn.given.ask({ text: "Which?" }).catch(() => "stopped");
    await settled();
    expect(engine.held).toBe(3);
    const stop = new AbortController();
    const following = engine.follow(sessionId, { after: 99, signal: stop.signal, deltas: "without" }).next();
    expect(engine.held).toBe(4);
    await engine.cancel.run(runId, USER);
    turn.endCancelled();
    expect(await outcome).toMatchObject({ kind: "cancelled" });
    expect(await question).toBe("stopped");
    stop.abort();
    await following;
    expect(engine.held).toBe(0);
  });

  test("holds nothing of a prompt that is refused, that the store cannot record, or that is a repetition", async () => {
    const house = testEngine();
    const { engine, store } = house;
    const { id } = await engine.create(undefined, {});
    const first = await engine.prompt(id, asked("once", "k")).accepted;
    expect(engine.held).toBe(1);
    expect(await engine.prompt(id, asked("once", "k")).accepted).toMatchObject({ runId: first.runId, repeated: true });
    expect(engine.held).toBe(1);
    const busy = engine.prompt(id, { ...asked("now"), delivery: "reject" }).accepted;
    await expect(busy).rejects.toMatchObject({ code: "busy" });
    store.plan("append", 1, { kind: "fail", code: "store_full" });
    await expect(engine.prompt(id, asked("lost")).accepted).rejects.toMatchObject({ code: "store_full" });
    expect(engine.held).toBe(1);
    expect(engine.late).toBe(0);
  });

  test("holds nothing of a run whose acceptance is recorded after its session was released", async () => {
    const { engine, store } = testEngine();
    const { id } = await engine.create(undefined, {});
    const late = new Gate();
    store.plan("append", 1, { kind: "delay-answer", until: late });
    const refused = watch(engine.prompt(id, asked("late")).accepted);
    await settled();
    const lane = engine.lanes.get(id);
    engine.commit.fence(lane);
    late.open();
    await settled();
    expect(refused.is).toBe("refused");
    expect(engine.held).toBe(0);
  });

  test("a prompt without a key has no key in its event", async () => {
    const house = testEngine();
    const { sessionId, runId } = await live(house);
    const { events } = await house.log.read(sessionId, { after: 1, limit: 1 });
    expect(Object.keys(events[0] ?? {}).toSorted()).toEqual(["at", "delivery", "prompt", "runId", "seq", "type"]);
    expect(events[0]).toMatchObject({ type: "run.accepted", runId, prompt: { text: "live" } });
  });

  test("the conversation is read once, and kept for the next run", async () => {
    const house = testEngine();
    const { engine, store, agent } = house;
    const { sessionId, turn } = await live(house);
    await turn.given.transcript();
    turn.askAgain("more");
    const second = await agent.nextTurn();
    const reads = store.calls("read");
    expect(await second.given.transcript()).toHaveLength(2);
    expect(store.calls("read")).toBe(reads);
    second.complete();
    await settled();
    await engine.prompt(sessionId, asked("next")).accepted;
    const third = await agent.nextTurn();
    expect(await third.given.transcript()).toHaveLength(4);
    expect(store.calls("read")).toBe(reads);
  });

  test("a conversation that is too large to be kept is read again by the next run", async () => {
    const house = testEngine();
    const { engine, store, agent } = house;
    const { sessionId, turn } = await live(house);
    await turn.given.transcript();
    turn.complete("x".repeat(CONTEXT_KEPT_BYTES / 2));
    await settled();
    expect(engine.lanes.peek(sessionId)?.transcript).toBeUndefined();
    const reads = store.calls("read");
    await engine.prompt(sessionId, asked("next")).accepted;
    const next = await agent.nextTurn();
    expect(await next.given.transcript()).toHaveLength(3);
    expect(store.calls("read")).toBeGreaterThan(reads);
  });

  test("the current place of a run that was accepted before", async () => {
    const house = testEngine();
    const { engine, store } = house;
    const { sessionId } = await live(house);
    await engine.prompt(sessionId, asked("second")).accepted;
    const { runId, accepted } = engine.prompt(sessionId, asked("third"));
    await accepted;
    const row = await store.run(runId);
    expect(row && (await engine.standing(row))).toMatchObject({ runId, ahead: 2, repeated: true });
  });
});

describe("a stop", () => {
  test("G1: a close stops live work before it is recorded", async () => {
    const house = testEngine();
    const { sessionId, turn } = await live(house);
    const late = new Gate();
    house.store.plan("append", 1, { kind: "delay", until: late });
    const closed = watch(house.engine.ask(sessionId, { type: "close", reason: USER }));
    await settled();
    expect([turn.given.signal.aborted, closed.is]).toEqual([true, "waiting"]);
    late.open();
  });

  test("an interrupt stops live work once it is recorded, because it can be refused until then", async () => {
    const house = testEngine();
    const { sessionId, turn } = await live(house);
    const late = new Gate();
    house.store.plan("append", 1, { kind: "delay", until: late });
    const accepted = house.engine.prompt(sessionId, { ...asked("now"), delivery: "interrupt" });
    await settled();
    expect(turn.given.signal.aborted).toBe(false);
    late.open();
    await accepted.accepted;
    expect(turn.given.signal.aborted).toBe(true);
  });

  test("G11: a repeated key gets its first answer, even after the end", async () => {
    const house = testEngine();
    const { runId, turn } = await live(house);
    const first = await house.engine.cancel.run(runId, USER, "k");
    turn.endCancelled();
    await house.engine.outcome(runId);
    const next = neighbour(house);
    expect(first).toMatchObject({ kind: "stopping" });
    expect(await next.engine.cancel.run(runId, USER, "k")).toEqual(first);
    expect(await next.engine.cancel.run(runId, USER, "other")).toMatchObject({ kind: "settled" });
  });
});

describe("with another worker", () => {
  test("a follower of a session that another worker drives receives its events", async () => {
    const house = testEngine();
    const { sessionId, turn } = await live(house);
    const here = neighbour(house);
    const heard = follow(here, sessionId);
    await settled();
    turn.complete();
    await settled();
    expect(heard).toEqual(await typesOf(house, sessionId));
    expect(heard.at(-1)).toBe("run.settled");
    expect(here.engine.lanes.peek(sessionId)).toBeUndefined();
  });

  test("a follower of a session that is driven here receives its events without polling the store", async () => {
    const house = testEngine();
    const { sessionId, turn } = await live(house);
    const heard = follow(house, sessionId);
    await settled();
    const { store } = house;
    const before = [store.calls("grown"), store.calls("read")];
    turn.say("hello");
    await settled();
    turn.complete();
    await settled();
    expect(heard.slice(-3)).toEqual(["hello", "turn.settled", "run.settled"]);
    expect([store.calls("grown"), store.calls("read")]).toEqual(before);
  });

  test("G26: a session whose lease is lost is stopped here, frees its slot, and its followers continue", async () => {
    const house = testEngine();
    const { engine, log, clock } = house;
    const { sessionId, runId, turn } = await live(house);
    const { sessionId: other, runId: unharmed } = engine.begin(undefined, {}, asked("other"));
    const heard = follow(house, sessionId);
    const [outcome, waits] = [watch(engine.outcome(runId)), watch(engine.outcome(unharmed))];
    await settled();
    await log.release(sessionId, engine.worker);
    const there = neighbour(house);
    await there.engine.start();
    const again = await there.agent.nextTurn();
    engine.commit.fence(engine.lanes.get(sessionId));
    expect(turn.given.signal.aborted).toBe(true);
    expect([engine.lanes.peek(sessionId), engine.lanes.sessionOf(runId)]).toEqual([undefined, undefined]);
    expect((await house.agent.nextTurn()).given.sessionId).toBe(other);
    again.complete();
    await clock.advance(1_000);
    expect(outcome).toMatchObject({ is: "refused", value: { code: "unavailable" } });
    expect(waits.is).toBe("waiting");
    expect(heard).toEqual(await typesOf(house, sessionId));
    expect(heard.at(-1)).toBe("run.settled");
  });

  test("followers receive events that another worker recorded before the session came back", async () => {
    const house = testEngine();
    const { engine, log } = house;
    const { id } = await engine.create(undefined, {});
    const heard = follow(house, id);
    await settled();
    engine.commit.fence(engine.lanes.get(id));
    await log.release(id, engine.worker);
    const there = neighbour(house, { liveRunsMax: 0 });
    await there.engine.prompt(id, asked("there")).accepted;
    await log.release(id, there.engine.worker);
    await engine.loaded(id);
    await settled();
    expect(heard.slice(0, 3)).toEqual(["session.created", "run.accepted", "run.started"]);
    expect((await house.agent.nextTurn()).given.prompt).toEqual({ text: "there" });
  });

  test("followers receive events that another worker recorded during their read, when it came back", async () => {
    const house = testEngine();
    const { engine, log, store } = house;
    const { id } = await engine.create(undefined, {});
    engine.commit.fence(engine.lanes.get(id));
    await log.release(id, engine.worker);
    const late = new Gate();
    store.plan("read", 2, { kind: "delay-answer", until: late });
    const heard = follow(house, id);
    await settled();
    const there = neighbour(house, { liveRunsMax: 0 });
    await there.engine.ask(id, { type: "set-mode", mode: "plan" });
    await log.release(id, there.engine.worker);
    await engine.loaded(id);
    late.open();
    await settled();
    expect(heard).toEqual(["session.created", "session.mode_set"]);
  });

  test("followers of a session that was unloaded receive the events of another worker", async () => {
    const house = testEngine();
    const { engine } = house;
    const { id } = await engine.create(undefined, {});
    const heard = follow(house, id);
    for (let others = 0; others < IDLE_LANES_MAX; others += 1) await engine.create(undefined, {});
    await settled();
    expect(engine.lanes.peek(id)).toBeUndefined();
    await neighbour(house).engine.ask(id, { type: "set-mode", mode: "plan" });
    await settled();
    expect(heard).toEqual(["session.created", "session.mode_set"]);
  });

  test("a caller that waits for a run without a worker makes this worker take it over", async () => {
    const house = testEngine({ liveRunsMax: 0 });
    const { sessionId, runId, accepted } = house.engine.begin(undefined, {}, asked("waits"));
    await accepted;
    await house.log.release(sessionId, house.engine.worker);
    const next = neighbour(house);
    const outcome = watch(next.engine.outcome(runId));
    await settled();
    next.agent.turns[0]?.complete();
    await settled();
    expect(outcome).toEqual({ is: "answered", value: { kind: "completed" } });
  });

  test("a session that fails to load is loaded again later, because its lease is held here", async () => {
    const house = testEngine({ liveRunsMax: 0 });
    const { id } = await house.engine.create(undefined, {});
    await house.engine.prompt(id, asked("waits")).accepted;
    await house.log.release(id, house.engine.worker);
    const next = neighbour(house);
    next.store.plan("load", 1, { kind: "fail", code: "unavailable" });
    await next.engine.start();
    await next.clock.advance(RETRY_LAST_MS);
    expect(next.agent.turns).toHaveLength(1);
  });

  test("a session that fails to load is not loaded again during a shutdown", async () => {
    const { engine, store, clock } = testEngine();
    store.plan("load", 1, { kind: "fail", code: "unavailable" });
    await expect(engine.loaded("ses_1")).rejects.toMatchObject({ code: "unavailable" });
    engine.stopAccepting("closing");
    await clock.advance(RETRY_LAST_MS);
    expect(store.calls("load")).toBe(1);
  });
});

describe("an engine that closes", () => {
  test("stops renewing its leases", async () => {
    const { engine, clock } = testEngine();
    await engine.start();
    expect(clock.pending).not.toEqual([]);
    engine.stopAccepting("parking");
    expect(clock.pending).toEqual([]);
  });

  test("accepts nothing new, and writes nothing of what it refuses", async () => {
    const house = testEngine();
    const { engine, store } = house;
    const { id } = await engine.create(undefined, {});
    engine.stopAccepting("closing");
    const begun = engine.begin(undefined, {}, asked("one"));
    await expect(begun.accepted).rejects.toMatchObject(SHUTTING_DOWN);
    await expect(engine.prompt(id, asked("one")).accepted).rejects.toMatchObject(SHUTTING_DOWN);
    await expect(engine.create(undefined, {})).rejects.toMatchObject(SHUTTING_DOWN);
    await expect(engine.ask(id, { type: "set-mode", mode: "plan" })).rejects.toMatchObject(SHUTTING_DOWN);
    await expect(engine.beginProcess(id, {} as never)).rejects.toMatchObject(SHUTTING_DOWN);
    await settled();
    expect(await store.session(begun.sessionId)).toBeUndefined();
    expect(await typesOf(house, id)).toEqual(["session.created"]);
  });

  test("starts no waiting run, and claims no lease", async () => {
    const house = testEngine();
    const { engine, store } = house;
    const { sessionId, turn } = await live(house);
    await engine.prompt(sessionId, asked("second")).accepted;
    const elsewhere = await neighbour(house).engine.create(undefined, {});
    const claims = store.calls("claim");
    engine.stopAccepting("closing");
    turn.complete();
    await engine.loaded(elsewhere.id);
    expect((await typesOf(house, sessionId)).at(-1)).toBe("run.settled");
    expect(store.calls("claim")).toBe(claims);
  });

  test("leaves no waiting caller, and no timer", async () => {
    const house = testEngine({ runLimitMs: 60_000 });
    const { engine, store, clock } = house;
    await engine.start();
    const { sessionId, runId } = await live(house);
    const heard = follow(house, sessionId);
    const outcome = watch(engine.outcome(runId));
    const allSessionsFeed = engine.allSessionsFeed.watch({ after: undefined, prefix: "", signal: undefined });
    await allSessionsFeed.next();
    const watched = watch(allSessionsFeed.next());
    await settled();
    store.always("append", { kind: "fail", code: "store_full" });
    await engine.cancel.run(runId, USER).catch(() => {});
    // Its leases are being renewed while it closes.
    const late = new Gate();
    store.plan("renew", 1, { kind: "delay-answer", until: late });
    await clock.advance(LEASE_RENEW_MS);
    engine.stopAccepting("closing");
    late.open();
    await settled();
    engine.closed();
    await clock.advance(LEASE_TTL_MS);
    const message = `Belay has shut down; ${runId} has no outcome yet and is recovered at the next start.`;
    expect(outcome).toMatchObject({ is: "refused", value: { code: "shutting_down", message } });
    expect(heard.at(-1)).toBe("over");
    expect(watched).toEqual({ is: "answered", value: { done: true, value: undefined } });
    expect(clock.pending).toEqual([]);
    // A caller that asks after the shutdown is not told that there is no outcome: the run could have ended before.
    const unknown = `Belay has shut down; the outcome of ${runId} is available after the next start.`;
    await expect(engine.outcome(runId)).rejects.toMatchObject({ code: "shutting_down", message: unknown });
    await expect(engine.cancel.session(sessionId, { reason: USER })).rejects.toMatchObject(SHUTTING_DOWN);
  });
});
