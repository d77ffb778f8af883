import { expect, test } from "vitest";
import { asked, live, neighbour, type TestEngine, testEngine } from "../../../test/fixtures/engine.ts";
import { ControlError, STOP_UNRECORDED } from "../../core/errors.ts";
import { IDLE_LANES_MAX, LEASE_TTL_MS, RETRY_LAST_MS, SNAPSHOT_EVENTS, STORE_WAIT_MS } from "../../core/limits.ts";
import type { CommandOf } from "../../core/model/command.ts";
import { emptyLane, evolve } from "../../core/model/lane.ts";
import type { Run } from "../../core/model/run.ts";
import type { Turn } from "../../ports/agent.ts";
import { Gate } from "../../testing/gate.ts";
import { settled } from "../../testing/manual-clock.ts";
import type { Engine } from "../engine.ts";
import { shutDown } from "../shutdown.ts";

function house(begun: (turn: Turn, engine: Engine) => void = () => {}) {
  const agent = (turn: Turn): Promise<undefined> => {
    begun(turn, made.engine);
    return new Promise(() => {});
  };
  const made: TestEngine = testEngine({ agent });
  return made;
}

test("a lane that was unloaded while it was loading does not release the lease of its successor", async () => {
  const { store, engine } = house();
  await engine.start();
  const { id } = await engine.create(undefined, {});
  const late = new Gate();
  engine.commit.fence(engine.lanes.get(id));
  // It is unloaded while it waits for its lease; the next one holds it by the time that it comes.
  store.plan("claim", 1, { kind: "delay-answer", until: late });
  const lost = engine.prompt(id, asked("lost")).accepted.catch(() => "lost");
  await settled();
  engine.commit.fence(engine.lanes.get(id));
  expect(await lost).toBe("lost");
  await engine.loaded(id);
  late.open();
  await settled();
  await expect(engine.prompt(id, asked("next")).accepted).resolves.toMatchObject({ kind: "accepted" });
});

test("G25: a run whose recovery cannot be decided is not begun again, and requests for it are refused", async () => {
  const before = house();
  const { id } = await before.engine.create(undefined, {});
  const { runId, accepted } = before.engine.prompt(id, asked("live"));
  await accepted;
  await settled();
  const begun: string[] = [];
  const after = neighbour(before, { agent: async (turn) => void begun.push(turn.runId) });
  await before.clock.advance(LEASE_TTL_MS);
  // A snapshot in which an open question has lost its subject.
  after.store.load = async (session) => {
    const loaded = await after.log.load(session);
    if (loaded === undefined) return undefined;
    const lane = loaded.events.reduce(evolve, loaded.snapshot ?? emptyLane(session));
    if (lane.live === undefined) return loaded;
    const call = { phase: "running", id: `call_${runId.slice(4)}.1`, name: "x", byEnd: true } as const;
    const damaged = { ...lane.live, live: [call], questions: [{ owner: call.id }] } as unknown as Run;
    return { ...loaded, events: [], snapshot: { ...lane, live: damaged } };
  };
  await after.engine.start();
  await settled();
  expect(begun).toEqual([]);
  await expect(after.engine.prompt(id, asked("next")).accepted).rejects.toMatchObject({ code: "internal" });
  await expect(after.engine.cancel.run(runId, { kind: "user" })).rejects.toMatchObject({ code: "internal" });
  expect(after.notices.some(({ type }) => type === "bug")).toBe(true);
});

test("G15: a stop that was lost with the lease is recorded before the recovery, and its run is cancelled", async () => {
  const here = testEngine({ resume: "lose", agent: () => new Promise(() => {}) });
  const { sessionId, runId, accepted } = here.engine.begin(undefined, {}, asked("live"));
  await accepted;
  here.store.trouble = { kind: "refusing", code: "store_full" };
  await expect(here.engine.cancel.run(runId, { kind: "user" })).rejects.toMatchObject({ hint: STOP_UNRECORDED });
  here.store.heal();
  here.engine.commit.fence(here.engine.lanes.get(sessionId));
  await here.clock.advance(RETRY_LAST_MS);
  expect(await here.engine.outcome(runId)).toMatchObject({ kind: "cancelled", reason: { kind: "user" } });
});

