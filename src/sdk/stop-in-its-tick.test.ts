// A stop is decided in the tick in which it is called: no earlier request can delay it, not even the store.
import { describe, expect, test } from "vitest";
import { logOf, openTestBelay, untilAborted, waits } from "../../test/fixtures/belay.ts";
import { STOP_UNRECORDED } from "../core/errors.ts";
import { LEASE_TTL_MS, LOAD_RETRY_LAST_MS, RETRY_LAST_MS, STORE_WAIT_MS } from "../core/limits.ts";
import type { Turn } from "../ports/agent.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { faultyStore } from "../testing/faulty-store.ts";
import { Gate } from "../testing/gate.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import { scriptedSpawner } from "../testing/scripted-spawner.ts";
import type { Session } from "./session.ts";

async function opened(
  acts: Parameters<typeof openTestBelay>[0] = {},
  options: Parameters<typeof openTestBelay>[1] = {},
) {
  const clock = manualClock();
  const store = faultyStore(new MemoryStore({ clock }));
  const spawner = scriptedSpawner({ clock });
  const house = await openTestBelay(acts, { clock, store, processes: { spawner }, graceMs: 1_000, ...options });
  const session = await house.belay.createSession();
  return { ...house, clock, store, spawner, session };
}

async function rounds(count = 8): Promise<void> {
  for (let round = 0; round < count; round += 1) await settled();
}

const typesOf = async (session: Session): Promise<readonly string[]> => (await logOf(session)).map(({ type }) => type);

const cancelled = { kind: "cancelled", reason: { kind: "user" } } as const;

describe("G10: a prompt and its cancel in one tick", () => {
  test.each([{}, { key: "k" }])("are a withdrawn run, in one commit (options %j)", async (options) => {
    const { session, store, begun } = await opened();
    const commits = store.calls("append");
    const run = session.prompt("a", options);
    expect(await run.cancel()).toEqual({ kind: "withdrawn" });
    expect(store.calls("append")).toBe(commits + 1);
    expect(await run.outcome).toEqual(cancelled);
    expect(await typesOf(session)).toEqual(["session.created", "run.accepted", "run.settled"]);
    expect(begun).toEqual([]);
  });

  test("are a withdrawn run in its own session, too", async () => {
    const { belay, begun } = await opened();
    const run = belay.prompt("a", { key: "k" });
    expect(await run.cancel()).toEqual({ kind: "withdrawn" });
    expect(await run.outcome).toEqual(cancelled);
    expect(begun).toEqual([]);
  });

  test("do not affect prompts between them: steers, interrupts and the next prompt", async () => {
    for (const delivery of ["queue", "steer", "interrupt"] as const) {
      const { session, begun } = await opened();
      const first = session.prompt("a");
      const second = session.prompt("b", { delivery });
      expect(await first.cancel()).toEqual({ kind: "withdrawn" });
      expect(await second.accepted).toMatchObject({ joined: "queue" });
      expect(await second.outcome).toEqual({ kind: "completed" });
      expect(begun).toEqual(["b"]);
    }
  });

  test("are a stopping run once its start is being written", async () => {
    const { session, begun } = await opened();
    const run = session.prompt("a");
    await Promise.resolve();
    expect(await run.cancel()).toMatchObject({ kind: "stopping", first: true });
    expect(await run.outcome).toEqual(cancelled);
    expect(begun).toEqual([]);
  });

  test("under a repeated key undo no start", async () => {
    const { session, begun } = await opened();
    const first = session.prompt("a");
    await session.cancel({ key: "c" });
    await first.outcome;
    const next = session.prompt("b");
    expect((await session.cancel({ key: "c" })).runs.map(({ runId }) => runId)).toEqual([first.id]);
    expect(await next.outcome).toEqual({ kind: "completed" });
    expect(begun).toEqual(["b"]);
  });
});

