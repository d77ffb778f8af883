// Cancelling while the store is slow, silent, or the only source of an outcome: what stops at once, and the receipts.
import { describe, expect, test } from "vitest";
import { gate, openTestBelay, untilAborted, waits } from "../../test/fixtures/belay.ts";
import { LEASE_TTL_MS } from "../core/limits.ts";
import type { CallId } from "../core/model/ids.ts";
import type { Agent, Turn } from "../ports/agent.ts";
import type { RunHandle } from "../sdk/run.ts";
import type { Session } from "../sdk/session.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { faultyStore } from "../testing/faulty-store.ts";
import { Gate } from "../testing/gate.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import { scriptedSpawner } from "../testing/scripted-spawner.ts";

const cancelled = { kind: "cancelled", reason: { kind: "user" } } as const;

/** A run, optionally with a key, whose turn waits for two calls, and one run behind it. All of them stop when asked. */
async function busy(key?: string) {
  const clock = manualClock();
  const store = faultyStore(new MemoryStore({ clock }));
  const spawner = scriptedSpawner({ clock });
  const signals: Record<string, AbortSignal> = {};
  const ids: Record<string, CallId> = {};
  const live = async (turn: Turn): Promise<undefined> => {
    signals.turn = turn.signal;
    const call = (name: string) =>
      turn.call(name, null, ({ signal, callId }) => {
        signals[name] = signal;
        ids[name] = callId;
        return untilAborted(signal);
      });
    await Promise.all([call("one"), call("two")]);
    return untilAborted(turn.signal);
  };
  const { belay } = await openTestBelay({ live }, { clock, store, processes: { spawner }, graceMs: 1_000 });
  const session = await belay.createSession();
  const run = session.prompt("live", key === undefined ? {} : { key });
  const queued = session.prompt("queued", { key: "queued" });
  for (let round = 0; round < 4; round += 1) await settled();
  const stopped = (): readonly string[] => Object.keys(signals).filter((name) => signals[name]?.aborted);
  return { clock, store, spawner, belay, session, run, queued, ids, stopped };
}

type Busy = Awaited<ReturnType<typeof busy>>;

/** The ways in which the store can keep a stop from being recorded. */
const HELD: Readonly<Record<string, (one: Busy) => void>> = {
  "that does not answer": ({ store, session }) => {
    store.trouble = { kind: "silent", applied: false };
    session.prompt("held", { key: "new" }).outcome.catch(() => {});
  },
  "that refuses": ({ store, session }) => {
    store.always("append", { kind: "fail", code: "store_full" });
    session.prompt("refused", { key: "new" }).outcome.catch(() => {});
  },
  "of which it is unknown what it has written": ({ store, session }) => {
    store.always("append", { kind: "fail", code: "unavailable" });
    store.always("read", { kind: "fail", code: "unavailable" });
    session.prompt("lost").outcome.catch(() => {});
  },
};

/** The key already belongs to another prompt. */
function refused(session: Session): RunHandle {
  const run = session.prompt("something else", { key: "live" });
  run.outcome.catch(() => {});
  return run;
}

const CANCELS: readonly (readonly [string, (one: Busy) => Promise<unknown>, readonly string[]])[] = [
  ["the session", ({ session }) => session.cancel(), ["turn", "one", "two"]],
  ["the run", ({ belay, run }) => belay.cancel(run.id), ["turn", "one", "two"]],
  ["the session under a key", ({ session }) => session.cancel({ key: "c1" }), ["turn", "one", "two"]],
  ["the prompt by its key", ({ session }) => session.cancelPrompt("live"), ["turn", "one", "two"]],
  ["the prompt by its handle", ({ run }) => run.cancel(), ["turn", "one", "two"]],
  ["a prompt that is refused, because its key is this one's", ({ session }) => refused(session).cancel(), []],
  ["one call", ({ belay, ids }) => belay.cancel(ids.two ?? ""), ["two"]],
  ["another run", ({ belay, queued }) => belay.cancel(queued.id), []],
  ["another prompt by its key", ({ session }) => session.cancelPrompt("queued"), []],
  ["a call that is not there", ({ belay, run }) => belay.cancel(`call_${run.id.slice(4)}.99`), []],
];

