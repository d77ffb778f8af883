import { describe, expect, test } from "vitest";
import { deaf, openTestBelay, waits } from "../../test/fixtures/belay.ts";
import { SNAPSHOT_EVENTS } from "../core/limits.ts";
import type { Recorded } from "../core/model/event.ts";
import type { Upkeep } from "../core/model/upkeep.ts";
import type { Message } from "../core/read/transcript.ts";
import type { Turn } from "../ports/agent.ts";
import type { Notice } from "../ports/hooks.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { faultyStore } from "../testing/faulty-store.ts";
import { manualClock } from "../testing/manual-clock.ts";
import type { Session } from "./session.ts";

/** A session with this many runs, each with an answer. */
async function talked(session: Session, runs: number): Promise<void> {
  for (let index = 1; index <= runs; index += 1) await session.prompt(`run ${index}`).outcome;
}

async function compact(turn: Turn): Promise<string> {
  await turn.compact("the user's name is Ada");
  return "compacted";
}

/** What a new Belay on the same log finds: nothing of the conversation is in memory. */
const lastingStore = (): MemoryStore =>
  Object.assign(new MemoryStore({ clock: manualClock() }), { close: async () => {} });

/** A turn that reads the transcript, and what it read. */
function reader(): { readonly look: (turn: Turn) => Promise<string>; readonly seen: () => readonly Message[] } {
  let read: readonly Message[] = [];
  const look = async (turn: Turn): Promise<string> => {
    read = await turn.transcript();
    return "looked";
  };
  return { look, seen: () => read };
}

describe("trim()", () => {
  test("removes events of a log with fewer than 256 events, and returns how many", async () => {
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    await talked(session, 3);
    const { head } = await session.row();
    expect(head).toBeLessThan(256);
    expect(await session.trim(head + 1)).toEqual({ kept: head + 1, removed: head });
    await session.prompt("and now").outcome;
    expect((await session.row()).head).toBeGreaterThan(head);
  });

  test("G1: names the run that limits what it removes", async () => {
    const { belay, began } = await openTestBelay({ wait: waits });
    const session = await belay.createSession();
    await talked(session, 2);
    const { head } = await session.row();
    const run = session.prompt("wait");
    await began("wait");
    expect(await session.trim(10_000)).toEqual({ kept: head + 1, removed: head, limit: "run" });
    await run.cancel();
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
  });

  test("cuts a log between two runs, never within one", async () => {
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    await talked(session, 2);
    const [newest, oldest] = await session.runs();
    const within = (newest?.acceptedAt ?? 0) + 2;
    expect(await session.trim(within)).toMatchObject({ kept: newest?.acceptedAt, limit: "run" });
    expect(oldest?.settledAt).toBe((newest?.acceptedAt ?? 0) - 1);
  });

  test("G17: keeps a model's summary, and everything since", async () => {
    const { look, seen } = reader();
    const store = lastingStore();
    const { belay } = await openTestBelay({ compact }, { store });
    const session = await belay.createSession();
    await talked(session, 2);
    await session.prompt("compact").outcome;
    await talked(session, 2);
    const summarised = (await session.runs()).at(-3);
    const answer = await session.trim(10_000);
    expect(answer).toMatchObject({ kept: summarised?.acceptedAt, limit: "summary" });
    await belay.close();
    const again = await openTestBelay({ look }, { store });
    await again.belay.session(session.id).prompt("look").outcome;
    expect(seen()[0]).toMatchObject({ role: "user", text: "compact" });
    expect(seen()[1]).toMatchObject({ role: "summary", text: "the user's name is Ada" });
    expect(seen().filter(({ role }) => role === "user")).toHaveLength(4);
    expect(seen().some((one) => one.role === "note")).toBe(false);
  });

  test("G17: keeps the summary of a session that an earlier version has stored", async () => {
    const { look, seen } = reader();
    const store = lastingStore();
    const { belay } = await openTestBelay({ compact }, { store });
    const session = await belay.createSession();
    await talked(session, 2);
    const run = session.prompt("compact");
    const summarised = await run.accepted;
    await talked(session, SNAPSHOT_EVENTS / 4);
    await belay.close();
    // Its snapshot does not contain the position of the summary.
    const load = store.load.bind(store);
    store.load = async (id) => {
      const loaded = await load(id);
      if (loaded?.snapshot === undefined) return expect.fail("there is no snapshot");
      return { ...loaded, snapshot: { ...loaded.snapshot, contextFrom: 0 } };
    };
    const again = await openTestBelay({ look }, { store });
    expect(await again.belay.session(session.id).trim(10_000)).toMatchObject({
      kept: summarised.seq,
      limit: "summary",
    });
    await again.belay.session(session.id).prompt("look").outcome;
    expect(seen()[1]).toMatchObject({ role: "summary", text: "the user's name is Ada" });
  });

  test("G17: a model without a summary starts with a whole run, and is informed of the removal", async () => {
    const { look, seen } = reader();
    const { belay } = await openTestBelay({ look });
    const session = await belay.createSession();
    await talked(session, 3);
    const [newest] = await session.runs();
    await session.trim(newest?.acceptedAt ?? 1);
    await session.prompt("look").outcome;
    expect(seen().map((one) => (one.role === "user" ? one.text : one.role))).toEqual([
      "note",
      "run 3",
      "assistant",
      "look",
    ]);
    expect(seen()[0]).toMatchObject({ item: { text: expect.stringContaining("were removed") } });
  });

  test("G30: the text of a removed run is an error, not an empty text", async () => {
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    const run = session.prompt("hello");
    expect(await run.text()).toBe("done");
    await session.trim(10_000);
    const removed = { code: "not_found", message: expect.stringContaining("removed") };
    await expect(run.text()).rejects.toMatchObject(removed);
    await expect(run.result()).rejects.toMatchObject(removed);
    expect(await run.view()).toMatchObject({ text: undefined, incomplete: true });
    expect(await (await belay.run(run.id)).outcome).toEqual({ kind: "completed" });
  });
});