describe("G7, G11: prompts with an idempotency key", () => {
  test("a prompt, a keyed prompt and session.cancel() in one tick: no agent starts", async () => {
    const { session, begun } = await opened({ a: waits, b: waits });
    const runs = [session.prompt("a"), session.prompt("b", { key: "k" })];
    const receipt = await session.cancel();
    expect(receipt.runs.map(({ runId }) => runId)).toEqual(runs.map(({ id }) => id));
    expect(await Promise.all(runs.map(({ outcome }) => outcome))).toEqual([cancelled, cancelled]);
    expect(begun).toEqual([]);
  });

  test("prompt k, cancel of k and prompt k again in one tick are one run, which is withdrawn", async () => {
    const { session, began, begun } = await opened({ live: waits });
    const live = session.prompt("live");
    await began("live");
    const first = session.prompt("a", { key: "k" });
    const stopped = session.cancelPrompt("k");
    const again = session.prompt("a", { key: "k" });
    expect(await stopped).toEqual({ kind: "withdrawn", runId: first.id });
    expect(await again.accepted).toMatchObject({ runId: first.id, repeated: true, seq: (await first.accepted).seq });
    expect(await again.outcome).toEqual(cancelled);
    await live.cancel();
    await live.outcome;
    expect(begun).toEqual(["live"]);
  });

  test("the handle of a repeated prompt stops the first run, in the tick of the prompt", async () => {
    const { session, began } = await opened({ a: waits });
    const first = session.prompt("a", { key: "k" });
    await began("a");
    const again = session.prompt("a", { key: "k" });
    expect(await again.cancel()).toMatchObject({ kind: "stopping", first: true });
    expect(await first.outcome).toEqual(cancelled);
    expect(again.id).toBe(first.id);
  });

  test("the handle of a repeated prompt that only the store knows reports how its run ended", async () => {
    const { session } = await opened();
    const first = session.prompt("a", { key: "k" });
    await first.outcome;
    const [again, other] = [session.prompt("a", { key: "k" }), session.prompt("else", { key: "k" })];
    const receipts = [again.cancel(), other.cancel()];
    expect(await again.accepted).toMatchObject({ runId: first.id, repeated: true });
    await expect(other.accepted).rejects.toMatchObject({ code: "conflict" });
    expect(await Promise.all(receipts)).toEqual([
      { kind: "settled", outcome: { kind: "completed" } },
      { kind: "unknown" },
    ]);
  });

  test("a stop after a repeated prompt keeps its coverage when it is decided again", async () => {
    const { session, began, begun } = await opened({ a: waits });
    await session.prompt("done", { key: "k" }).outcome;
    const live = session.prompt("a");
    await began("a");
    const again = session.prompt("done", { key: "k" });
    const queued = session.prompt("b");
    const stopped = session.cancel();
    const later = session.prompt("c");
    expect((await stopped).runs.map(({ runId }) => runId)).toEqual([live.id, queued.id]);
    expect(await again.outcome).toEqual({ kind: "completed" });
    expect([await live.outcome, await queued.outcome, await later.outcome]).toEqual([
      ...[cancelled, cancelled],
      { kind: "completed" },
    ]);
    expect(begun).toEqual(["done", "a", "c"]);
  });

  test("G2: a repeated keyed prompt that would now be refused returns its run, and delays nothing", async () => {
    const { session, began, store } = await opened({ a: waits });
    const first = session.prompt("done", { key: "k" });
    await first.outcome;
    const live = session.prompt("a");
    await began("a");
    const lookedUp = new Gate();
    store.plan("run", 1, { kind: "delay", until: lookedUp });
    const again = session.prompt("done", { key: "k", delivery: "reject" });
    const fresh = session.prompt("busy", { key: "new", delivery: "reject" });
    expect(await live.cancel()).toMatchObject({ kind: "stopping" });
    expect(await live.outcome).toEqual(cancelled);
    lookedUp.open();
    // Only its key decides whether it repeats an earlier one.
    await expect(again.accepted).rejects.toMatchObject({ code: "conflict" });
    await expect(fresh.accepted).rejects.toMatchObject({ code: "busy" });
    const same = session.prompt("done", { key: "k" });
    expect(await same.accepted).toMatchObject({ runId: first.id, repeated: true });
  });

  test("session.close() after a keyed prompt signals at once, although the store hangs", async () => {
    let signal: AbortSignal | undefined;
    const acts = {
      a: (turn: Turn) => {
        signal = turn.signal;
        return untilAborted(turn.signal);
      },
    };
    const { session, began, store } = await opened(acts);
    session.prompt("a").outcome.catch(() => {});
    await began("a");
    store.trouble = { kind: "silent", applied: false };
    session.prompt("b", { key: "k" }).accepted.catch(() => {});
    session.close().catch(() => {});
    expect(signal?.aborted).toBe(true);
  });

  test("a stop that is refused as a conflict has stopped nothing", async () => {
    const signals: Record<string, AbortSignal> = {};
    const ids: string[] = [];
    const acts = {
      a: async (turn: Turn) => {
        const call = (name: string) =>
          turn.call(name, null, ({ signal, callId }) => {
            signals[name] = signal;
            ids.push(callId);
            return untilAborted(signal);
          });
        await Promise.all([call("one"), call("two")]);
        return undefined;
      },
    };
    const { belay, session } = await opened(acts);
    const run = session.prompt("a");
    await rounds();
    session.prompt("b", { key: "k" }).accepted.catch(() => {});
    const [one, two] = ids.map((id) => belay.cancel(id, { key: "stop", waitMs: 0 }));
    expect(await one).toMatchObject({ kind: "stopping" });
    await expect(two).rejects.toMatchObject({ code: "conflict" });
    expect([signals.one?.aborted, signals.two?.aborted]).toEqual([true, false]);
    await run.cancel();
  });
});