describe.each(Object.keys(HELD))("G28: with a store %s,", (held) => {
  test.each(CANCELS)("a cancel of %s stops what it covers at once, and nothing else", async (_, cancel, covered) => {
    const one = await busy("live");
    HELD[held]?.(one);
    await settled();
    expect(one.stopped()).toEqual([]);
    cancel(one).catch(() => {});
    await settled();
    expect(one.stopped()).toEqual(covered);
  });

  test("a cancel of one call leaves the rest running, even in a run without a key", async () => {
    const one = await busy();
    HELD[held]?.(one);
    await settled();
    one.belay.cancel(one.ids.one ?? "").catch(() => {});
    await settled();
    expect(one.stopped()).toEqual(["one"]);
  });

  test("a cancel repeated with its key stops nothing newer", async () => {
    const one = await busy();
    const other = await one.belay.createSession();
    expect(await other.cancel({ key: "c1" })).toMatchObject({ kind: "idle" });
    const run = other.prompt("live");
    for (let round = 0; round < 4; round += 1) await settled();
    HELD[held]?.({ ...one, session: other, run });
    await settled();
    other.cancel({ key: "c1" }).catch(() => {});
    await settled();
    expect(one.stopped()).toEqual([]);
    other.cancel({ key: "c2" }).catch(() => {});
    await settled();
    expect(one.stopped()).toEqual(["turn", "one", "two"]);
  });
});

test("G28: a cancel after an interrupt that is not durable yet does not wait for it", async () => {
  const one = await busy();
  const stalled = new Gate();
  one.store.always("append", { kind: "delay", until: stalled });
  const urgent = one.session.prompt("urgent", { delivery: "interrupt" });
  await settled();
  expect(one.stopped()).toEqual([]);
  const receipt = one.run.cancel();
  await settled();
  expect(one.stopped()).toEqual(["turn", "one", "two"]);
  stalled.open();
  one.store.heal();
  expect(await receipt).toMatchObject({ kind: "stopping", first: false });
  expect(await one.run.outcome).toMatchObject({ kind: "cancelled", reason: { kind: "superseded", by: urgent.id } });
});

test.each([undefined, "once"])(
  "G28: a turn does not begin after an interrupt and a stop that are not durable yet (key of the stop: %s)",
  async (key) => {
    const clock = manualClock();
    const store = faultyStore(new MemoryStore({ clock }));
    const [first, goOn] = [gate(), gate()];
    let turns = 0;
    const agent: Agent = async ({ signal, prompt }) => {
      if (prompt.text !== "live") return "done";
      turns += 1;
      first.open();
      if (turns > 1) return untilAborted(signal);
      await goOn.passed;
      return { next: "turn" };
    };
    const { belay } = await openTestBelay({}, { clock, store, agent });
    const session = await belay.createSession();
    const run = session.prompt("live");
    await first.passed;
    // The end of the first turn is being written, and with it the request for the second.
    const [turnEnds, behind] = [new Gate(), new Gate()];
    store.always("append", { kind: "delay", until: turnEnds });
    goOn.open();
    await settled();
    store.always("append", { kind: "delay", until: behind });
    const urgent = session.prompt("urgent", { delivery: "interrupt" });
    const receipt = run.cancel(key === undefined ? {} : { key });
    turnEnds.open();
    for (let round = 0; round < 4; round += 1) await settled();
    expect(turns).toBe(1);
    store.heal();
    behind.open();
    expect(await receipt).toMatchObject({ kind: "stopping", first: false });
    expect(await run.outcome).toMatchObject({ kind: "cancelled", reason: { kind: "superseded" } });
    expect(await urgent.outcome).toEqual({ kind: "completed" });
    expect(turns).toBe(1);
  },
);

