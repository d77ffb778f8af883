// Processes in the engine: every race has a scripted order, no child is real, and the clock is manual.
import { expect, test } from "vitest";
import { gate, logOf, untilAborted } from "../../../test/fixtures/belay.ts";
import { stage } from "../../../test/fixtures/engine-processes.ts";
import { STOP_UNRECORDED } from "../../core/errors.ts";
import { LEASE_TTL_MS, PROCESSES_LIVE_MAX } from "../../core/limits.ts";
import type { Delta } from "../../core/model/delta.ts";
import { verifyAtRest } from "../../core/read/verify.ts";
import type { Turn } from "../../ports/agent.ts";
import { openBelay } from "../../sdk/belay.ts";
import { MemoryStore } from "../../store/memory/memory-store.ts";
import { faultyStore } from "../../testing/faulty-store.ts";
import { Gate } from "../../testing/gate.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";

test("G28: a kill does not wait for a store that has stalled", {
  meta: { id: "G28/kill-despite-stalled-store" },
}, async () => {
  const { belay, spawner, store } = await stage();
  const session = await belay.createSession();
  const handle = await session.processes.start("work");
  const child = await spawner.next();
  const stalled = new Gate();
  store.always("append", { kind: "delay", until: stalled });
  const receipt = belay.cancel(handle.id);
  await settled();
  expect(child.signals).toEqual(["SIGTERM"]);
  expect(child.alive).toBe(false);
  store.heal();
  stalled.open();
  expect(await receipt).toMatchObject({ kind: "stopping", ended: { outcome: { kind: "cancelled" } } });
  expect(verifyAtRest(await logOf(session))).toEqual([]);
});

test("G28: a stop kills background processes at once, even if it is unknown what was written", async () => {
  const { belay, clock, spawner, store } = await stage();
  const session = await belay.createSession();
  await session.processes.start("work");
  const child = await spawner.next();
  store.always("append", { kind: "fail", code: "unavailable" });
  store.always("read", { kind: "fail", code: "unavailable" });
  session.prompt("go").outcome.catch(() => {});
  await settled();
  const receipt = session.cancel();
  expect(child.alive).toBe(false);
  await expect(receipt).rejects.toMatchObject({ code: "unavailable", hint: STOP_UNRECORDED });
  store.heal();
  await clock.advance(10_000);
  expect((await logOf(session)).at(-1)).toMatchObject({ type: "process.settled", outcome: { kind: "cancelled" } });
  expect(verifyAtRest(await logOf(session))).toEqual([]);
});

test("G11: a process whose stop is recorded before it exists is not started", {
  meta: { id: "G11/stopped-process-never-started" },
}, async () => {
  const { belay, spawner } = await stage();
  const late = new Gate();
  spawner.plan({ startsAfter: late });
  const session = await belay.createSession();
  const starting = session.processes.start("work");
  await settled();
  const [info] = await session.processes.list();
  expect(await belay.cancel(info?.id ?? "")).toMatchObject({ ended: { outcome: { kind: "cancelled" } } });
  late.open();
  const handle = await starting;
  expect(spawner.children).toEqual([]);
  expect(await handle.wait()).toMatchObject({ outcome: { kind: "cancelled" } });
  expect(verifyAtRest(await logOf(session))).toEqual([]);
});

test("G22: a process that ended just before the signal was sent has ended by itself, and is reported", async () => {
  const { belay, spawner } = await stage({
    next: async (turn) => JSON.stringify((await turn.transcript()).filter(({ role }) => role === "note").length),
  });
  spawner.plan({ whenStopped: "exited" });
  const session = await belay.createSession();
  const handle = await session.processes.start("work");
  expect(await belay.cancel(handle.id)).toMatchObject({
    kind: "stopping",
    ended: { kind: "settled", outcome: { kind: "completed" } },
  });
  expect(await session.prompt("next").text()).toBe("1");
  expect(verifyAtRest(await logOf(session))).toEqual([]);
});

