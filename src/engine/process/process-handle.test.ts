// A handle on a process, for the code that started it, looked it up, or runs in another worker.
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { gate, logOf, untilAborted } from "../../../test/fixtures/belay.ts";
import { calls, json, neighbour, notes, stage } from "../../../test/fixtures/engine-processes.ts";
import { LEASE_TTL_MS, TERMINAL_CELLS_MAX } from "../../core/limits.ts";
import { verify } from "../../core/read/verify.ts";
import type { Turn } from "../../ports/agent.ts";
import type { OutputFile, OutputPage, OutputPageOptions } from "../../ports/spawner.ts";
import { Gate } from "../../testing/gate.ts";
import { type ManualClock, manualClock, settled } from "../../testing/manual-clock.ts";
import { orLimit } from "./process-handle.ts";

const timers = (clock: ManualClock): number => clock.pending.filter(({ idle }) => !idle).length;

test("info is defined while the process is live here, and undefined afterwards or elsewhere", async () => {
  const here = await stage();
  const session = await here.belay.createSession();
  await session.processes.start("another one");
  const handle = await session.processes.start(["make", "all"], { feedback: "silent", profile: "none" });
  here.spawner.children[1]?.say("12 files\n");
  expect(handle.info).toEqual({
    ...{ id: handle.id, owner: session.id, title: "make all", phase: "running", feedback: "silent", profile: "none" },
    ...{ pid: here.spawner.children[1]?.pid, tier: "namespace", mechanism: "bubblewrap" },
    ...{ startedAt: here.clock.now(), bytes: 9 },
  });
  const elsewhere = await (await neighbour(here)).session(session.id).processes.get(handle.id);
  expect([elsewhere.id, elsewhere.sessionId, elsewhere.info]).toEqual([handle.id, session.id, undefined]);
  here.spawner.children[1]?.exit();
  await handle.wait();
  expect(handle.info).toBeUndefined();
});

