// Stopping much at once: the guarantees of one stop hold for each of a thousand.
import { describe, expect, test } from "vitest";
import { openTestBelay, untilAborted } from "../../test/fixtures/belay.ts";
import { neighbour, stage } from "../../test/fixtures/engine-processes.ts";
import { ABORTS_AT_ONCE_MAX, CALL_WAIT_MS } from "../core/limits.ts";
import type { CallId } from "../core/model/ids.ts";
import type { Turn } from "../ports/agent.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import type { Belay } from "./belay.ts";

const MORE = 20;
const RUNS = ABORTS_AT_ONCE_MAX + MORE;

/** More runs than have their signals fired at once; each turn waits for its stop. */
async function busy(act: (turn: Turn) => Promise<string> = ({ signal }) => untilAborted(signal)) {
  const clock = manualClock();
  const turns: Turn[] = [];
  const wait = async (turn: Turn): Promise<string> => {
    turns.push(turn);
    return act(turn);
  };
  const { belay } = await openTestBelay({ wait }, { clock, graceMs: 1_500 });
  const runs = Array.from({ length: RUNS }, () => belay.prompt("wait"));
  const aborted: Turn[] = [];
  while (turns.length < RUNS) await settled();
  for (const turn of turns) turn.signal.addEventListener("abort", () => aborted.push(turn));
  return { belay, clock, runs, turns, aborted };
}

describe("a bulk stop", () => {
  test("G12: returns its receipts before the last signals have fired", async () => {
    const { belay, clock, runs, aborted } = await busy();
    const covered = await belay.cancelAll();
    expect(covered.map(({ receipt }) => receipt.kind)).toEqual(Array.from({ length: RUNS }, () => "stopping"));
    expect(aborted.length).toBe(ABORTS_AT_ONCE_MAX);
    await clock.advance(1);
    expect(aborted.length).toBe(RUNS);
    const outcomes = await Promise.all(runs.map((run) => run.outcome));
    expect(outcomes).toEqual(Array.from({ length: RUNS }, () => ({ kind: "cancelled", reason: { kind: "user" } })));
    await belay.close();
  });

  test("G11: starts nothing in a turn whose signal has not fired yet", async () => {
    const { belay, clock, turns, aborted } = await busy();
    const covered = belay.cancelAll();
    const unfired = turns.filter((turn) => !aborted.includes(turn));
    expect(unfired.length).toBe(MORE);
    const begun: Turn[] = [];
    const calls = unfired.map((turn) =>
      turn.call("work", {}, () => void begun.push(turn)).catch((error: unknown) => error),
    );
    await covered;
    await clock.advance(1);
    await Promise.all(calls);
    expect(begun).toEqual([]);
    await belay.close();
  });

  test("G12: counts the grace period of work from its stop, not from its signal", async () => {
    const { belay, clock, runs } = await busy(() => new Promise(() => {}));
    void belay.cancelAll();
    await clock.advance(1_600);
    const outcomes = await Promise.all(runs.map((run) => run.outcome));
    expect(outcomes.every((outcome) => outcome.kind === "cancelled" && outcome.abandoned !== undefined)).toBe(true);
    await belay.close({ mode: "cancel" });
  });

  test("close() fires the pending signals", async () => {
    const { belay, clock, aborted } = await busy();
    void belay.cancelAll();
    const closed = belay.close({ mode: "cancel", limitMs: 1 });
    await clock.advance(1);
    await closed;
    expect(aborted.length).toBe(RUNS);
  });
});

describe("stopping many calls of one run, one by one", () => {
  const CALLS = 50;

  /** Calls that end when they are stopped, or only when `end` is called. */
  async function calling(how: "stops" | "deaf") {
    const ids: CallId[] = [];
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const work = async (turn: Turn): Promise<string> => {
      await Promise.all(
        Array.from({ length: CALLS }, () =>
          turn.call("wait", {}, (call) => {
            ids.push(call.callId);
            return how === "deaf" ? ended : untilAborted(call.signal);
          }),
        ),
      );
      return untilAborted(turn.signal);
    };
    const here = await stage({ work });
    const run = here.belay.prompt("work");
    while (ids.length < CALLS) await settled();
    return { ...here, run, ids, end };
  }

  const cancelEach = (belay: Belay, ids: readonly CallId[], waitMs?: number) =>
    Promise.all(ids.map((id) => belay.cancel(id, waitMs === undefined ? {} : { waitMs })));

  test("G12: reads no log: the end of each call resolves its own waiter", async () => {
    const { belay, store, ids } = await calling("stops");
    const before = store.calls("read");
    const receipts = await cancelEach(belay, ids);
    const ended = { kind: "settled", outcome: { kind: "cancelled", reason: { kind: "user" } } };
    expect(receipts).toEqual(ids.map(() => expect.objectContaining({ kind: "stopping", ended })));
    expect(store.calls("read")).toBe(before);
    await belay.close({ mode: "cancel" });
  });

  test("a waiter that reaches its limit reports that", async () => {
    const { belay, clock, ids } = await calling("deaf");
    const receipts = cancelEach(belay, ids, 10);
    await settled();
    await clock.advance(10);
    expect((await receipts).map(({ ended }) => ended)).toEqual(ids.map(() => ({ kind: "limit", waitMs: 10 })));
    await clock.advance(CALL_WAIT_MS);
    await belay.close({ mode: "cancel" });
  });

  test("G27: from another worker, one follower of the log serves all waiters", async () => {
    const here = await calling("deaf");
    const there = await neighbour(here);
    let [now, most] = [0, 0];
    const { grown } = here.store;
    here.store.grown = (session, after, signal) => {
      now += 1;
      most = Math.max(most, now);
      return grown(session, after, signal).finally(() => {
        now -= 1;
      });
    };
    const receipts = cancelEach(there, here.ids);
    await settled();
    here.end();
    expect((await receipts).map(({ ended }) => ended?.kind)).toEqual(here.ids.map(() => "settled"));
    await settled();
    expect([most, now]).toEqual([1, 0]);
    await here.belay.close({ mode: "cancel" });
  });
});
