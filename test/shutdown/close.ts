// One life that is closed in a situation, and the next one, over a store in memory and a clock that is moved by hand.
import type { Outcome } from "../../src/core/model/cancel.ts";
import type { Agent } from "../../src/ports/agent.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { MemoryStore } from "../../src/store/memory/memory-store.ts";
import { type ManualClock, manualClock, settled } from "../../src/testing/manual-clock.ts";
import { scriptedSpawner } from "../../src/testing/scripted-spawner.ts";
import { sequentialIds } from "../../src/testing/sequential-ids.ts";
import { logOf } from "../fixtures/belay.ts";
import { agentIn, begin, type Found, found, hasTwoBelays, hooksIn, type Situation } from "./situations.ts";

export interface Closed {
  readonly runs: readonly Found[];
  /** Timers that would keep the program alive after close(). */
  readonly timers: readonly unknown[];
  /** Every caller that waited for an outcome has an answer. */
  readonly answered: boolean;
}

export async function closeIn(situation: Situation): Promise<Closed> {
  const clock = manualClock();
  const stores = [new MemoryStore({ clock }), new MemoryStore({ clock })];
  for (const store of stores) store.close = async () => {};
  let reached = (): void => {};
  const began = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const first = agentIn(situation, () => reached());
  const hooks = hooksIn(situation, () => reached());
  const open = (at: number, agent: Agent, from: number): Promise<Belay> =>
    openBelay({
      ...{ clock, graceMs: 1_000, agent, store: stores[at] ?? "", ids: sequentialIds(from) },
      ...{ processes: { spawner: scriptedSpawner({ clock }) }, hooks: from < 1_000 ? hooks : {} },
    });
  const belays = [await open(0, first, 1)];
  if (hasTwoBelays(situation)) belays.push(await open(1, first, 500));
  const [session, ...others] = await Promise.all(belays.map((belay) => belay.createSession()));
  if (session === undefined) throw new Error("There is no session.");
  const more = others.map((one) => one.prompt("go"));
  const runs = [...(await begin(situation, session, began)), ...more];
  const ends = runs.map((run) => run.outcome.then(ended, refused));
  await settled();
  await closeAll(belays, clock);
  // Looked at in this tick: none may be left that only time would remove.
  const timers = clock.pending.filter(({ idle }) => !idle);
  const answers = await Promise.race([Promise.all(ends), settled()]);
  const again: string[] = [];
  const next = await Promise.all(
    belays.map((_, at) => open(at, (turn) => void again.push(turn.runId), 1_000 + 500 * at)),
  );
  const reports = runs.map(async (run, at) => {
    const belay = hasTwoBelays(situation) ? next[at] : next[0];
    const outcome = await (await belay?.run(run.id))?.outcome;
    const log = belay === undefined ? [] : await logOf(belay.session(run.sessionId));
    return found(log, outcome as Outcome, again.includes(run.id));
  });
  const all = await Promise.all(reports);
  for (const belay of next) await belay.close();
  return { runs: all, timers, answered: answers !== undefined };
}

/** Time passes only while it is needed. */
async function closeAll(belays: readonly Belay[], clock: ManualClock): Promise<void> {
  let isClosed = false;
  const closed = Promise.all(belays.map((belay) => belay.close())).then(() => {
    isClosed = true;
  });
  for (let round = 0; round < 100 && !isClosed; round += 1) {
    for (let turn = 0; turn < 5; turn += 1) await settled();
    if (!isClosed) await clock.advance(100);
  }
  await closed;
}

const ended = (outcome: Outcome): unknown => outcome;
const refused = (error: unknown): unknown => error;