describe("a wait", () => {
  test("ends with its limit and leaves the process running", async () => {
    const { belay, clock, spawner } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    const child = await spawner.next();
    const answers: unknown[] = [];
    const waiting = handle.wait({ limitMs: 100 }).then((result) => answers.push(result));
    await clock.advance(99);
    expect(answers).toEqual([]);
    await clock.advance(1);
    await waiting;
    expect(answers).toEqual([undefined]);
    expect(child.stops).toEqual([]);
    child.exit(3);
    expect(await handle.wait()).toMatchObject({ outcome: { kind: "completed" }, exit: { code: 3 } });
  });

  test("ends with its signal, even an aborted one, and leaves the process running", async () => {
    const { belay, spawner } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    const child = await spawner.next();
    const stop = new AbortController();
    const waiting = handle.wait({ signal: stop.signal });
    stop.abort("enough");
    await expect(waiting).rejects.toBe("enough");
    await expect(handle.wait({ signal: AbortSignal.abort("before") })).rejects.toBe("before");
    expect(child.stops).toEqual([]);
  });

  test("leaves neither a timer nor a listener, however it ended", async () => {
    const { belay, clock, spawner } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    const child = await spawner.next();
    const before = timers(clock);
    const { signal } = new AbortController();
    const stop = new AbortController();
    const limited = handle.wait({ limitMs: 5, signal });
    const stopped = handle.wait({ limitMs: 10_000, signal: stop.signal });
    const told = handle.wait({ limitMs: 10_000, signal });
    await clock.advance(5);
    expect(await limited).toBeUndefined();
    stop.abort("enough");
    await expect(stopped).rejects.toBe("enough");
    child.exit();
    expect(await told).toMatchObject({ exit: { code: 0 } });
    expect(timers(clock)).toBe(before);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test.each<readonly [unknown, string]>([
    ...[Number.NaN, -1, "x", null, 0.5, Number.POSITIVE_INFINITY].map(
      (limitMs) => [{ limitMs }, `limitMs is a whole number of milliseconds from 0 to ${2 ** 31}.`] as const,
    ),
    [{ limit: 5 }, "wait() has no `limit`."],
    [{ signal: "stop" }, "`signal` is an AbortSignal."],
    [null, "wait() takes its options as an object, { name: value }."],
    [5, "wait() takes its options as an object, { name: value }."],
  ])("for %o is refused, and does not resolve at once as if its limit had come", async (options, message) => {
    const { belay, clock } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    const before = timers(clock);
    await expect(handle.wait(options as never)).rejects.toMatchObject({ code: "invalid", message });
    expect(timers(clock)).toBe(before);
  });

  test("is rejected, even with a limit, when another worker may drive the session", async () => {
    const { belay, clock, store } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    const waiting = [handle.wait(), handle.wait({ limitMs: 10 * LEASE_TTL_MS })];
    store.always("renew", { kind: "fail", code: "unavailable" });
    store.always("unattended", { kind: "fail", code: "unavailable" });
    await clock.advance(LEASE_TTL_MS);
    for (const wait of waiting) await expect(wait).rejects.toMatchObject({ code: "unavailable" });
  });

  test("that is not awaited is not an unhandled rejection", async () => {
    const { belay } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    void handle.wait({ signal: AbortSignal.abort("nobody cares") });
    await settled();
    expect(handle.info?.phase).toBe("running");
  });

  test("of a call ends with the call's own signal or with the call, whichever is first", async () => {
    const ends: unknown[] = [];
    const own = new AbortController();
    const { belay, spawner } = await stage({
      go: calls(async (call) => {
        const handle = await call.processes.start("work");
        await handle.wait({ signal: own.signal }).catch((error: unknown) => ends.push(error));
        await handle.wait({ signal: new AbortController().signal }).catch(() => ends.push("the call"));
      }),
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    await settled();
    own.abort("its own");
    await settled();
    await run.cancel();
    await run.outcome;
    expect(ends).toEqual(["its own", "the call"]);
    expect(child.stops).toEqual([]);
  });

  test("of a call that received the result prevents any other report", async () => {
    const { belay, spawner } = await stage({
      go: calls(async (call) => (await call.processes.start("work")).wait()),
      next: notes,
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    await settled();
    child.exit();
    expect(JSON.parse(await run.text())).toMatchObject({ value: { outcome: { kind: "completed" } } });
    const added = (await logOf(session)).find(({ type }) => type === "inbox.added");
    expect(added).toMatchObject({ heldBy: expect.stringMatching(/^call_/) });
    expect(await session.prompt("next").text()).toBe("[]");
  });

  test("G22: of two calls, one of which is stopped, is reported by the other and not to a turn as well", async () => {
    const told = gate();
    const { belay, spawner } = await stage({
      go: async (turn) => {
        const started = Promise.withResolvers<string>();
        const first = turn.call("first", {}, async (call) => {
          const handle = await call.processes.start("work");
          started.resolve(handle.id);
          await handle.wait();
          return untilAborted(call.signal);
        });
        const second = turn.call("second", {}, async (call) => {
          const handle = await call.processes.get(await started.promise);
          const result = await handle.wait();
          await told.passed;
          return json(result);
        });
        await first;
        await turn.takeSteers();
        told.open();
        return JSON.stringify(await second);
      },
      next: notes,
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    await settled();
    child.exit();
    await settled();
    const first = (await logOf(session)).find(({ type }) => type === "call.requested");
    if (first?.type !== "call.requested") throw new Error("no call");
    await belay.cancel(first.callId);
    expect(JSON.parse(await run.text())).toMatchObject({ value: { outcome: { kind: "completed" } } });
    const log = await logOf(session);
    const taken = log.flatMap((event) => (event.type === "inbox.taken" ? event.items : []));
    expect(taken.map(({ kind }) => kind)).toEqual(["reminder"]);
    expect(log.find(({ type }) => type === "inbox.added")).toHaveProperty("alsoHeldBy");
    expect(await session.prompt("next").text()).not.toContain(child.request.id);
    expect(verify(log)).toEqual([]);
  });

  test("of a call that was abandoned before the end leaves the result for the next turn", async () => {
    const { belay, clock, spawner } = await stage({
      go: calls(async (call) => {
        const handle = await call.processes.start("work");
        expect(await handle.wait({ limitMs: 10 })).toBeUndefined();
        spawner.children[0]?.exit();
        await settled();
      }),
      next: notes,
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await spawner.next();
    await clock.advance(10);
    await run.outcome;
    const added = (await logOf(session)).find(({ type }) => type === "inbox.added");
    expect(added).not.toHaveProperty("heldBy");
    expect(JSON.parse(await session.prompt("next").text())).toHaveLength(1);
  });
});

describe("a wait of a turn", () => {
  const waiting = async (turn: Turn): Promise<string> =>
    JSON.stringify(await (await turn.processes.start("work")).wait());

  test("G22: that received the result prevents a report to later turns, and to the turn itself", async () => {
    const { belay, spawner } = await stage({
      go: async (turn) => {
        const result = await waiting(turn);
        await turn.takeSteers();
        return result;
      },
      next: notes,
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    await settled();
    child.exit();
    expect(JSON.parse(await run.text())).toMatchObject({ outcome: { kind: "completed" } });
    const log = await logOf(session);
    expect(log.find(({ type }) => type === "inbox.added")).toMatchObject({
      heldBy: expect.stringMatching(/^turn_/),
    });
    expect(log.find(({ type }) => type === "turn.settled")).toMatchObject({ heard: [child.request.id] });
    expect(await session.prompt("next").text()).toBe("[]");
    expect(verify(await logOf(session))).toEqual([]);
  });

  test("G22: for a process that it has looked up prevents a report to later turns", async () => {
    const { belay, spawner } = await stage({
      go: async (turn) => (await turn.processes.start("work")).id,
      again: async (turn) => {
        const [one] = await turn.processes.list();
        return JSON.stringify(await (await turn.processes.get(one?.id ?? "")).wait());
      },
      next: notes,
    });
    const session = await belay.createSession();
    await session.prompt("go").outcome;
    const run = session.prompt("again");
    const child = await spawner.next();
    await settled();
    child.exit();
    expect(JSON.parse(await run.text())).toMatchObject({ processId: child.request.id });
    expect(await session.prompt("next").text()).toBe("[]");
  });

  test("G22: that then fails leaves the result for the next turn", async () => {
    const { belay, spawner } = await stage({
      go: async (turn) => {
        await waiting(turn);
        throw new Error("no answer of the model");
      },
      next: notes,
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    await settled();
    child.exit();
    expect(await run.outcome).toMatchObject({ kind: "failed" });
    expect(JSON.parse(await session.prompt("next").text())).toHaveLength(1);
  });

  test("G22: that resolves after the turn has returned leaves the result for the next turn", async () => {
    const { belay, spawner } = await stage({
      go: async (turn) => {
        const handle = await turn.processes.start("work");
        handle.wait().catch(() => {});
        return "not waited for";
      },
      next: notes,
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const child = await spawner.next();
    await run.outcome;
    child.exit();
    await settled();
    expect(JSON.parse(await session.prompt("next").text())).toHaveLength(1);
    expect(verify(await logOf(session))).toEqual([]);
  });
});

test("a wait without a limit sets no timer", async () => {
  const clock = manualClock();
  const { promise, resolve } = Promise.withResolvers<string>();
  const waiting = orLimit(clock, promise, { limitMs: undefined });
  expect(clock.pending).toEqual([]);
  resolve("over");
  expect(await waiting).toBe("over");
});

describe("a wait for a process of another worker", () => {
  test("resolves with its end, once it has ended", async () => {
    const here = await stage();
    const session = await here.belay.createSession();
    const { id } = await session.processes.start("work");
    const handle = await (await neighbour(here)).session(session.id).processes.get(id);
    const waiting = handle.wait();
    await settled();
    await (await session.processes.start("another one")).cancel();
    here.spawner.children[0]?.exit(7);
    const result = await waiting;
    expect(result).toMatchObject({ processId: id, outcome: { kind: "completed" }, exit: { code: 7 } });
    expect(Object.keys(result ?? {})).toEqual(["processId", "outcome", "exit", "durationMs", "output"]);
    expect(await handle.wait()).toEqual(result);
  });

  test("that has reached its limit follows nothing any more", async () => {
    const here = await stage();
    const session = await here.belay.createSession();
    const { id } = await session.processes.start("work");
    const signals: (AbortSignal | undefined)[] = [];
    const { grown } = here.store;
    here.store.grown = (session, after, signal) => {
      signals.push(signal);
      return grown(session, after, signal);
    };
    const handle = await (await neighbour(here)).session(session.id).processes.get(id);
    const waiting = handle.wait({ limitMs: 10 });
    await here.clock.advance(10);
    expect(await waiting).toBeUndefined();
    expect(signals.map((signal) => signal?.aborted)).toEqual([true]);
  });
});

describe("an operation on a live process", () => {
  test("reaches the child: input, the end of the input, the size of its terminal", async () => {
    const { belay, spawner } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("cat", { stdin: "open", terminal: { columns: 80, rows: 24 } });
    const child = await spawner.next();
    await handle.write("one ");
    await handle.write(Buffer.from("two"));
    await handle.resize({ columns: 100, rows: 30 });
    expect([child.input, child.inputEnded, child.size]).toEqual(["one two", false, { columns: 100, rows: 30 }]);
    handle.endInput();
    expect(child.inputEnded).toBe(true);
  });

  test("is refused once it has ended, with a hint", async () => {
    const { belay, spawner } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("cat", { stdin: "open" });
    (await spawner.next()).exit();
    await handle.wait();
    const refused = (what: string): unknown =>
      expect.objectContaining({
        code: "conflict",
        message: `${handle.id} cannot be ${what}: it has ended, or another worker has it.`,
        hint: "Look at its state with list(), or start another one.",
      });
    await expect(handle.write("more")).rejects.toEqual(refused("written to"));
    expect(() => handle.endInput()).toThrow(refused("written to"));
    await expect(handle.resize({ columns: 1, rows: 1 })).rejects.toEqual(refused("resized"));
  });

  test("a cancel has the kind `user` by default", async () => {
    const { belay } = await stage();
    const session = await belay.createSession();
    const first = await session.processes.start("work");
    await first.cancel();
    expect(await first.wait()).toMatchObject({ outcome: { kind: "cancelled", reason: { kind: "user" } } });
    const second = await session.processes.start("work");
    await second.cancel({ kind: "policy", note: "too loud" });
    expect(await second.wait()).toMatchObject({ outcome: { reason: { kind: "policy", note: "too loud" } } });
    const third = await session.processes.start("work");
    await third.cancel("enough" as never);
    expect(await third.wait()).toMatchObject({ outcome: { reason: { kind: "user", note: "enough" } } });
  });

  test.each<readonly [string, unknown]>([
    ["a note that cannot be stored", { kind: "user", note: 10n }],
    ["the options of another cancel", { reason: "x" }],
    ["a kind that is Belay's own", { kind: "shutdown" }],
    ["a number", 7],
    ["nothing", null],
  ])("G3: a cancel whose reason is %s stops nothing, records nothing, and the session continues", async (_, reason) => {
    const { belay, spawner } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    const child = await spawner.next();
    await settled();
    const before = await logOf(session);
    await expect(handle.cancel(reason as never)).rejects.toMatchObject({ code: "invalid" });
    expect(child.stops).toEqual([]);
    expect(await logOf(session)).toEqual(before);
    expect(await handle.cancel()).toMatchObject({ kind: "stopping", first: true });
    expect(await handle.wait()).toMatchObject({ outcome: { kind: "cancelled", reason: { kind: "user" } } });
  });

  test("input that is neither a string nor bytes, and an invalid size, do not reach the child", async () => {
    const { belay, spawner } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("cat", { stdin: "open", terminal: { columns: 80, rows: 24 } });
    const child = await spawner.next();
    for (const data of [undefined, null, 7, ["x"], {}]) {
      await expect(handle.write(data as never)).rejects.toMatchObject({ code: "invalid" });
    }
    for (const size of [
      undefined,
      null,
      80,
      {},
      { columns: 0, rows: 1 },
      { columns: TERMINAL_CELLS_MAX + 1, rows: 1 },
    ]) {
      await expect(handle.resize(size as never)).rejects.toMatchObject({ code: "invalid" });
    }
    expect([child.input, child.size]).toEqual(["", { columns: 80, rows: 24 }]);
  });
});

describe("output", () => {
  const read = async (pages: AsyncIterable<OutputPage>): Promise<readonly string[]> => {
    const texts: string[] = [];
    for await (const { text } of pages) texts.push(text);
    return texts;
  };

  test("is read and followed while the process is live, and afterwards", async () => {
    const { belay, spawner } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    const child = await spawner.next();
    child.say("one\n");
    expect(await handle.read()).toMatchObject({ text: "one\n", end: false });
    const following = read(handle.follow({ offset: 2 }));
    await settled();
    child.say("two\n");
    await settled();
    child.exit();
    expect(await following).toEqual(["e\n", "two\n"]);
    await handle.wait();
    expect(await handle.read({ offset: 4 })).toMatchObject({ from: 4, text: "two\n", end: true });
    expect(await read(handle.follow())).toEqual(["one\ntwo\n"]);
    expect(await read(handle.follow({ offset: 1, bytesMax: 3 }))).toEqual(["ne\n", "two", "\n"]);
  });

  test("of an ended process is followed only until the reader leaves", async () => {
    const { belay, spawner } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    const child = await spawner.next();
    child.say("one two three");
    child.exit();
    await handle.wait();
    const enough = new AbortController();
    const texts: string[] = [];
    for await (const { text } of handle.follow({ bytesMax: 4, signal: enough.signal })) {
      if (texts.push(text) === 2) enough.abort();
    }
    expect(texts).toEqual(["one ", "two "]);
  });

  test("of a starting process is awaited, and undefined if it never starts", async () => {
    const { belay, spawner } = await stage();
    const session = await belay.createSession();
    /** The output for a reader that comes while the process starts. */
    const startingThen = async (then: (starts: Gate, id: string) => unknown) => {
      const starts = new Gate();
      spawner.plan({ startsAfter: starts });
      session.processes.start("work").catch(() => {});
      await settled();
      const info = (await session.processes.list()).at(-1);
      const handle = await session.processes.get(info?.id ?? "");
      const heard = Promise.all([handle.read(), read(handle.follow())]);
      await settled();
      await then(starts, handle.id);
      return heard;
    };
    const begun = await startingThen(async (starts) => {
      starts.open();
      const child = await spawner.next();
      child.say("hello");
      child.exit();
    });
    expect(begun).toMatchObject([{ text: "hello" }, ["hello"]]);
    expect(await startingThen((_, id) => belay.cancel(id))).toEqual([undefined, []]);
  });

  /** Of an earlier worker: cut off, so that no page is marked as the last. */
  const keptOf = (pages: Readonly<Record<number, Partial<OutputPage>>>): Partial<OutputFile> => ({
    read: async ({ offset = 0 }: OutputPageOptions = {}) => ({
      ...{ stream: "all", from: offset, to: offset, text: "", missing: 0, end: false, ...pages[offset] },
    }),
  });

  test("of an ended process ends where nothing more is kept, and pages have the missing bytes", async () => {
    const { belay, spawner } = await stage();
    const session = await belay.createSession();
    const handle = await session.processes.start("work");
    (await spawner.next()).exit();
    await handle.wait();
    const pages = { 0: { to: 3, text: "one" }, 3: { from: 90, to: 90, missing: 87 }, 90: { to: 95, text: "three" } };
    Object.assign(spawner, { output: async () => keptOf(pages) });
    const followed: [number, number, string][] = [];
    for await (const { from, missing, text } of handle.follow()) followed.push([from, missing, text]);
    expect(followed).toEqual([
      [0, 0, "one"],
      [90, 87, ""],
      [90, 0, "three"],
    ]);
    Object.assign(spawner, { output: async () => undefined });
    expect(await handle.read()).toBeUndefined();
    expect(await read(handle.follow())).toEqual([]);
  });
});