test("G22: the result of a process whose session was closed is dropped, recorded as such, and counted", async () => {
  const { belay, spawner } = await stage();
  // It has ended by itself just before the close could reach it.
  spawner.plan({ whenStopped: "exited" });
  const session = await belay.createSession();
  const handle = await session.processes.start("work", { feedback: "wake" });
  await session.close();
  expect(await handle.wait()).toMatchObject({ outcome: { kind: "completed" } });
  const log = await logOf(session);
  expect(log.at(-1)).toMatchObject({ type: "process.settled", dropped: true });
  expect(log.filter(({ type }) => type === "inbox.added")).toEqual([]);
  expect(belay.load.dropped).toBe(1);
  expect(verifyAtRest(log)).toEqual([]);
});

test("G12, G19: a process that cannot be killed is named as dying, then as escaped, and the session is not blocked", {
  meta: { id: "G12/unkillable-process-named" },
}, async () => {
  const { belay, clock, spawner } = await stage({
    go: async (turn) => {
      await turn.call("shell", {}, async (call) => {
        await call.processes.run("stuck in the kernel");
        return null;
      });
      return "never";
    },
  });
  const session = await belay.createSession();
  await session.processes.start("in the background");
  const other = await spawner.next();
  spawner.plan({ whenStopped: "escapes" });
  const run = session.prompt("go");
  const child = await spawner.next();
  void run.cancel();
  await clock.advance(1_900);
  // The tool waited for its process as it should, so it is not reported as abandoned.
  const { request } = child;
  expect(await run.outcome).toEqual({ kind: "cancelled", reason: { kind: "user" }, dying: [request.id] });
  expect(await session.prompt("again").outcome).toEqual({ kind: "completed" });
  expect(child.signals).toContain("SIGKILL");
  expect(other.stops).toEqual([]);
  expect(await session.processes.list()).toMatchObject([{ phase: "running" }, { id: request.id, phase: "stopping" }]);
  await clock.advance(10_000);
  other.exit();
  await settled();
  const ends = (await logOf(session)).filter(({ type }) => type === "process.settled");
  expect(ends).toMatchObject([{ processId: request.id, escaped: [child.pid] }, { outcome: { kind: "completed" } }]);
  expect(verifyAtRest(await logOf(session))).toEqual([]);
});

test("G19: an escaped background process is reported with its pid", async () => {
  const { belay, clock, spawner } = await stage();
  spawner.plan({ whenStopped: "escapes" });
  const session = await belay.createSession();
  const handle = await session.processes.start("stuck in the kernel");
  const child = await spawner.next();
  const receipt = belay.cancel(handle.id, { waitMs: 60_000 });
  await clock.advance(1_500 + 10_000);
  expect(await receipt).toMatchObject({ ended: { outcome: { kind: "cancelled", abandoned: [`pid ${child.pid}`] } } });
  expect(await handle.wait()).toMatchObject({ escaped: [child.pid] });
});

test("G26: a worker that cannot renew its leases has killed its processes before another may drive", {
  meta: { id: "G26/processes-killed-before-takeover" },
}, async () => {
  const { belay, clock, spawner, store } = await stage();
  const session = await belay.createSession();
  await session.processes.start("work");
  const child = await spawner.next();
  store.always("renew", { kind: "fail", code: "unavailable" });
  store.always("unattended", { kind: "fail", code: "unavailable" });
  await clock.advance(LEASE_TTL_MS - 1);
  expect(child.stops[0]).toBe(0);
  expect(child.alive).toBe(false);
});

test("G26: the same with a store that does not answer at all", {
  meta: { id: "G26/silent-store-kills-processes" },
}, async () => {
  const { belay, clock, spawner, store } = await stage();
  const session = await belay.createSession();
  await session.processes.start("work");
  const child = await spawner.next();
  store.always("renew", { kind: "delay", until: new Gate() });
  await clock.advance(LEASE_TTL_MS - 1);
  expect(child.alive).toBe(false);
});

