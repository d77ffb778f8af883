import { describe, expect, test } from "vitest";
import { accept, running, settleTurn, start } from "../../../test/fixtures/commands.ts";
import type { CancelReason } from "../../core/model/cancel.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { RunId } from "../../core/model/ids.ts";
import { MemoryStore } from "../../store/memory/memory-store.ts";
import { faultyStore } from "../../testing/faulty-store.ts";
import { Gate } from "../../testing/gate.ts";
import { type Given, given } from "../../testing/given.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { sequentialIds } from "../../testing/sequential-ids.ts";
import type { Cancels } from "../cancels.ts";
import { Engine } from "../engine.ts";
import { SessionState } from "../log/session-state.ts";
import { RunLimits } from "./run-limits.ts";

test("G34: the limit of a run that was unloaded does not end it when it is recovered", async () => {
  const clock = manualClock();
  const store = faultyStore(new MemoryStore({ clock }));
  const engine = new Engine({
    ...{ store, clock, ids: sequentialIds(), agent: () => new Promise<undefined>(() => {}), hooks: {} },
    ...{ notify: () => {}, graceMs: 1_000, liveRunsMax: 1, resume: "resume", tap: undefined, spawner: undefined },
    runLimitMs: 7_500,
  });
  await engine.start();
  const { id } = await engine.create(undefined, {});
  await engine.prompt(id, { prompt: { text: "long" }, delivery: "queue", key: undefined }).accepted;
  // The store is silent for so long that the worker gives up its lease; then it recovers.
  const well = new Gate();
  for (const verb of ["renew", "claim", "load"] as const) store.always(verb, { kind: "delay", until: well });
  await clock.advance(8_000);
  store.heal();
  well.open();
  await settled();
  await clock.advance(3_000);
  const events = (await store.read(id, { after: 0, limit: 100 })).events.map(({ type }) => type);
  expect(events).toContain("run.recovered");
  expect(events).not.toContain("run.cancel_requested");
  await clock.advance(9_500);
  expect(engine.lanes.peek(id)?.durable.live).toBeUndefined();
});

describe("the time limit of a run", () => {
  /** A lane that this worker drives, and the runs that are cancelled at their limit. */
  function timed(limitMs: number | undefined) {
    const clock = manualClock();
    const cancelled: (readonly [RunId, CancelReason])[] = [];
    const run = async (runId: RunId, reason: CancelReason): Promise<never> => {
      cancelled.push([runId, reason]);
      throw new Error("The store is in trouble.");
    };
    const limits = new RunLimits({ clock, limitMs, cancel: { run } as Partial<Cancels> as Cancels });
    const lane = new SessionState("ses_1");
    lane.epoch = 1;
    let known = 0;
    /** Records the events since the last call. */
    const recorded = (past: Given): void => {
      lane.durable = past.lane;
      const news = past.events
        .slice(known)
        .map((event, index): Recorded => ({ ...event, seq: known + index + 1, at: 0 }));
      known = past.events.length;
      limits.recorded(lane, news);
    };
    return { clock, cancelled, limits, lane, recorded };
  }
  const live = given(...running("run_a"));
  const timeout = { kind: "timeout", limitMs: 1_000 };

  test("G34: begins when it starts, not while it is queued, and ends it whatever it does", async () => {
    const { clock, cancelled, recorded } = timed(1_000);
    recorded(given(accept("run_a")));
    await clock.advance(5_000);
    recorded(given(accept("run_a"), start));
    await clock.advance(600);
    recorded(given(accept("run_a"), start, accept("run_b")));
    await clock.advance(399);
    expect(cancelled).toEqual([]);
    await clock.advance(1);
    expect(cancelled).toEqual([["run_a", timeout]]);
    expect(clock.pending).toEqual([]);
  });

  test("G34: ends with the run, and the next one has its own", async () => {
    const { clock, cancelled, recorded } = timed(1_000);
    recorded(live);
    await clock.advance(900);
    const ended = live.and(settleTurn("turn_a.1"));
    recorded(ended);
    expect(clock.pending).toEqual([]);
    recorded(ended.and(...running("run_b")));
    await clock.advance(999);
    expect(cancelled).toEqual([]);
    await clock.advance(1);
    expect(cancelled).toEqual([["run_b", timeout]]);
  });

  test("G34: begins anew in a worker that recovers it", async () => {
    const { clock, cancelled, lane, limits } = timed(1_000);
    const recovered = (attempt: number): Recorded => ({
      type: "run.recovered",
      runId: "run_a",
      attempt,
      seq: 9,
      at: 0,
    });
    lane.durable = live.lane;
    limits.recorded(lane, [recovered(2)]);
    await clock.advance(999);
    limits.recorded(lane, [recovered(3)]);
    await clock.advance(999);
    expect(cancelled).toEqual([]);
    await clock.advance(1);
    expect(cancelled).toEqual([["run_a", timeout]]);
  });

  test("has no timer without a limit, nor in a worker that does not drive it", () => {
    const unlimited = timed(undefined);
    unlimited.recorded(live);
    expect(unlimited.clock.pending).toEqual([]);
    const other = timed(1_000);
    other.lane.epoch = undefined;
    other.recorded(live);
    expect(other.clock.pending).toEqual([]);
  });

  test("is cancelled once the session is unloaded, or the engine is closed", () => {
    const left = timed(1_000);
    left.recorded(live);
    left.limits.leave("ses_2");
    expect(left.clock.pending).toHaveLength(1);
    left.limits.leave("ses_1");
    expect(left.clock.pending).toEqual([]);
    const closed = timed(1_000);
    closed.recorded(live);
    closed.limits.close();
    expect(closed.clock.pending).toEqual([]);
  });
});
