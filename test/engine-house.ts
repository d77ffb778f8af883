// What the engine's own tests share: an engine over a store in memory, with a clock that is moved by hand.
import type { Recorded } from "../src/core/event.ts";
import type { SessionId } from "../src/core/ids.ts";
import { Engine } from "../src/engine/engine.ts";
import type { EngineParts } from "../src/engine/engine-parts.ts";
import type { Asked } from "../src/engine/prompted.ts";
import type { Notice } from "../src/ports.ts";
import { MemoryStore } from "../src/store/memory/memory-store.ts";
import { type FaultyStore, faultyStore } from "../src/testing/faulty-store.ts";
import { type ManualClock, manualClock } from "../src/testing/manual-clock.ts";
import { type ScriptedAgent, scriptedAgent } from "../src/testing/scripted-agent.ts";
import { sequentialIds } from "../src/testing/sequential-ids.ts";

export interface EngineHouse {
  readonly clock: ManualClock;
  readonly log: MemoryStore;
  /** The way to the log, and what goes wrong on it. */
  readonly store: FaultyStore;
  readonly agent: ScriptedAgent;
  readonly engine: Engine;
  readonly notices: Notice[];
}

/** One live run at a time, unless it is said otherwise. The turns of an agent that is not given are the test's. */
export function engineHouse(parts: Partial<EngineParts> = {}): EngineHouse {
  const clock = manualClock();
  const log = new MemoryStore({ clock });
  return worker({ clock, log }, parts);
}

/** Another worker over the same log. */
export function neighbour(house: EngineHouse, parts: Partial<EngineParts> = {}): EngineHouse {
  return worker(house, { ids: sequentialIds(100), ...parts });
}

function worker({ clock, log }: Pick<EngineHouse, "clock" | "log">, parts: Partial<EngineParts>): EngineHouse {
  const store = faultyStore(log);
  const agent = scriptedAgent();
  const notices: Notice[] = [];
  const engine = new Engine({
    ...{ store, clock, ids: sequentialIds(), agent, hooks: {}, notify: (notice) => void notices.push(notice) },
    ...{ graceMs: 1_000, liveRunsMax: 1, resume: "resume", runLimitMs: undefined, tap: undefined, spawner: undefined },
    ...parts,
  });
  return { clock, log, store, agent, engine, notices };
}

export const asked = (text: string, key?: string): Asked => ({ prompt: { text }, delivery: "queue", key });

/** A session with a live run in it, and its turn. */
export async function live({ engine, agent }: EngineHouse, session?: SessionId) {
  const begun = engine.begin(session, {}, asked("live"));
  await begun.accepted;
  return { ...begun, turn: await agent.nextTurn() };
}

/** All that is in the log of a session. */
export async function eventsOf({ log }: EngineHouse, session: SessionId): Promise<readonly Recorded[]> {
  return (await log.read(session, { after: 0, limit: 1_000 })).events;
}