test("followers get the output of a live process, soon and then at growing intervals", async () => {
  const { belay, clock, spawner } = await stage();
  const session = await belay.createSession();
  const notes: Delta[] = [];
  const following = gate();
  const stop = new AbortController();
  const follower = (async () => {
    following.open();
    for await (const event of session.events({ deltas: "with", signal: stop.signal })) {
      if (event.type === "output") notes.push(event);
    }
  })();
  await following.passed;
  await clock.advance(500);
  const handle = await session.processes.start("work");
  const child = await spawner.next();
  child.say("half way\n");
  await clock.advance(14_000);
  expect(notes).toMatchObject([
    { processId: handle.id, bytes: 9, lines: 1, silenceMs: 2_000, tail: "half way\n" },
    { silenceMs: 6_000 },
    { silenceMs: 14_000 },
  ]);
  child.exit();
  await clock.advance(60_000);
  expect(notes).toHaveLength(3);
  stop.abort();
  await follower;
});

test("G33: a session has a limited number of live processes; an ended one does not count", async () => {
  const { belay, spawner } = await stage();
  const session = await belay.createSession();
  for (let n = 0; n < PROCESSES_LIVE_MAX; n += 1) await session.processes.start("work", { feedback: "silent" });
  await expect(session.processes.start("one more")).rejects.toMatchObject({ code: "overloaded" });
  spawner.children[0]?.exit();
  await settled();
  await session.processes.start("one more");
});

test("G3: a process that cannot be started is refused, and does not count", async () => {
  const { belay, spawner } = await stage();
  spawner.plan({ refused: "not_started" });
  const session = await belay.createSession();
  await expect(session.processes.start("nothing")).rejects.toMatchObject({ code: "not_started" });
  expect(await session.processes.list()).toEqual([]);
  const log = await logOf(session);
  const message = expect.stringContaining("was not started");
  expect(log.at(-1)).toMatchObject({ outcome: { kind: "failed", code: "not_started", message } });
  expect(verifyAtRest(log)).toEqual([]);
});

test("G22: processes that end while a run is live begin one run for all of them, when it has ended", async () => {
  const busy = gate();
  const { belay, spawner } = await stage({
    go: async () => {
      await busy.passed;
      return "done";
    },
  });
  const session = await belay.createSession();
  for (const name of ["one", "two"]) await session.processes.start(name, { feedback: "wake" });
  const run = session.prompt("go");
  await settled();
  for (const child of spawner.children) child.exit();
  await settled();
  busy.open();
  await run.outcome;
  const [woken] = await session.runs({ limit: 1 });
  await (await belay.run(woken?.id ?? "")).outcome;
  const log = await logOf(session);
  expect(log.filter((event) => event.type === "run.accepted" && event.wake === true)).toHaveLength(1);
  expect(log.find(({ type }) => type === "inbox.taken")).toMatchObject({ items: [{}, {}] });
  expect(verifyAtRest(log)).toEqual([]);
});

test("a call that waits for a process is stopped by its own cancel, and the process keeps running", async () => {
  const { belay, spawner } = await stage({
    go: async (turn) => {
      await turn.call("wait", {}, async (call) => {
        const child = await call.processes.start("work");
        await child.wait();
        return null;
      });
      return untilAborted(turn.signal);
    },
  });
  const session = await belay.createSession();
  const run = session.prompt("go");
  const child = await spawner.next();
  const [call] = (await session.explain()).live?.calls ?? [];
  expect(await belay.cancel(call?.callId ?? "")).toMatchObject({ ended: { outcome: { kind: "cancelled" } } });
  expect(child.alive).toBe(true);
  await run.cancel();
  await run.outcome;
  expect(child.alive).toBe(true);
});