test("G30: a batch that is written after its session was loaded again reaches followers and hooks once", async () => {
  const tapped: number[] = [];
  const { clock, store, engine } = testEngine({ tap: (_, events) => tapped.push(...events.map(({ seq }) => seq)) });
  await engine.start();
  const { id } = await engine.create(undefined, {});
  const received: number[] = [];
  const following = engine.follow(id, { after: 0, signal: undefined, deltas: "without" });
  void (async () => {
    for await (const event of following) if ("seq" in event) received.push(event.seq);
  })();
  await settled();
  const late = new Gate();
  store.plan("append", 1, { kind: "delay", until: late });
  engine.prompt(id, asked("late")).accepted.catch(() => {});
  await settled();
  engine.commit.fence(engine.lanes.get(id));
  engine.lanes.get(id);
  // Loading waits no longer than this for operations in flight.
  await clock.advance(STORE_WAIT_MS);
  late.open();
  await settled();
  await engine.prompt(id, asked("next")).accepted;
  await settled();
  const { head } = engine.lanes.get(id).durable;
  const all = Array.from({ length: head }, (_, index) => index + 1);
  expect(received).toEqual(all);
  expect(tapped).toEqual(all);
  await following.return();
});

test("G24: a batch that is written after a reload is driven although the next append is refused", async () => {
  const begun: string[] = [];
  const { clock, store, engine } = house(({ runId }) => void begun.push(runId));
  await engine.start();
  const { id } = await engine.create(undefined, {});
  const late = new Gate();
  store.plan("append", 1, { kind: "delay", until: late });
  const { runId, accepted } = engine.prompt(id, asked("late"));
  accepted.catch(() => {});
  await settled();
  engine.commit.fence(engine.lanes.get(id));
  engine.lanes.get(id);
  await clock.advance(STORE_WAIT_MS);
  store.always("append", { kind: "fail", code: "store_full" });
  late.open();
  await settled();
  store.heal();
  await clock.advance(RETRY_LAST_MS);
  expect(begun).toEqual([runId]);
});

test("G24: a batch whose first attempt is written after a reload, while its second one hangs, is driven", async () => {
  const begun: string[] = [];
  const { clock, store, engine } = house(({ runId }) => void begun.push(runId));
  await engine.start();
  const { id } = await engine.create(undefined, {});
  const first = new Gate();
  const second = new Gate();
  store.plan("append", 1, { kind: "delay", until: first });
  store.plan("append", 2, { kind: "delay", until: second });
  const { runId, accepted } = engine.prompt(id, asked("late"));
  accepted.catch(() => {});
  await clock.advance(STORE_WAIT_MS + RETRY_LAST_MS);
  engine.commit.fence(engine.lanes.get(id));
  engine.lanes.get(id);
  await clock.advance(STORE_WAIT_MS);
  first.open();
  await settled();
  expect(begun).toEqual([runId]);
  second.open();
  await settled();
  expect(begun).toEqual([runId]);
});

test("G1: a process requested after a reload does not get the id of one whose request is written late", async () => {
  const { clock, log, store, engine } = house();
  await engine.start();
  const { id } = await engine.create(undefined, {});
  const begin = (command: string): CommandOf<"begin-process"> => ({
    ...{ type: "begin-process", owner: id, command, feedback: "next-turn" },
  });
  const late = new Gate();
  const next = new Gate();
  store.plan("append", 1, { kind: "delay", until: late });
  store.plan("append", 2, { kind: "delay", until: next });
  engine.commit.submit(engine.lanes.get(id), begin("first")).catch(() => {});
  await settled();
  engine.commit.fence(engine.lanes.get(id));
  engine.lanes.get(id);
  await clock.advance(STORE_WAIT_MS);
  const answer = engine.commit.submit(engine.lanes.get(id), begin("second"));
  late.open();
  await settled();
  next.open();
  const begun = await answer;
  const { events } = await log.read(id, { after: 0, limit: 100 });
  const requested = events.flatMap((event) => (event.type === "process.requested" ? [event] : []));
  const second = requested.find(({ command }) => command === "second");
  expect(begun).toMatchObject({ kind: "begun", processId: second?.processId });
  expect(requested.map(({ command }) => command)).toEqual(["first", "second"]);
});

