// Closes a Belay in every situation, and reports what is wrong after the next start.
import { SHUTDOWN_MS } from "../../src/core/limits.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { MemoryStore } from "../../src/store/memory/memory-store.ts";
import { manualClock, settled } from "../../src/testing/manual-clock.ts";
import { gate } from "../fixtures/belay.ts";
import { closeIn } from "./close.ts";
import { expected, MORE_SITUATIONS, SITUATIONS, type Situation } from "./situations.ts";

/** The first thing that is wrong; undefined if all is right. */
export async function search(trying: (what: string) => void): Promise<string | undefined> {
  for (const situation of [...SITUATIONS, ...MORE_SITUATIONS]) {
    trying(situation);
    const wrong = await searchIn(situation);
    if (wrong !== undefined) return `G25: ${situation}: ${wrong}`;
  }
  trying("limit, hook");
  if (!(await leavesNoTimer())) return "G33: a timer is left after a close() that came to its limit";
  if (!(await waitsForHooks())) return "G25: a hook was cut off by close()";
  return undefined;
}

export async function searchIn(situation: Situation): Promise<string | undefined> {
  const { runs, timers, answered } = await closeIn(situation);
  for (const [at, run] of runs.entries()) {
    for (const [field, value] of Object.entries(expected(situation, "close()", at))) {
      const found = run[field as keyof typeof run];
      if (found !== value) return `\`${field}\` is ${found}, and must be ${value}`;
    }
  }
  if (timers.length > 0) return `${timers.length} timers are left after close()`;
  return answered ? undefined : "a caller that waited for an outcome has no answer";
}

/** Whether a close() that does not wait for deaf work leaves no timer that keeps the program alive. */
export async function leavesNoTimer(): Promise<boolean> {
  const clock = manualClock();
  const belay = await openBelay({ clock, agent: () => new Promise(() => {}), store: new MemoryStore({ clock }) });
  const run = belay.prompt("go");
  run.outcome.catch(() => {});
  await run.accepted;
  await settled();
  const closed = belay.close({ limitMs: 1 });
  await clock.advance(1);
  await closed;
  return clock.pending.every(({ idle }) => idle);
}

/** Whether close() ends after the hook that is at work, and not before. */
export async function waitsForHooks(): Promise<boolean> {
  const clock = manualClock();
  const goOn = gate();
  let ended = false;
  const onOutcome = async (): Promise<void> => {
    await goOn.passed;
    ended = true;
  };
  const store = new MemoryStore({ clock });
  const belay = await openBelay({ clock, agent: () => "done", store, hooks: { onOutcome } });
  await belay.prompt("go").outcome;
  const closed = belay.close({ limitMs: SHUTDOWN_MS }).then(() => ended);
  await settled();
  goOn.open();
  return closed;
}
