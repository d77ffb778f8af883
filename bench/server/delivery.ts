// A thousand live sessions with ten events a second each, on a real file, and a subscriber for every one: how long it
// takes from the moment something is decided to the moment its subscriber has it, the commit included.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Agent } from "../../src/index.ts";
import { round } from "../report.ts";
import { serve, subscribers } from "./served.ts";

const SESSIONS = 1_000;
/** Each step is a call: asked for, settled. Two events. */
const STEP_MS = 200;
const WARM_UP_MS = 4_000;
const MEASURED_MS = 12_000;

const agent: Agent = async (turn) => {
  const { number } = turn.prompt.data as { readonly number: number };
  // Spread over the step, as a thousand sessions of different people are.
  await sleep((number * STEP_MS) / SESSIONS, undefined, { signal: turn.signal });
  for (let step = 1; ; step += 1) {
    const began = performance.now();
    await turn.call("step", { step }, () => "done");
    await sleep(Math.max(0, STEP_MS - (performance.now() - began)), undefined, { signal: turn.signal });
  }
};

const folder = await mkdtemp(join(tmpdir(), "belay-bench-"));
const served = await serve(join(folder, "belay.db"), agent);
const runs = await Promise.all(
  Array.from({ length: SESSIONS }, async (_, number) => {
    const session = await served.belay.createSession();
    const run = session.prompt({ text: "go", data: { number } });
    await run.accepted;
    return `/v1/sessions/${session.id}/events?deltas=with`;
  }),
);
const crowd = subscribers(served.port, runs, "delays");
await crowd.ready;
await sleep(WARM_UP_MS);
crowd.say("measure");
const cpu = process.cpuUsage();
await sleep(MEASURED_MS);
const used = process.cpuUsage(cpu);
crowd.say("stop");
const told = await crowd.told;
await served.close();
await rm(folder, { recursive: true, force: true });
console.log(
  JSON.stringify({
    ours: {
      deliverySessions: SESSIONS,
      deliveryEventsPerSecond: round(told.measured / (MEASURED_MS / 1000), 0),
      deliveryP50Ms: told.p50,
      deliveryP99Ms: told.p99,
      deliveryMaxMs: told.max,
      deliveryServerCpuShare: round((used.user + used.system) / 1000 / MEASURED_MS),
    },
  }),
);
