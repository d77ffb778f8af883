// Following, closing, parking and resuming.
import { describe, expect, test } from "vitest";
import { deaf, gate, openTestBelay, untilAborted, waits } from "../../test/fixtures/belay.ts";
import { stage } from "../../test/fixtures/engine-processes.ts";
import { ControlError } from "../core/errors.ts";
import { LEASE_TTL_MS } from "../core/limits.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { systemClock } from "../system/system-clock.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import { openBelay } from "./belay.ts";

/** A store that survives its Belay. */
function lasting(): MemoryStore {
  const store = new MemoryStore({ clock: systemClock });
  store.close = async () => {};
  return store;
}

test("a failed start leaves the store open, and locked for the next one", async () => {
  const store = new MemoryStore({ clock: systemClock });
  let closed = false;
  store.close = async () => {
    closed = true;
  };
  store.unattended = async () => {
    throw new ControlError("store_locked", "The disk does not answer.");
  };
  await expect(openBelay({ agent: () => undefined, store })).rejects.toThrow("The disk does not answer.");
  expect(closed).toBe(true);
});

describe("following", () => {
  test("G29: every subscriber receives a contiguous range of events, from wherever it starts", {
    meta: { id: "G29/gapless-slice-per-subscriber" },
  }, async () => {
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    const early = collect(session.events({ after: 0 }), 21);
    for (let index = 0; index < 4; index += 1) await session.prompt(`run ${index}`).outcome;
    expect(await early).toEqual(Array.from({ length: 21 }, (_, index) => index + 1));
    expect(await collect(session.events({ after: 10 }), 5)).toEqual([11, 12, 13, 14, 15]);
  });

  test("a follower that joins in the middle of a turn receives the text before it", async () => {
    const go = gate();
    const { belay, began } = await openTestBelay({
      talk: async (turn) => {
        turn.emit("one ");
        await go.passed;
        turn.emit("two");
        return undefined;
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("talk");
    await began("talk");
    let heard = "";
    for await (const event of run) {
      if (event.type === "delta") heard += event.text;
      if (heard === "one ") go.open();
    }
    expect(heard).toBe("one two");
  });

  test("G30: events removed by retention are announced as one gap", {
    meta: { id: "G30/trimmed-events-one-gap" },
  }, async () => {
    const store = lasting();
    const { belay } = await openTestBelay({}, { store });
    const session = await belay.createSession();
    for (let index = 0; index < 60; index += 1) await session.prompt(`run ${index}`).outcome;
    const { kept } = await store.trim(session.id, 200);
    expect(kept).toBeGreaterThan(1);
    for await (const event of session.events({ after: 0 })) {
      expect(event).toEqual({ type: "gap", from: 1, to: kept - 1 });
      break;
    }
  });
});

describe("closing", () => {
  test("parks a live run, which the next start resumes with its finished calls", async () => {
    const store = lasting();
    let executed = 0;
    const act = async (turn: Parameters<typeof waits>[0]): Promise<string> => {
      const once = await turn.call("once", { n: 1 }, () => {
        executed += 1;
        return executed;
      });
      turn.emit("so far. ");
      if (turn.prompt.text === "work" && lives === 1) await untilAborted(turn.signal);
      return `the call said ${once.kind === "completed" ? once.value : once.kind}`;
    };
    let lives = 1;
    const first = await openTestBelay({ work: act }, { store });
    const session = await first.belay.createSession();
    const run = session.prompt("work");
    const queued = session.prompt("queued");
    for await (const event of run) if (event.type === "delta") break;
    expect(await first.belay.close()).toEqual({ unfinished: [] });
    await expect(run.outcome).rejects.toMatchObject({ code: "shutting_down" });
    await expect(session.prompt("more").accepted).rejects.toMatchObject({ code: "shutting_down" });

    lives = 2;
    const second = await openTestBelay({ work: act }, { store });
    const again = await second.belay.run(run.id);
    expect(await again.outcome).toEqual({ kind: "completed" });
    expect(executed).toBe(1);
    expect(await (await second.belay.run(queued.id)).outcome).toEqual({ kind: "completed" });
    const messages = await second.belay.session(session.id).transcript();
    expect(messages).toContainEqual(expect.objectContaining({ role: "assistant", text: "so far. " }));
    expect(messages.at(-1)).toMatchObject({ role: "assistant", text: "done", finish: { kind: "end" } });
  });

  test("with `cancel` ends live and queued runs, with the reason", async () => {
    const { belay, began } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    const [live, queued] = [session.prompt("live"), session.prompt("queued")];
    await began("live");
    const outcomes = Promise.all([live.outcome, queued.outcome]);
    expect(await belay.close({ mode: "cancel" })).toEqual({ unfinished: [] });
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ kind: "cancelled", reason: { kind: "shutdown" } });
  });

  test("G15: the outcome of a run can be read after close, even for the first time", async () => {
    const { belay, began } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    const done = session.prompt("done");
    for await (const _ of done);
    const live = session.prompt("live");
    const queued = session.prompt("queued");
    await began("live");
    await belay.close({ mode: "cancel" });
    const shutdown = { kind: "cancelled", reason: { kind: "shutdown" } };
    expect([await done.outcome, await live.outcome, await queued.outcome]).toEqual([
      { kind: "completed" },
      shutdown,
      shutdown,
    ]);
    await expect(done.text()).rejects.toMatchObject({
      code: "shutting_down",
      message: `Belay has shut down; the outcome of ${done.id} is available after the next start.`,
    });
  });

  test("G28: requests after close are refused as shutting down, not as store trouble", async () => {
    const { belay } = await openTestBelay({});
    const session = await belay.createSession();
    await belay.close();
    const asked = [belay.sessions(), session.queue.list(), session.explain(), belay.createSession(), belay.ids("ses_")];
    for (const one of asked) await expect(one).rejects.toMatchObject({ code: "shutting_down" });
  });

  test("G8, G16: a follower of a run that a shutdown cancels receives its end", async () => {
    const { belay, began } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    const run = session.prompt("live");
    const heard = Array.fromAsync(run);
    const all = Array.fromAsync(session.events());
    await began("live");
    await belay.close({ mode: "cancel" });
    expect((await heard).at(-1)).toMatchObject({ type: "run.settled", outcome: { kind: "cancelled" } });
    expect((await all).at(-1)).toMatchObject({ type: "run.settled" });
  });

  test("G33: an agent that ignores its signal cannot delay a shutdown, in either mode", async () => {
    for (const mode of ["park", "cancel"] as const) {
      const { belay, began } = await openTestBelay({ live: deaf });
      const session = await belay.createSession();
      session.prompt("live");
      await began("live");
      expect(await belay.close({ mode })).toEqual({ unfinished: [] });
    }
  });

  test("G33: takes at most its limit, and reports what had not ended", {
    meta: { id: "G33/close-limit-names-unfinished" },
  }, async () => {
    const { belay, began } = await openTestBelay({ live: deaf }, { graceMs: 60_000 });
    const session = await belay.createSession();
    session.prompt("live");
    await began("live");
    expect(await belay.close({ mode: "cancel", limitMs: 10 })).toEqual({ unfinished: [session.id] });
  });
});

test("G33: waits with a limit end when Belay closes, and leave no timer that keeps the program alive", async () => {
  const { belay, clock } = await stage({ live: deaf });
  const session = await belay.createSession();
  const run = session.prompt("live");
  await run.accepted;
  const child = await session.processes.start("sleep 1000");
  const waitMs = 600_000;
  const waits = [
    child.wait({ limitMs: waitMs }),
    session.cancel({ waitMs, background: "keep" }),
    run.cancel({ waitMs }),
    belay.cancel(child.id, { waitMs }),
    belay.cancelAll({ waitMs }),
  ];
  const ends = Promise.allSettled(waits);
  await settled();
  expect(clock.pending.filter(({ inMs }) => inMs === waitMs)).not.toEqual([]);
  const closed = belay.close({ limitMs: 100 });
  for (let passed = 0; passed < 50; passed += 1) await clock.advance(100);
  expect(await closed).toEqual({ unfinished: expect.any(Array) });
  expect(await ends).toHaveLength(waits.length);
  expect(clock.pending.filter(({ idle }) => idle !== true)).toEqual([]);
});

describe("crash", () => {
  test("G17: the text of a live turn is in the log within 250 ms", async () => {
    const clock = manualClock();
    const { belay, began } = await openTestBelay(
      {
        talk: (turn) => {
          turn.emit("before the crash");
          return untilAborted(turn.signal);
        },
      },
      { clock },
    );
    const session = await belay.createSession();
    session.prompt("talk");
    await began("talk");
    expect((await session.transcript()).at(-1)).toMatchObject({ text: "", finish: { kind: "live" } });
    await clock.advance(249);
    expect((await session.transcript()).at(-1)).toMatchObject({ text: "before the crash", finish: { kind: "live" } });
  });

  test("G25: an interrupted run resumes; no finished call is repeated, and an unfinished one is reported as lost", {
    meta: { id: "G25/crashed-run-continues" },
  }, async () => {
    let skew = 0;
    const clock = { ...systemClock, elapsed: () => systemClock.elapsed() + skew };
    const store = new MemoryStore({ clock });
    const counts = { finished: 0, unknown: 0, idempotent: 0 };
    const reached = gate();
    let lives = 1;
    const act = async (turn: Parameters<typeof waits>[0]): Promise<string> => {
      const forever = (): Promise<never> => new Promise(() => {});
      const repeatable = (): Promise<never> | string => {
        counts.idempotent += 1;
        reached.open();
        return lives === 1 ? forever() : "again";
      };
      const finished = await turn.call("finished", 1, () => ++counts.finished);
      const both = await Promise.all([
        turn.call("unknown", 2, () => {
          counts.unknown += 1;
          return lives === 1 ? forever() : "again";
        }),
        turn.call("idempotent", 3, repeatable, { idempotent: true }),
      ]);
      return [finished, ...both].map((result) => result.kind).join();
    };
    const first = await openTestBelay({ work: act }, { store });
    const session = await first.belay.createSession();
    const run = session.prompt("work");
    await reached.passed;
    // A crash: nothing is closed, the first Belay does nothing more, and its leases expire.
    skew = LEASE_TTL_MS + 1;
    lives = 2;
    const second = await openTestBelay({ work: act }, { store });
    const again = await second.belay.run(run.id);
    expect(await again.outcome).toEqual({ kind: "completed" });
    expect(await again.text()).toContain("completed,lost,completed");
    expect(counts).toEqual({ finished: 1, unknown: 1, idempotent: 2 });
  });
});

async function collect(
  events: AsyncIterable<{ readonly seq?: number; readonly type: string }>,
  count: number,
): Promise<number[]> {
  const seqs: number[] = [];
  for await (const event of events) {
    if (event.seq !== undefined) seqs.push(event.seq);
    if (seqs.length === count) break;
  }
  return seqs;
}