describe("G7: processes of a session", () => {
  test.each(["session.cancel()", "belay.cancelAll()", "session.close()"])(
    "%s covers a process that is starting in the same tick, although the spawner is not open yet",
    async (how) => {
      const { belay, session, spawner } = await opened();
      const starting = session.processes.start("sleep 60");
      const receipt =
        how === "belay.cancelAll()"
          ? (await belay.cancelAll())[0]?.receipt
          : await (how === "session.cancel()" ? session.cancel() : session.close());
      expect(receipt).toMatchObject({ kind: "stopping", processes: [{ receipt: { kind: "stopping", first: true } }] });
      const child = await starting;
      expect(await child.wait()).toMatchObject({ outcome: { kind: "cancelled" } });
      expect(spawner.children).toEqual([]);
      expect((await session.explain()).processes).toEqual([]);
    },
  );
});

describe("G28: a store that refuses promptly", () => {
  test.each(["store_full", "store_locked", "store_corrupt"] as const)(
    "%s with a queue behind the live run: appends are throttled, and the queue continues afterwards",
    async (code) => {
      const over = new Gate();
      const { session, began, store, clock, notices } = await opened({ a: () => over.opened.then(() => "done") });
      const [live, next] = [session.prompt("a"), session.prompt("b")];
      await began("a");
      store.trouble = { kind: "refusing", code };
      over.open();
      await clock.advance(10_000);
      // Pauses of 50 ms to 2 s: about twelve attempts in ten seconds.
      expect(store.troubled("append")).toBeGreaterThan(4);
      expect(store.troubled("append")).toBeLessThan(16);
      expect(notices.length).toBeLessThan(16);
      await expect(session.prompt("c").accepted).rejects.toMatchObject({ code });
      store.heal();
      await clock.advance(RETRY_LAST_MS);
      expect([await live.outcome, await next.outcome]).toEqual([{ kind: "completed" }, { kind: "completed" }]);
    },
  );

  test("a keyed prompt and stops of one session are all answered, each with the right code", async () => {
    const { belay, session, began, store } = await opened({ a: waits });
    const run = session.prompt("a");
    await began("a");
    store.trouble = { kind: "refusing", code: "store_locked" };
    const asked = [
      run.cancel(),
      session.prompt("b", { key: "k" }).accepted,
      session.cancelPrompt("k"),
      session.cancel(),
      belay.cancelAll(),
      session.close(),
    ];
    const answers = await Promise.allSettled(asked);
    expect(answers.map((one) => (one.status === "rejected" ? one.reason.code : "answered"))).toEqual(
      asked.map(() => "store_locked"),
    );
  });
});

