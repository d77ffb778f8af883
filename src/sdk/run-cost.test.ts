// The cost of a run, counted, not timed: it does not depend on the number of earlier runs in its session.
import { expect, test } from "vitest";
import { stage } from "../../test/fixtures/engine-processes.ts";
import type { Turn } from "../ports/agent.ts";

const SUMMARY_EVERY = 10;

interface Cost {
  readonly appends: number;
  readonly reads: number;
  readonly messages: number;
}

/** The cost of `SUMMARY_EVERY` runs of one session, after this many others. */
async function costAfter(past: number): Promise<Cost> {
  let count = 0;
  let messages = 0;
  const next = async (turn: Turn): Promise<string> => {
    messages += (await turn.transcript()).length;
    count += 1;
    if (count % SUMMARY_EVERY === 0) await turn.compact("So far all is well.");
    return "done";
  };
  const { belay, store } = await stage({ next });
  const session = await belay.createSession();
  const work = async (runs: number): Promise<void> => {
    for (let index = 0; index < runs; index += 1) await session.prompt("next").outcome;
  };
  await work(past);
  const before = { appends: store.calls("append"), reads: store.calls("read"), messages };
  await work(SUMMARY_EVERY);
  const cost = {
    appends: store.calls("append") - before.appends,
    reads: store.calls("read") - before.reads,
    messages: messages - before.messages,
  };
  await belay.close();
  return cost;
}

test("G33: run 10 and run 400 of a session take the same number of writes, reads and messages", async () => {
  const early = await costAfter(SUMMARY_EVERY);
  expect(early.reads).toBeLessThanOrEqual(1);
  expect(await costAfter(400)).toEqual(early);
});