describe("G10: the receipt for settled work has its outcome, and for unknown work is `unknown`:", () => {
  const ended = { kind: "settled", outcome: { kind: "completed" } } as const;

  test("a run, in this process and in the next one", async () => {
    const clock = manualClock();
    const store = new MemoryStore({ clock });
    store.close = async () => {};
    const first = await openTestBelay({}, { clock, store });
    const session = await first.belay.createSession();
    const run = session.prompt("go", { key: "mine" });
    await run.outcome;
    const second = await openTestBelay({}, { clock, store });
    for (const belay of [first.belay, second.belay]) {
      expect(await belay.cancel(run.id)).toEqual(ended);
      expect(await belay.cancel(run.id, { key: "fresh" })).toEqual(ended);
      expect(await belay.session(session.id).cancelPrompt("mine")).toEqual({ ...ended, runId: run.id });
      expect(await belay.session(session.id).cancelPrompt("other")).toEqual({ kind: "unknown" });
      const same = belay.session(session.id).prompt("go", { key: "mine" });
      expect(await same.cancel()).toEqual(ended);
      const other = belay.session(session.id).prompt("another", { key: "mine" });
      expect(await other.cancel()).toEqual({ kind: "unknown" });
      expect(await belay.cancel("run_none")).toEqual({ kind: "unknown" });
    }
  });

  test("a run whose end is decided and not durable yet, once it is durable", async () => {
    const clock = manualClock();
    const store = faultyStore(new MemoryStore({ clock }));
    const goOn = gate();
    const { belay, began } = await openTestBelay({ go: () => goOn.passed.then(() => "done") }, { clock, store });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await began("go");
    const stalled = new Gate();
    store.always("append", { kind: "delay", until: stalled });
    goOn.open();
    await settled();
    const receipt = belay.cancel(run.id);
    await settled();
    stalled.open();
    expect(await receipt).toEqual(ended);
  });

  test("a run that was refused", async () => {
    const { belay } = await openTestBelay();
    const run = belay.session("ses_none").prompt("go");
    const receipt = belay.cancel(run.id);
    await expect(run.accepted).rejects.toMatchObject({ code: "not_found" });
    expect(await receipt).toEqual({ kind: "unknown" });
  });

  test("a run that an earlier process has left, in a session that is not loaded", async () => {
    const clock = manualClock();
    const store = new MemoryStore({ clock });
    const first = await openTestBelay({ live: waits }, { clock, store });
    const session = await first.belay.createSession();
    const live = session.prompt("live");
    const queued = session.prompt("queued");
    await first.began("live");
    await queued.accepted;
    const second = await openTestBelay({ live: waits }, { clock, store });
    // Requested from a worker that does not drive it: decided on the state of the log.
    expect(await second.belay.cancel(queued.id, { key: "c1" })).toEqual({ kind: "withdrawn" });
    expect(await second.belay.cancel(queued.id, { key: "c1" })).toEqual({ kind: "withdrawn" });
    expect(await second.belay.cancel(queued.id)).toEqual({ kind: "settled", outcome: cancelled });
    await clock.advance(LEASE_TTL_MS);
    await live.cancel({ waitMs: 0 });
  });

  test("a call", async () => {
    const { belay } = await openTestBelay({
      go: async (turn) => String((await turn.call("tool", null, () => "x")).callId),
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    const callId = await run.text();
    expect(await belay.cancel(callId)).toEqual({ ...ended, tool: "tool" });
    expect(await belay.cancel(`call_${run.id.slice(4)}.2`)).toEqual({ kind: "unknown" });
    expect(await belay.cancel("call_none.1")).toEqual({ kind: "unknown" });
  });

  test("a process", async () => {
    const one = await busy();
    const handle = await one.session.processes.start("work");
    (await one.spawner.next()).exit(0);
    await handle.wait();
    expect(await one.belay.cancel(handle.id)).toMatchObject(ended);
    expect(await one.belay.cancel(`proc_${one.session.id.slice(4)}.99`)).toMatchObject({ kind: "unknown" });
  });
});
