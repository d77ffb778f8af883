import { describe, expect, test } from "vitest";
import { accept, completed, running, settleTurn } from "../../../test/fixtures/commands.ts";
import { ControlError } from "../../core/errors.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { RunId } from "../../core/model/ids.ts";
import type { Lane } from "../../core/model/lane.ts";
import type { RunRow } from "../../core/model/rows.ts";
import type { Turn } from "../../ports/agent.ts";
import type { Store } from "../../ports/store.ts";
import { MemoryStore } from "../../store/memory/memory-store.ts";
import { type FaultyStore, faultyStore } from "../../testing/faulty-store.ts";
import { Gate } from "../../testing/gate.ts";
import { given } from "../../testing/given.ts";
import { type ManualClock, manualClock, settled } from "../../testing/manual-clock.ts";
import { sequentialIds } from "../../testing/sequential-ids.ts";
import { Engine } from "../engine.ts";
import type { SessionRegistry } from "../log/session-registry.ts";
import { awaitedOutcome } from "./end-waiter.ts";
import { Waiters } from "./waiters.ts";

interface House {
  readonly engine: Engine;
  readonly store: FaultyStore;
  readonly clock: ManualClock;
  readonly runId: RunId;
  readonly turn: () => Turn | undefined;
}

/** A run that is live here although its acceptance was never answered: the log was read, and has it. */
async function caughtUp(): Promise<House> {
  const clock = manualClock();
  const store = faultyStore(new MemoryStore({ clock }));
  let turn: Turn | undefined;
  const agent = (begun: Turn): Promise<undefined> => {
    turn = begun;
    return new Promise(() => {});
  };
  const engine = new Engine({
    ...{ store, clock, ids: sequentialIds(), agent, hooks: {}, notify: () => {}, graceMs: 1_000 },
    ...{ liveRunsMax: 1, resume: "resume", runLimitMs: undefined, tap: undefined, spawner: undefined },
  });
  await engine.start();
  const { id } = await engine.create(undefined, {});
  store.plan("append", 1, { kind: "lose-answer" });
  const { runId, accepted } = engine.prompt(id, { prompt: { text: "long" }, delivery: "queue", key: undefined });
  await expect(accepted).rejects.toMatchObject({ code: "unavailable" });
  await clock.advance(100);
  return { engine, store, clock, runId, turn: () => turn };
}

test("G33: a caller that waits for a run while the store fails leaves nothing behind", async () => {
  const { engine, store } = await caughtUp();
  const before = engine.held;
  store.plan("run", 1, { kind: "fail", code: "unavailable" });
  await expect(engine.outcome("run_9")).rejects.toMatchObject({ code: "unavailable" });
  expect(engine.held).toBe(before);
});

test("G8: a waiting caller is rejected when its run is unloaded, even if that was never acknowledged", async () => {
  const { engine, store, clock, runId } = await caughtUp();
  let told: unknown;
  engine.outcome(runId).catch((error: unknown) => {
    told = error;
  });
  const well = new Gate();
  for (const verb of ["renew", "claim", "load"] as const) store.always(verb, { kind: "delay", until: well });
  await clock.advance(8_000);
  expect(told).toMatchObject({ code: "unavailable" });
  well.open();
  await settled();
});

test("G28: a cancel by id reaches a live run in the same tick, even if its acceptance was never answered", async () => {
  const { engine, store, runId, turn } = await caughtUp();
  store.always("run", { kind: "delay", until: new Gate() });
  expect(turn()?.signal.aborted).toBe(false);
  void engine.cancel.run(runId, { kind: "user" });
  expect(turn()?.signal.aborted).toBe(true);
});

