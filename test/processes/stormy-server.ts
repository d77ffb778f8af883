// A Belay beside fork storms: cancels a quiet tree again and again, then the storms themselves, and prints how long
// each took from the cancel to its settlement, as JSON. Exits if that takes too long.
import { join } from "node:path";
import type { ProcessHandle } from "../../src/engine/process/process-handle.ts";
import { MECHANISMS } from "../../src/process/containment/mechanisms.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { stormOf } from "../fixtures/storm.ts";

const [dir = "", storms = "3", shells = "80", rounds = "5", given = ""] = process.argv.slice(2);
const LIMIT_MS = 60_000;
const GRACE_MS = 1_000;
setTimeout(() => process.exit(9), LIMIT_MS).unref();

const mechanism = MECHANISMS.find((one) => one === given);
const belay = await openBelay({
  agent: () => "done",
  store: join(dir, "belay.db"),
  processes: {
    workspace: dir,
    limits: { processesMax: 320 },
    graceMs: GRACE_MS,
    ...(mechanism === undefined ? {} : { mechanism }),
  },
});

async function upAndRunning(command: string): Promise<ProcessHandle> {
  const session = await belay.createSession();
  const child = await session.processes.start(command, { feedback: "silent" });
  for await (const page of child.follow()) if (page.text.includes("up")) break;
  return child;
}

async function stopMs(child: ProcessHandle): Promise<number> {
  const began = performance.now();
  await belay.cancel(child.id);
  const outcome = await child.wait();
  if (outcome?.escaped !== undefined) process.exitCode = 8;
  return Math.round(performance.now() - began);
}

const blowing = await Promise.all(Array.from({ length: Number(storms) }, () => upAndRunning(stormOf(Number(shells)))));
const quietMs: number[] = [];
for (let round = 0; round < Number(rounds); round += 1) {
  // It ignores SIGTERM, so the end of its grace must be carried out in time as well.
  quietMs.push(await stopMs(await upAndRunning("trap '' TERM; (trap '' TERM; sleep 600) & echo up; wait; wait")));
}
const stormsMs = await Promise.all(blowing.map(stopMs));
console.log(JSON.stringify({ mechanism: blowing[0]?.info?.mechanism, quietMs, stormsMs }));
await belay.close();