test("G24: a session whose claims failed while it was created is driven once the store answers", async () => {
  const begun: string[] = [];
  const { clock, store, engine } = house(({ runId }) => void begun.push(runId));
  await engine.start();
  // The first lease is for an absent session, and is released. Then one claim fails, and the answer of the next one is
  // lost: this worker holds the lease in the store, so no worker finds the session unattended.
  store.plan("claim", 2, { kind: "fail", code: "unavailable" });
  store.plan("claim", 3, { kind: "lose-answer" });
  const ask = () => engine.begin("ses_own", {}, asked("one", "k"));
  const { runId, accepted } = ask();
  await accepted;
  await ask().accepted;
  await settled();
  expect(begun).toEqual([]);
  await clock.advance(RETRY_LAST_MS);
  expect(begun).toEqual([runId]);
});

test("G28: a stop within the beginning of a turn aborts it in that tick, whatever the store does", async () => {
  let aborted: boolean | undefined;
  const { clock, store, engine } = house((turn, of) => {
    of.cancel.run(turn.runId, { kind: "user" }).catch(() => undefined);
    aborted = turn.signal.aborted;
  });
  await engine.start();
  const { id } = await engine.create(undefined, {});
  // The prompt is written although its answer is lost; its start is recorded; the stop never is.
  store.plan("append", 1, { kind: "lose-answer" });
  store.plan("append", 3, { kind: "delay", until: new Gate() });
  engine.prompt(id, asked("first")).accepted.catch(() => undefined);
  await settled();
  await clock.advance(100);
  expect(aborted).toBe(true);
});

test("G26: a lane that is lost during a shutdown does not prevent the engine from closing", async () => {
  const { clock, store, engine } = house();
  await engine.start();
  const { id } = await engine.create(undefined, {});
  await engine.prompt(id, asked("live")).accepted;
  // Another worker takes it over: later writes are refused.
  await store.release(id, engine.worker);
  const closed = shutDown(engine, "park", new Promise(() => {}));
  let how = "";
  closed.then(
    () => {
      how = "closed";
    },
    (error: unknown) => {
      how = String(error);
    },
  );
  await clock.advance(3_000);
  expect(how).toBe("closed");
  expect(engine.phase).toBe("closed");
});

test("a prompt for the oldest idle session, while another becomes idle, is run", async () => {
  const begun: string[] = [];
  const { store, engine } = house((turn) => begun.push(turn.runId));
  await engine.start();
  const { id } = await engine.create(undefined, {});
  for (let others = 1; others < IDLE_LANES_MAX; others += 1) await engine.create(undefined, {});
  const late = new Gate();
  store.plan("append", 1, { kind: "delay-answer", until: late });
  const { runId, accepted } = engine.prompt(id, asked("one"));
  await settled();
  // One idle session too many: the oldest of them has a command in flight.
  await engine.create(undefined, {});
  late.open();
  await accepted;
  await settled();
  expect(begun).toEqual([runId]);
});

test("idle lanes beyond the maximum are unloaded, oldest first, and none with a command in flight", async () => {
  const { store, engine } = house();
  await engine.start();
  const { id: busy } = await engine.create(undefined, {});
  const { id: next } = await engine.create(undefined, {});
  for (let others = 2; others < IDLE_LANES_MAX; others += 1) await engine.create(undefined, {});
  const late = new Gate();
  store.plan("append", 1, { kind: "delay", until: late });
  const { accepted } = engine.prompt(busy, asked("one", "key"));
  await settled();
  expect(engine.lanes.peek(next)?.phase).toBe("ready");
  await engine.create(undefined, {});
  expect(engine.lanes.peek(busy)?.phase).toBe("ready");
  expect(engine.lanes.peek(next)).toBeUndefined();
  // Its lease is released: another worker need not wait until it has expired.
  expect(await store.claim(next, "wrk_other", 1)).toMatchObject({ kind: "claimed" });
  late.open();
  await expect(accepted).resolves.toMatchObject({ kind: "accepted" });
});

test("a session that was read recently is not the oldest", async () => {
  const { engine } = house();
  const { id: first } = await engine.create(undefined, {});
  const { id: second } = await engine.create(undefined, {});
  for (let others = 2; others < IDLE_LANES_MAX; others += 1) await engine.create(undefined, {});
  expect(engine.lanes.peek(first)?.phase).toBe("ready");
  await engine.loaded(first);
  await engine.create(undefined, {});
  expect([engine.lanes.peek(first)?.phase, engine.lanes.peek(second)?.phase]).toEqual(["ready", undefined]);
});

test("a new session whose lease the store cannot grant is refused, and leaves nothing", async () => {
  const { engine, store } = house();
  store.plan("claim", 1, { kind: "fail", code: "unavailable" });
  await expect(engine.create(undefined, {})).rejects.toMatchObject({ code: "unavailable" });
  expect([...engine.lanes.all()]).toEqual([]);
});