describe("a caller that waits for a run", () => {
  const row = { session: "ses_1" } as Partial<RunRow> as RunRow;
  const settledAs = (runId: RunId): Recorded => ({ type: "run.settled", runId, outcome: completed, seq: 9, at: 0 });

  /** `rows`: the store's answers, one for each request. */
  function waiting(parts: {
    readonly home?: boolean;
    readonly rows?: readonly (RunRow | undefined | Promise<RunRow>)[];
    readonly lane?: Lane;
  }) {
    const { home = false, rows = [], lane } = parts;
    const waiters = new Waiters();
    const left = [...rows];
    const run = async (): Promise<RunRow | undefined> =>
      left.length === 0 ? expect.fail("Asked again.") : left.shift();
    let told: unknown = "not yet";
    awaitedOutcome("run_a", {
      waiters,
      store: { run } as Partial<Store> as Store,
      lanes: { sessionOf: () => (home ? "ses_1" : undefined) } as Partial<SessionRegistry> as SessionRegistry,
      loaded: async () => lane && { durable: lane },
      release: (runId) => new ControlError("unavailable", `${runId} was let go of.`),
    }).then(
      (outcome) => {
        told = outcome;
      },
      (error: unknown) => {
        told = error;
      },
    );
    return { waiters, told: () => told };
  }

  const ended = { ...row, outcome: completed };
  const done = given(...running("run_a"), settleTurn("turn_a.1"));

  test.each<readonly [what: string, parts: Parameters<typeof waiting>[0], outcome: unknown]>([
    ["that never was is told so", { rows: [undefined] }, undefined],
    ["that has ended is told how", { rows: [ended] }, completed],
    ["that has ended since is told how", { rows: [row, ended], lane: done.lane }, completed],
    [
      "that has ended before another is told how",
      { rows: [row, ended], lane: done.and(accept("run_b")).lane },
      completed,
    ],
    ["that ends elsewhere, with its session, is told how", { rows: [row, ended] }, completed],
  ])("%s, and nothing stays registered", async (_, parts, outcome) => {
    const { waiters, told } = waiting(parts);
    await settled();
    expect(told()).toEqual(outcome);
    expect(waiters.size).toBe(0);
  });

  test.each<readonly [what: string, parts: Parameters<typeof waiting>[0]]>([
    ["lives here", { home: true }],
    ["is live", { rows: [row], lane: given(...running("run_a")).lane }],
    ["is queued", { rows: [row], lane: given(accept("run_b"), accept("run_a")).lane }],
    [
      "waits to be taken in",
      { rows: [row], lane: given(...running("run_b"), accept("run_a", { delivery: "steer" })).lane },
    ],
    ["is in no state that is known here yet", { rows: [row, row], lane: done.lane }],
  ])("that %s gets the outcome when it has ended", async (_, parts) => {
    const { waiters, told } = waiting(parts);
    await settled();
    waiters.recorded([settledAs("run_b")]);
    await settled();
    expect(told()).toBe("not yet");
    waiters.recorded([settledAs("run_a")]);
    await settled();
    expect(told()).toEqual(completed);
    expect(waiters.size).toBe(0);
  });

  test("does not miss an end that is recorded while it is looked up", async () => {
    const slow = new Gate();
    const late = slow.opened.then(() => row);
    const { waiters, told } = waiting({ rows: [late], lane: given(...running("run_a")).lane });
    waiters.recorded([settledAs("run_a")]);
    slow.open();
    await settled();
    expect(told()).toEqual(completed);
  });

  test("is rejected if the run is unloaded during the lookup, with the store's error if that fails", async () => {
    const slow = new Gate();
    const late = slow.opened.then(() => row);
    const live = waiting({ rows: [late], lane: given(...running("run_a")).lane });
    const failed = waiting({ rows: [slow.opened.then(() => Promise.reject(new Error("The store is in trouble.")))] });
    for (const { waiters } of [live, failed]) waiters.leave(["run_a"]);
    await settled();
    slow.open();
    await settled();
    expect(live.told()).toMatchObject({ code: "unavailable", message: "run_a was let go of." });
    expect(failed.told()).toMatchObject({ message: "The store is in trouble." });
  });
});
