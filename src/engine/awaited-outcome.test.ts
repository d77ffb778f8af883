import { expect, test } from "vitest";
import type { RunId } from "../core/ids.ts";
import type { Turn } from "../ports.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { type FaultyStore, faultyStore } from "../testing/faulty-store.ts";
import { Gate } from "../testing/gate.ts";
import { type ManualClock, manualClock, settled } from "../testing/manual-clock.ts";
import { sequentialIds } from "../testing/sequential-ids.ts";
import { Engine } from "./engine.ts";

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

test("G33: whoever asks for a run while the store is in trouble leaves nothing behind", async () => {
  const { engine, store } = await caughtUp();
  const before = engine.held;
  store.plan("run", 1, { kind: "fail", code: "unavailable" });
  await expect(engine.outcome("run_9")).rejects.toMatchObject({ code: "unavailable" });
  expect(engine.held).toBe(before);
});

test("G8: whoever waits for a run that is let go of is told so, also if nobody heard of its acceptance", async () => {
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

test("G28: a cancel by id reaches a live run in the same tick, also if its acceptance was never answered", async () => {
  const { engine, store, runId, turn } = await caughtUp();
  store.always("run", { kind: "delay", until: new Gate() });
  expect(turn()?.signal.aborted).toBe(false);
  void engine.cancel.run(runId, { kind: "user" });
  expect(turn()?.signal.aborted).toBe(true);
});