describe("delete()", () => {
  test("stops running work, and removes everything of the session", async () => {
    const { belay, began } = await openTestBelay({ wait: waits });
    const session = await belay.createSession({ id: "ses_gone" });
    const done = session.prompt("hello", { key: "k" });
    await done.outcome;
    const live = session.prompt("wait");
    const queued = session.prompt("queued");
    await began("wait");
    expect(await session.delete()).toMatchObject({ kind: "deleted", sessionId: "ses_gone" });
    expect(await live.outcome).toMatchObject({ kind: "cancelled" });
    expect(await queued.outcome).toMatchObject({ kind: "cancelled" });
    await expect(session.row()).rejects.toMatchObject({ code: "not_found" });
    await expect(belay.run(done.id)).rejects.toMatchObject({ code: "not_found" });
    await expect(session.delete()).rejects.toMatchObject({ code: "not_found" });
    await expect(session.prompt("more").accepted).rejects.toMatchObject({ code: "not_found" });
    expect(await belay.sessions()).toEqual([]);
  });

  test("allows a new session with the same id, whose keys are new", async () => {
    const { belay, begun } = await openTestBelay();
    const session = await belay.createSession({ id: "ses_again" });
    await session.prompt("first", { key: "k" }).outcome;
    await session.delete();
    const again = await belay.createSession({ id: "ses_again" });
    expect(await again.prompt("second", { key: "k" }).outcome).toEqual({ kind: "completed" });
    expect(begun).toEqual(["first", "second"]);
    expect(await again.transcript()).toHaveLength(2);
  });

  test("G7: a cancel under a key that a deleted session with this id had used is carried out", async () => {
    const { belay, began } = await openTestBelay({ wait: waits });
    const session = await belay.createSession({ id: "ses_build" });
    expect(await session.cancel({ key: "stop", prompts: ["job"] })).toMatchObject({ prompts: ["job"] });
    await session.delete();
    const again = await belay.createSession({ id: "ses_build" });
    const run = again.prompt("wait", { key: "job" });
    await began("wait");
    expect(await again.cancel({ key: "stop" })).toMatchObject({ kind: "stopping", runs: [{ runId: run.id }] });
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
  });

  test("G7: a later prompt of the same tick is refused, and never runs", async () => {
    const { belay, begun } = await openTestBelay();
    const session = await belay.createSession();
    await session.prompt("hello").outcome;
    const deleted = session.delete();
    await expect(session.prompt("behind").accepted).rejects.toMatchObject({ code: "closed" });
    expect(await deleted).toMatchObject({ kind: "deleted" });
    expect(begun).toEqual(["hello"]);
  });

  test("ends the followers of the session", async () => {
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    const heard: string[] = [];
    const following = (async () => {
      for await (const event of session.events()) heard.push(event.type);
    })();
    await session.prompt("hello").outcome;
    await session.delete();
    await following;
    expect(heard).toContain("run.settled");
  });

  test("closes a session whose code does not stop, and deletes it once its run is abandoned", async () => {
    const { belay, began } = await openTestBelay({ deaf });
    const session = await belay.createSession();
    const run = session.prompt("deaf");
    await began("deaf");
    expect(await session.delete()).toMatchObject({ kind: "deleted" });
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
  });
});

