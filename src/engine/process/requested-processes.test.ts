// Requests for processes: what reaches the spawner, the log and the caller, even while the store fails.
import { realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { describe, expect, test } from "vitest";
import { deaf, logOf } from "../../../test/fixtures/belay.ts";
import { neighbour, stage } from "../../../test/fixtures/engine-processes.ts";
import { ControlError, STOP_UNRECORDED } from "../../core/errors.ts";
import { STORE_WAIT_MS } from "../../core/limits.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { ProcessId, SessionId } from "../../core/model/ids.ts";
import { verifyAtRest } from "../../core/read/verify.ts";
import type { Spawner, StartOptions } from "../../ports/spawner.ts";
import type { Appended } from "../../ports/store.ts";
import { MemoryStore } from "../../store/memory/memory-store.ts";
import type { FaultyStore } from "../../testing/faulty-store.ts";
import { Gate } from "../../testing/gate.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { scriptedSpawner } from "../../testing/scripted-spawner.ts";
import { sequentialIds } from "../../testing/sequential-ids.ts";
import { Engine } from "../engine.ts";

describe("a request", () => {
  test("reaches the spawner unchanged, except for the options that Belay handles", async () => {
    const { belay, spawner } = await stage({}, { directories: "any" });
    const session = await belay.createSession({ cwd: tmpdir() });
    const hear = (): void => {};
    const place: StartOptions = { cwd: "sub", env: { KEY: "value" }, inherit: "all", profile: "workspace" };
    const talk: StartOptions = { stdin: "open", hear, terminal: { columns: 80, rows: 24 } };
    const asked: StartOptions = { ...place, ...talk, limits: { processesMax: 5 }, graceMs: 100 };
    const more: StartOptions = { feedback: "silent", lasting: true, timeoutMs: 60_000 };
    const { id } = await session.processes.start(["make", "all"], { ...asked, ...more });
    const { signal, ...request } = (await spawner.next()).request;
    const workspace = realpathSync(tmpdir());
    const placed = { id, sessionId: session.id, command: ["make", "all"], workspace };
    expect(request).toStrictEqual({ ...asked, ...placed });
    expect(signal?.aborted).toBe(false);
    const [, requested, started] = await logOf(session);
    const { seq: _, at: __, ...first } = requested ?? { seq: 0, at: 0 };
    expect(first).toStrictEqual({
      ...{ type: "process.requested", processId: id, owner: session.id, command: ["make", "all"] },
      ...{ feedback: "silent", cwd: "sub", lasting: true },
    });
    expect(started).toMatchObject({ processId: id, pid: 1_001, tier: "namespace", profile: "workspace" });
  });

  test("without options has neither a directory nor a grace period", async () => {
    const { belay, spawner } = await stage();
    const session = await belay.createSession();
    const { id } = await session.processes.start("work");
    const { signal: _, ...request } = (await spawner.next()).request;
    expect(request).toStrictEqual({ id, sessionId: session.id, command: "work" });
    await session.processes.start("slow", { graceMs: 30_000 });
    expect((await spawner.next()).request.graceMs).toBe(30_000);
    const requested = (await logOf(session))[1];
    for (const absent of ["cwd", "lasting", "by"]) expect(requested).not.toHaveProperty(absent);
  });

  test("is refused with a hint if another worker drives the session", async () => {
    const here = await stage();
    const session = await here.belay.createSession();
    await session.processes.start("work");
    const elsewhere = (await neighbour(here)).session(session.id);
    await expect(elsewhere.processes.start("more")).rejects.toMatchObject({
      code: "unavailable",
      message: `Session ${session.id} is driven by another worker: nothing can be started for it here.`,
      hint: "Try again: it is taken over when that worker is gone.",
    });
    // It returns the state of the log.
    expect(await elsewhere.processes.list()).toEqual([
      { id: expect.any(String), owner: session.id, title: "work", phase: "running", feedback: "next-turn" },
    ]);
  });
});

describe("a time limit", () => {
  test("stops a process that runs longer, with the limit as the reason", async () => {
    const { belay, clock, spawner } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work", { timeoutMs: 5_000 });
    const child = await spawner.next();
    await clock.advance(4_999);
    expect(child.stops).toEqual([]);
    await clock.advance(1);
    expect(child.stops).toEqual([1_500]);
    const reason = { kind: "timeout", limitMs: 5_000 };
    expect(await handle.wait()).toMatchObject({ outcome: { kind: "cancelled", reason } });
  });

  test("of a process that has ended before, or never began, is cancelled", async () => {
    const { belay, clock, spawner } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work", { timeoutMs: 5_000 });
    (await spawner.next()).exit();
    await handle.wait();
    spawner.plan({ startsAfter: new Gate() });
    const starting = session.processes.start("work", { timeoutMs: 5_000 });
    await settled();
    await session.cancel();
    await (await starting).wait();
    expect(clock.pending.filter(({ idle }) => !idle)).toEqual([]);
  });
});

describe("the status of processes", () => {
  test("has their number, and the tier once it is known", async () => {
    const { belay, spawner } = await stage();
    const session = await belay.createSession();
    expect(belay.load).toMatchObject({ processes: 0, tier: undefined });
    const handles = [await session.processes.start("one"), await session.processes.start("two")];
    expect(belay.load).toMatchObject({ processes: 2, tier: "namespace" });
    for (const child of spawner.children) child.exit();
    for (const handle of handles) await handle.wait();
    expect(belay.load).toMatchObject({ processes: 0, dropped: 0 });
  });

  test("has those that are being stopped", async () => {
    const { belay, spawner } = await stage();
    spawner.plan({ whenStopped: "ignores" });
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    await session.processes.start("work");
    void handle.cancel();
    await settled();
    expect((await session.processes.list()).map(({ phase }) => phase)).toEqual(["stopping", "running"]);
    expect(handle.info?.phase).toBe("stopping");
  });
});

describe("an engine that cannot start processes", () => {
  function engineWith(spawner: (() => Promise<Spawner>) | undefined): Engine {
    const clock = manualClock();
    return new Engine({
      ...{ store: new MemoryStore({ clock }), clock, ids: sequentialIds(), agent: () => undefined, hooks: {} },
      ...{ notify: () => {}, graceMs: 1_000, liveRunsMax: 1, resume: "resume", tap: undefined, runLimitMs: undefined },
      spawner,
    });
  }

  async function start(engine: Engine): Promise<ProcessId> {
    const { id } = await engine.create(undefined, {});
    const begin = { owner: id, command: "work", options: {}, feedback: "silent" } as const;
    return (await engine.beginProcess(id, begin)).id;
  }

  test("refuses them, with a hint", async () => {
    const engine = engineWith(undefined);
    await expect(start(engine)).rejects.toMatchObject({
      code: "uncontained",
      message: "No processes can be started here: Belay was opened without them.",
      hint: "Open it with `processes: {}`.",
    });
    await engine.processes.close();
  });

  test("tries again for the next request, and then opens the spawner once", async () => {
    let opened = 0;
    const scripted = scriptedSpawner({ clock: manualClock() });
    const engine = engineWith(async () => {
      opened += 1;
      if (opened === 1) throw new ControlError("uncontained", "Nothing here can hold a process.");
      return scripted;
    });
    await expect(start(engine)).rejects.toMatchObject({ message: "Nothing here can hold a process." });
    expect(engine.processes.tier).toBeUndefined();
    await start(engine);
    await start(engine);
    expect(opened).toBe(2);
    await engine.processes.close();
    expect(scripted.children.map(({ alive }) => alive)).toEqual([false, false]);
  });

  test("closes without an error", async () => {
    const engine = engineWith(() => Promise.reject(new Error("Nothing here can hold a process.")));
    const starting = start(engine).catch(() => "refused");
    await engine.processes.close();
    expect(await starting).toBe("refused");
    await engine.processes.close();
  });
});

describe("a failing store", () => {
  test("G3: a process whose record was written although the answer was lost is settled as never started", async () => {
    const { belay, clock, spawner, store } = await stage();
    const session = await belay.createSession();
    store.plan("append", 1, { kind: "lose-answer" });
    await expect(session.processes.start("work")).rejects.toMatchObject({ code: "unavailable" });
    await clock.advance(10_000);
    expect(spawner.children).toEqual([]);
    expect(await session.processes.list()).toEqual([]);
    expect((await logOf(session)).at(-1)).toMatchObject({
      type: "process.settled",
      outcome: {
        kind: "failed",
        code: "unavailable",
        message: "It was never started: the store did not answer in time.",
      },
    });
    expect(verifyAtRest(await logOf(session))).toEqual([]);
  });

  test("does not affect live processes while it settles those never begun", async () => {
    const { belay, clock, spawner, store } = await stage();
    const session = await belay.createSession();
    await session.processes.start("work");
    const child = await spawner.next();
    await settled();
    store.plan("append", 1, { kind: "lose-answer" });
    await expect(session.processes.start("more")).rejects.toMatchObject({ code: "unavailable" });
    await clock.advance(10_000);
    expect((await session.processes.list()).map(({ title }) => title)).toEqual(["work"]);
    expect(child.stops).toEqual([]);
  });

  test("does not prevent a child from starting, although its pid is not recorded", async () => {
    const { belay, spawner, store } = await stage();
    const session = await belay.createSession();
    store.plan("append", 2, { kind: "fail", code: "store_full" });
    const handle = await session.processes.start("work");
    (await spawner.next()).exit();
    expect(await handle.wait()).toMatchObject({ outcome: { kind: "completed" } });
    expect((await logOf(session)).filter(({ type }) => type === "process.started")).toEqual([]);
  });

  test.each<Appended["kind"] | "never">(["appended", "moved", "never"])(
    "G3: a process whose request is not answered in time is never started, nor left open (late answer: %s)",
    async (late) => {
      const { belay, clock, spawner, store } = await stage();
      const session = await belay.createSession();
      const answer = new Gate();
      const append = store.append.bind(store);
      store.append = async (batch) => {
        store.append = append;
        if (late === "appended") await append(batch);
        await answer.opened;
        return { kind: late === "moved" ? "moved" : "appended", head: batch.expected + 1 };
      };
      const starting = session.processes.start("work");
      starting.catch(() => {});
      await clock.advance(STORE_WAIT_MS);
      await expect(starting).rejects.toMatchObject({ code: "unavailable" });
      if (late !== "never") answer.open();
      await clock.advance(STORE_WAIT_MS);
      expect(spawner.children).toEqual([]);
      expect(await session.processes.list()).toEqual([]);
      expect(belay.load).toMatchObject({ processes: 0 });
      expect(verifyAtRest(await logOf(session))).toEqual([]);
    },
  );

  test("G28: a stop that keeps background processes keeps them if it is unknown what was written", async () => {
    const { belay, clock, spawner, store } = await stage();
    const session = await belay.createSession();
    await session.processes.start("work");
    const child = await spawner.next();
    store.always("append", { kind: "fail", code: "unavailable" });
    store.always("read", { kind: "fail", code: "unavailable" });
    session.prompt("go").outcome.catch(() => {});
    await settled();
    const receipt = session.cancel({ background: "keep" });
    await expect(receipt).rejects.toMatchObject({ hint: STOP_UNRECORDED });
    expect(child.stops).toEqual([]);
    store.heal();
    await clock.advance(10_000);
    expect(child.stops).toEqual([]);
  });

  test("G28: a stop of one process stops that one only, in its tick, if it is unknown what was written", async () => {
    const { belay, spawner, store } = await stage();
    const session = await belay.createSession();
    await session.processes.start("other");
    const handle = await session.processes.start("work");
    store.always("append", { kind: "fail", code: "unavailable" });
    store.always("read", { kind: "fail", code: "unavailable" });
    session.prompt("go").outcome.catch(() => {});
    await settled();
    void handle.cancel().catch(() => {});
    expect(spawner.children.map(({ stops }) => stops)).toEqual([[], [1_500]]);
  });
});

describe("a shutdown", () => {
  const shutdown = { kind: "cancelled", reason: { kind: "shutdown" } };
  const endsOf = async (store: FaultyStore, session: SessionId): Promise<readonly Recorded[]> => {
    const { events } = await store.read(session, { after: 0, limit: 100 });
    expect(verifyAtRest(events)).toEqual([]);
    return events.filter(({ type }) => type === "process.settled");
  };

  test("waits for background and starting processes, and records their ends", async () => {
    const { belay, clock, spawner, store } = await stage();
    store.close = async () => {};
    const session = await belay.createSession();
    spawner.plan({ whenStopped: "ignores" });
    await session.processes.start("work");
    spawner.plan({ startsAfter: new Gate() });
    const starting = session.processes.start("late");
    await settled();
    const closing = belay.close();
    await clock.advance(1_500);
    expect(await closing).toEqual({ unfinished: [] });
    await starting;
    expect(spawner.children.map(({ signals }) => signals)).toEqual([["SIGTERM", "SIGKILL"]]);
    expect(await endsOf(store, session.id)).toMatchObject([{ outcome: shutdown }, { outcome: shutdown }]);
  });

  test("waits for a process whose request is not recorded, which is then not started", async () => {
    const { belay, spawner, store } = await stage();
    store.close = async () => {};
    const session = await belay.createSession();
    const stalled = new Gate();
    store.plan("append", 1, { kind: "delay", until: stalled });
    const starting = session.processes.start("late");
    await settled();
    const closing = belay.close();
    await settled();
    stalled.open();
    expect(await closing).toEqual({ unfinished: [] });
    await starting;
    expect(spawner.children).toEqual([]);
    expect(await endsOf(store, session.id)).toMatchObject([{ outcome: shutdown }]);
  });

  test("that has reached its limit kills a child that a slow machine starts after it", async () => {
    const { belay, clock, spawner } = await stage();
    const machine = scriptedSpawner({ clock });
    const slow = new Gate();
    spawner.spawn = async ({ signal: _, ...request }) => {
      await slow.opened;
      return machine.spawn(request);
    };
    const session = await belay.createSession();
    void session.processes.start("late");
    await settled();
    const closing = belay.close({ limitMs: 10 });
    await clock.advance(2_000);
    expect(await closing).toEqual({ unfinished: [session.id] });
    slow.open();
    await settled();
    expect(machine.children.map(({ stops }) => stops.at(-1))).toEqual([0]);
  });
});

test("a stop of the session covers a process whose request is not durable yet", async () => {
  const { belay, clock, spawner, store } = await stage({ go: deaf });
  const session = await belay.createSession();
  const run = session.prompt("go");
  await run.accepted;
  await settled();
  void run.cancel();
  await settled();
  const stalled = new Gate();
  store.plan("append", 1, { kind: "delay", until: stalled });
  const starting = session.processes.start("late");
  await settled();
  const receipt = session.cancel();
  await settled();
  stalled.open();
  expect(await receipt).toMatchObject({ kind: "stopping", processes: [{ receipt: { first: true } }] });
  expect(await (await starting).wait()).toMatchObject({ outcome: { kind: "cancelled" } });
  expect(spawner.children).toEqual([]);
  await clock.advance(10_000);
  expect(verifyAtRest(await logOf(session))).toEqual([]);
});