describe("G28, G12: a store that never answers", () => {
  test("stops, prompts, explain and the live list return within their limit, and the work is stopped", async () => {
    const stopped: string[] = [];
    const acts = {
      a: (turn: Turn) =>
        untilAborted(turn.signal).catch((error: unknown) => {
          stopped.push("a");
          throw error;
        }),
    };
    const { belay, session, began, store, clock } = await opened(acts);
    const run = session.prompt("a");
    await began("a");
    store.trouble = { kind: "silent", applied: false };
    const sent = session.prompt("sent", { key: "k" }).accepted;
    await rounds(2);
    const unsent = session.prompt("unsent").accepted;
    const asked = {
      ...{ run: run.cancel(), session: session.cancel(), all: belay.cancelAll(), close: session.close() },
      ...{ explain: session.explain(), live: belay.live(), sent, unsent },
    };
    const answers = Promise.all(
      Object.entries(asked).map(async ([name, answer]): Promise<readonly [string, unknown]> => {
        const { code, hint } = await (answer as Promise<unknown>).then(
          () => ({ code: "answered", hint: undefined }),
          (error) => error,
        );
        return [name, hint === STOP_UNRECORDED ? "carried out" : code];
      }),
    );
    await rounds(2);
    expect(stopped).toEqual(["a"]);
    await clock.advance(STORE_WAIT_MS);
    expect(Object.fromEntries(await answers)).toEqual({
      ...{ run: "carried out", session: "carried out", all: "carried out", close: "carried out" },
      ...{ explain: "answered", live: "answered", sent: "unavailable", unsent: "unavailable" },
    });
  });

  test("cancel({ waitMs }) returns within waitMs", async () => {
    const { session, began, store, clock } = await opened({ a: waits });
    const run = session.prompt("a");
    await began("a");
    store.trouble = { kind: "silent", applied: false };
    const receipt = run.cancel({ waitMs: 700 });
    const covered = session.cancel({ waitMs: 700 });
    void Promise.allSettled([receipt, covered]);
    await clock.advance(700);
    for (const one of [receipt, covered]) {
      await expect(one).rejects.toMatchObject({ code: "unavailable", hint: STOP_UNRECORDED });
    }
  });

  test("a stop without a target on this worker is not reported as carried out", async () => {
    const { belay, store, clock } = await opened();
    store.trouble = { kind: "silent", applied: false };
    const stops = [
      belay.cancel("run_elsewhere", { waitMs: 700 }),
      belay.cancel("call_elsewhere.1", { waitMs: 700 }),
      belay.cancel("proc_elsewhere.1", { waitMs: 700 }),
      belay.session("ses_elsewhere").cancel({ waitMs: 700 }),
    ];
    void Promise.allSettled(stops);
    await clock.advance(700);
    for (const stop of stops) {
      await expect(stop).rejects.toMatchObject({
        code: "unavailable",
        message: "The store has not answered within 700 ms.",
      });
    }
  });

  test.each([
    ["before the lease has run out", STORE_WAIT_MS],
    ["after it has given up its sessions", 3 * LEASE_TTL_MS],
  ])("when it responds again %s, the stop is recorded and the work does not start again", async (_, silentMs) => {
    const { belay, session, began, begun, store, clock } = await opened({ a: waits });
    const run = session.prompt("a");
    await began("a");
    run.outcome.catch(() => {});
    store.trouble = { kind: "silent", applied: false };
    run.cancel().catch(() => {});
    await clock.advance(silentMs);
    store.heal();
    await clock.advance(LEASE_TTL_MS + LOAD_RETRY_LAST_MS);
    expect(await (await belay.run(run.id)).outcome).toEqual(cancelled);
    expect(await session.prompt("b").outcome).toEqual({ kind: "completed" });
    expect(begun).toEqual(["a", "b"]);
  });
});

test("G33: a session that fails to load is retried by one timer, however often it is requested", async () => {
  const clock = manualClock();
  const disk = new MemoryStore({ clock });
  const first = await openTestBelay({ a: waits }, { clock, store: disk });
  const session = await first.belay.createSession();
  session.prompt("a");
  await first.began("a");
  // A second Belay on the same data, which cannot read this session.
  const store = faultyStore(disk);
  store.always("load", { kind: "fail", code: "store_corrupt" });
  const second = await openTestBelay({}, { clock, store });
  await clock.advance(20_000);
  for (let asked = 0; asked < 100; asked += 1) {
    await expect(second.belay.session(session.id).prompt("b").accepted).rejects.toMatchObject({
      code: "store_corrupt",
    });
  }
  const before = store.calls("load");
  await clock.advance(60_000);
  expect(store.calls("load") - before).toBeLessThan(60);
});