test("G40: a stop is answered between any two steps of a removal, and during one", async () => {
  const memory = new MemoryStore({ clock: manualClock() });
  const { upkeep } = memory;
  const steps: string[] = [];
  let stop = async (): Promise<unknown> => undefined;
  const remove: Upkeep["remove"] = async (session) => {
    steps.push(JSON.stringify(await stop()));
    return steps.length < 5 ? "more" : upkeep.remove(session);
  };
  const store = Object.assign(memory, { upkeep: { ...upkeep, remove } });
  const { belay, began } = await openTestBelay({ wait: waits }, { store });
  const [large, other] = [await belay.createSession(), await belay.createSession()];
  await talked(large, 3);
  stop = async () => {
    const run = other.prompt("wait");
    await run.accepted;
    await began("wait");
    return (await run.cancel()).kind;
  };
  await large.delete();
  expect(steps).toEqual(Array(5).fill('"stopping"'));
});

describe("retention", () => {
  const days = 0.001;
  const DAYS_MS = days * 86_400_000;

  test("removes old events of a session in whole runs, and keeps running work", async () => {
    const clock = manualClock();
    const { belay, began } = await openTestBelay({ wait: waits }, { clock, retention: { perSession: { days } } });
    const session = await belay.createSession();
    await talked(session, 2);
    session.prompt("wait");
    await began("wait");
    const [live] = await session.runs();
    await clock.advance(2 * DAYS_MS);
    await clock.advance(2_000);
    const first = (await session.events({ after: 0 }).next()).value as Recorded;
    expect(first).toEqual({ type: "gap", from: 1, to: (live?.acceptedAt ?? 0) - 1 });
  });

  test("reduces a session to its number of events", async () => {
    const clock = manualClock();
    const { belay } = await openTestBelay({}, { clock, retention: { perSession: { events: 50 } } });
    const session = await belay.createSession();
    await talked(session, 30);
    await clock.advance(5_000);
    const { store } = await belay.status();
    expect(store).toMatchObject({ sessions: 1 });
    expect(store?.events).toBeLessThanOrEqual(56);
    expect(store?.events).toBeGreaterThanOrEqual(45);
  });

  test("reduces a session to its size", async () => {
    const clock = manualClock();
    const { belay } = await openTestBelay({}, { clock, retention: { perSession: { bytes: 5_000 } } });
    const session = await belay.createSession();
    await talked(session, 30);
    const before = (await belay.status()).store?.bytes ?? 0;
    await clock.advance(15_000);
    const after = (await belay.status()).store?.bytes ?? 0;
    expect(after).toBeLessThan(before);
    expect(after).toBeLessThan(5_000 * 1.125 + 2_000);
  });

  test("deletes the sessions that were idle for longest, and no busy one", async () => {
    const clock = manualClock();
    const { belay, began } = await openTestBelay({ wait: waits }, { clock, retention: { overall: { sessions: 2 } } });
    const busy = await belay.createSession({ id: "ses_busy" });
    busy.prompt("wait");
    await began("wait");
    for (const id of ["ses_1", "ses_2", "ses_3"]) {
      await clock.advance(10);
      await belay.createSession({ id });
    }
    await clock.advance(10);
    await belay.session("ses_1").prompt("again").outcome;
    await clock.advance(5_000);
    expect((await belay.sessions()).map(({ id }) => id)).toEqual(["ses_busy", "ses_1"]);
  });

  test("deletes sessions that were idle for too long, or exceed the size of the store", async () => {
    const clock = manualClock();
    const { belay } = await openTestBelay({}, { clock, retention: { overall: { days, bytes: 20_000 } } });
    const old = await belay.createSession({ id: "ses_old" });
    await old.prompt("hello").outcome;
    await clock.advance(2 * DAYS_MS);
    await clock.advance(2_000);
    expect(await belay.sessions()).toEqual([]);
    for (const id of ["ses_1", "ses_2", "ses_3"]) {
      const session = await belay.createSession({ id });
      await talked(session, 20);
      await clock.advance(100);
    }
    await clock.advance(20_000);
    const left = (await belay.sessions()).map(({ id }) => id);
    expect(left).not.toContain("ses_1");
    expect(left).toContain("ses_3");
    expect((await belay.status()).store?.bytes).toBeLessThanOrEqual(20_000);
  });

  test("reports in the status what it has removed, and a store that refuses, once", async () => {
    const clock = manualClock();
    const notices: Notice[] = [];
    const store = faultyStore(new MemoryStore({ clock }));
    const retention = { perSession: { events: 50 }, overall: { sessions: 1 } } as const;
    const { belay } = await openTestBelay({}, { clock, store, retention, onNotice: (notice) => notices.push(notice) });
    expect((await belay.status()).retention).toEqual({ removedEvents: 0, deletedSessions: 0, trouble: undefined });
    store.always("trim", { kind: "fail", code: "store_full" });
    for (let sessions = 0; sessions < 2; sessions += 1) await talked(await belay.createSession(), 30);
    await clock.advance(5_000);
    expect((await belay.status()).retention?.trouble).toBe("store_full");
    expect(notices).toEqual([{ type: "store", code: "store_full", message: expect.stringContaining("trim") }]);
    store.heal();
    await clock.advance(5_000);
    const { removedEvents = 0, ...rest } = (await belay.status()).retention ?? {};
    expect(removedEvents).toBeGreaterThan(40);
    expect(rest).toEqual({ deletedSessions: 1, trouble: undefined });
  });

  test("deletes no more sessions than necessary after the store refused to list them", async () => {
    const clock = manualClock();
    const store = faultyStore(new MemoryStore({ clock }));
    const retention = { perSession: { events: 50 }, overall: { sessions: 3 } };
    const { belay } = await openTestBelay({}, { clock, store, retention });
    store.always("trim", { kind: "fail", code: "unavailable" });
    for (let sessions = 0; sessions < 4; sessions += 1) await talked(await belay.createSession(), 30);
    await clock.advance(20_000);
    store.heal();
    await clock.advance(20_000);
    expect(await belay.sessions()).toHaveLength(3);
  });

  test("ends with its Belay", async () => {
    const clock = manualClock();
    const { belay } = await openTestBelay({}, { clock, retention: { overall: { days } } });
    expect(clock.pending).toContainEqual({ inMs: 1_000, idle: true });
    await belay.close();
    expect(clock.pending.filter(({ inMs }) => inMs <= 1_000)).toEqual([]);
  });

  test.each([
    [{ perSession: { days: 0 } }, "`retention.perSession.days` must be a number above 0 (got 0)."],
    [{ overall: { events: 5 } }, "`retention.overall.events` is not known. It takes days, sessions, bytes."],
    [{ overall: { bytes: 1.5 } }, "`retention.overall.bytes` must be a whole number above 0 (got 1.5)."],
    [{ days: 5 }, expect.stringContaining("days")],
    [5, "`retention` must be an object: { perSession, overall }."],
  ])("of %j is refused", async (retention, message) => {
    await expect(openTestBelay({}, { retention: retention as never })).rejects.toMatchObject({
      code: "invalid",
      message,
    });
  });
});
