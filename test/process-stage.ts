// What tests of processes in the engine share: a house whose children are scripted, and whose store can be in trouble.
import type { Json } from "../src/core/prompt.ts";
import type { Belay, BelayOptions } from "../src/library/belay.ts";
import type { LiveCall, Turn } from "../src/ports.ts";
import { MemoryStore } from "../src/store/memory/memory-store.ts";
import { type FaultyStore, faultyStore } from "../src/testing/faulty-store.ts";
import { type ManualClock, manualClock } from "../src/testing/manual-clock.ts";
import { type ScriptedSpawner, scriptedSpawner } from "../src/testing/scripted-spawner.ts";
import { openHouse } from "./open-house.ts";

export interface Stage {
  readonly belay: Belay;
  readonly clock: ManualClock;
  readonly spawner: ScriptedSpawner;
  readonly store: FaultyStore;
}

export async function stage(
  acts: Parameters<typeof openHouse>[0] = {},
  options: Partial<BelayOptions> = {},
): Promise<Stage> {
  const clock = manualClock();
  const store = faultyStore(new MemoryStore({ clock }));
  const spawner = scriptedSpawner({ clock });
  const { belay } = await openHouse(acts, { clock, store, processes: { spawner }, graceMs: 1_500, ...options });
  return { belay, clock, spawner, store };
}

/** Another worker with the same store, and with nothing of its own going on. */
export async function neighbour({ clock, store }: Stage): Promise<Belay> {
  const { belay } = await openHouse({}, { clock, store, processes: { spawner: scriptedSpawner({ clock }) } });
  return belay;
}

/** A turn that makes one call, and answers with what came of it. */
export const calls =
  (work: (call: LiveCall) => Promise<unknown>) =>
  async (turn: Turn): Promise<string> =>
    JSON.stringify(await turn.call("shell", {}, async (call) => json((await work(call)) ?? null)));

/** As a call may answer it. */
export const json = (value: unknown): Json => JSON.parse(JSON.stringify(value));

/** What the model is told besides, at its next turn. */
export const notes = async (turn: Turn): Promise<string> =>
  JSON.stringify((await turn.transcript()).filter(({ role }) => role === "note"));