test("a process that a turn has started outlives its run, and ends with its session", {
  meta: { id: "G19/background-process-outlives-run" },
}, async () => {
  const { belay, spawner } = await stage({
    go: async (turn) => {
      const heard: string[] = [];
      const hear = (piece: Uint8Array): void => void heard.push(Buffer.from(piece).toString());
      const handle = await turn.processes.start("work", { feedback: "silent", hear, lasting: true });
      spawner.children[0]?.say("one");
      spawner.children[0]?.say("not this", "stderr");
      spawner.children[0]?.say("two");
      expect((await turn.processes.list()).map(({ id }) => id)).toEqual([handle.id]);
      expect((await turn.processes.get(handle.id)).id).toBe(handle.id);
      return `${turn.graceMs} ${heard.join()}`;
    },
  });
  const session = await belay.createSession();
  expect(await session.prompt("go").text()).toBe("1500 one,two");
  expect(spawner.children[0]?.alive).toBe(true);
  await session.cancel();
  expect(spawner.children[0]?.alive).toBe(true);
  await session.close();
  await settled();
  expect(spawner.children[0]?.alive).toBe(false);
  expect(verifyAtRest(await logOf(session))).toEqual([]);
});

test("G28: a stop of the session does not stop its lasting processes if it is unknown what was written", async () => {
  const { belay, clock, spawner, store } = await stage();
  const session = await belay.createSession();
  await session.processes.start("agent", { lasting: true });
  await session.processes.start("work");
  store.always("append", { kind: "fail", code: "unavailable" });
  store.always("read", { kind: "fail", code: "unavailable" });
  session.prompt("go").outcome.catch(() => {});
  await settled();
  const receipt = session.cancel();
  expect(spawner.children.map(({ alive }) => alive)).toEqual([true, false]);
  await expect(receipt).rejects.toMatchObject({ hint: STOP_UNRECORDED });
  store.heal();
  await clock.advance(10_000);
  expect(spawner.children[0]?.alive).toBe(true);
  expect((await session.processes.list()).map(({ title }) => title)).toEqual(["agent"]);
});

test("G11: a turn that was stopped, or has ended, starts nothing", async () => {
  const refusals: unknown[] = [];
  let kept: Turn["processes"] | undefined;
  const { belay, spawner } = await stage({
    go: async (turn) => {
      kept = turn.processes;
      await untilAborted(turn.signal).catch(() => undefined);
      await turn.processes.start("work").catch((error: unknown) => refusals.push(error));
      return "ended";
    },
  });
  const session = await belay.createSession();
  const run = session.prompt("go");
  await run.accepted;
  await settled();
  await run.cancel();
  await run.outcome;
  await kept?.start("work").catch((error: unknown) => refusals.push(error));
  const busy = expect.objectContaining({ code: "busy", message: "This turn begins nothing new." });
  expect(refusals).toEqual([busy, busy]);
  expect(spawner.children).toEqual([]);
});

test('G25: a run of an agent with `onCrash: "lose"` is lost when it is cut off, and the next one runs', async () => {
  const clock = manualClock();
  const store = new MemoryStore({ clock });
  const asked: string[] = [];
  const agent = Object.assign(
    (turn: Turn): Promise<string> | string => {
      asked.push(turn.prompt.text);
      return turn.prompt.text === "first" ? new Promise<string>(() => {}) : "done";
    },
    { onCrash: "lose" } as const,
  );
  const cable = faultyStore(store);
  const first = await openBelay({ agent, store: cable, clock });
  const session = await first.createSession({ id: "ses_1" });
  const cut = session.prompt("first");
  const queued = session.prompt("second");
  await queued.accepted;
  await settled();
  // Its worker vanishes, and its lease expires.
  for (const what of ["renew", "append", "unattended", "claim"] as const) {
    cable.always(what, { kind: "fail", code: "unavailable" });
  }
  await clock.advance(LEASE_TTL_MS + 1);
  const second = await openBelay({ agent, store, clock, onCrash: "resume" });
  await clock.advance(LEASE_TTL_MS);
  expect(await (await second.run(cut.id)).outcome).toEqual({ kind: "lost" });
  expect(await (await second.run(queued.id)).outcome).toEqual({ kind: "completed" });
  expect(asked).toEqual(["first", "second"]);
});