test("what was in flight when a session was unloaded is known to the next lane", async () => {
  const made = testEngine();
  const { id } = await made.engine.create(undefined, {});
  const late = new Gate();
  made.store.plan("append", 1, { kind: "delay", until: late });
  const lost = made.engine.prompt(id, asked("on its way")).accepted.catch(() => "lost");
  await settled();
  made.engine.commit.fence(made.engine.lanes.get(id));
  const loaded = made.engine.loaded(id);
  await settled();
  late.open();
  expect(await lost).toBe("lost");
  await loaded;
  expect((await made.agent.nextTurn()).given.prompt).toEqual({ text: "on its way" });
});

test("a session that fails to load late does not affect its successor", async () => {
  const { engine, log } = house();
  const { id } = await engine.create(undefined, {});
  engine.commit.fence(engine.lanes.get(id));
  const load = log.load.bind(log);
  const late = new Gate();
  log.load = () => late.opened.then(() => Promise.reject(new Error("gone")));
  const first = engine.lanes.get(id);
  await settled();
  engine.lanes.drop(first, new ControlError("unavailable", "dropped"));
  log.load = load;
  const second = engine.lanes.get(id);
  await settled();
  late.open();
  await settled();
  expect(engine.lanes.peek(id)).toBe(second);
});

test("a session that is unloaded while it loads begins nothing, and releases its lease", async () => {
  const made = testEngine({ liveRunsMax: 0 });
  const { sessionId, accepted } = made.engine.begin(undefined, {}, asked("waits"));
  await accepted;
  await made.log.release(sessionId, made.engine.worker);
  const next = neighbour(made);
  const late = new Gate();
  next.store.plan("load", 1, { kind: "delay-answer", until: late });
  const lane = next.engine.lanes.get(sessionId);
  await settled();
  next.engine.lanes.drop(lane, new ControlError("unavailable", "dropped"));
  late.open();
  await settled();
  expect(next.agent.turns).toEqual([]);
  expect(await made.log.claim(sessionId, "wrk_other", 1)).toMatchObject({ kind: "claimed" });
});

test("G24: a session of another worker is left to it; once it is claimed here, all of its runs are known", async () => {
  const made = testEngine();
  const { sessionId, runId } = await live(made);
  const queued = made.engine.prompt(sessionId, asked("queued"));
  const steers = made.engine.prompt(sessionId, { ...asked("steers"), delivery: "steer" });
  await Promise.all([queued.accepted, steers.accepted]);
  const here = neighbour(made);
  const head = (await here.engine.loaded(sessionId))?.durable.head;
  expect((await made.log.load(sessionId))?.head).toBe(head);
  const homes = [runId, queued.runId, steers.runId].map((run) => here.engine.lanes.sessionOf(run));
  expect(homes).toEqual([sessionId, sessionId, sessionId]);
});

test("a process that an earlier worker has left is lost, even if no run is live", async () => {
  const made = testEngine();
  const { id } = await made.engine.create(undefined, {});
  const lane = made.engine.lanes.get(id);
  const command = { type: "begin-process", owner: id, command: "sleep 9", feedback: "silent" } as const;
  await made.engine.commit.submit(lane, command);
  await made.log.release(id, made.engine.worker);
  const here = neighbour(made);
  expect((await here.engine.loaded(id))?.durable.processes.live).toEqual([]);
});

test("a session that was loaded from a snapshot writes no other before it has grown", async () => {
  const made = testEngine({ liveRunsMax: 0 });
  const { sessionId, runId, accepted } = made.engine.begin(undefined, {}, asked("edited"));
  await accepted;
  const edit = { type: "edit", runId, prompt: { text: "again" } } as const;
  await Promise.all(Array.from({ length: SNAPSHOT_EVENTS }, () => made.engine.change(sessionId, edit)));
  expect((await made.log.load(sessionId))?.snapshot).toBeDefined();
  const here = neighbour(made, { liveRunsMax: 0 });
  const append = made.log.append.bind(made.log);
  const snapshots: unknown[] = [];
  made.log.append = (batch) => {
    snapshots.push(batch.snapshot);
    return append(batch);
  };
  await here.engine.change(sessionId, edit);
  expect(snapshots).toEqual([undefined]);
});
