// A stop while three other trees fork as fast as they can: from the cancel of a quiet tree until the last process of it
// is gone. The floor is the kernel's own kill of such a tree while the same storms blow.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBelay } from "../../src/sdk/belay.ts";
import { stormOf } from "../../test/fixtures/storm.ts";
import { now, plant } from "../processes/tree.ts";
import { ascending, percentile, round } from "../report.ts";

const STORMS = 3;
const ROUNDS = 25;
/** Of each storm; all of them fork at once. */
const SHELLS = 80;

const dir = mkdtempSync(join(tmpdir(), "belay-bench-"));
const belay = await openBelay({
  agent: () => "done",
  store: join(dir, "belay.db"),
  processes: { workspace: dir, dir: join(dir, "state"), limits: { processesMax: 4 * SHELLS } },
});
const session = await belay.createSession();
const stormy = await belay.createSession();
const storms = [];
for (let index = 0; index < STORMS; index += 1) {
  storms.push(await stormy.processes.start(stormOf(SHELLS), { feedback: "silent" }));
}
const mechanism = storms[0]?.info?.mechanism;

const dead: number[] = [];
const told: number[] = [];
const kernel: number[] = [];
for (let index = -2; index < ROUNDS; index += 1) {
  const [ours, floor] = [await cancelled(`o${index}`), await killed(`k${index}`)];
  if (index < 0) continue;
  dead.push(ours.dead);
  told.push(ours.told);
  kernel.push(floor);
}
const from = now();
await Promise.all(storms.map(({ id }) => belay.cancel(id)));
const stormsMs = now() - from;
await belay.close();
rmSync(dir, { recursive: true, force: true });

async function cancelled(name: string): Promise<{ readonly dead: number; readonly told: number }> {
  const tree = plant(dir, name, "plain");
  const child = await session.processes.start(tree.command, { feedback: "silent" });
  await tree.up;
  const began = now();
  const receipt = belay.cancel(child.id).then(() => now());
  const gone = (await tree.gone) - began;
  return { dead: gone, told: (await receipt) - began };
}

async function killed(name: string): Promise<number> {
  const tree = plant(dir, name, "plain");
  const child = spawn("sh", ["-c", tree.command], { detached: true, stdio: "ignore" });
  await tree.up;
  const began = now();
  process.kill(-(child.pid ?? 0), "SIGKILL");
  return (await tree.gone) - began;
}

const of = (list: readonly number[], share: number): number => percentile(ascending(list), share);
console.error(`mechanism: ${mechanism}`);
console.log(
  JSON.stringify({
    ours: {
      stormsCancelToDeadP50Ms: round(of(dead, 0.5)),
      stormsCancelToDeadMaxMs: round(of(dead, 1)),
      stormsCancelToToldP50Ms: round(of(told, 0.5)),
      stormsCancelToToldMaxMs: round(of(told, 1)),
      stormsThemselvesStoppedMs: round(stormsMs),
    },
    floor: { stormsKernelKillP50Ms: round(of(kernel, 0.5)), stormsKernelKillMaxMs: round(of(kernel, 1)) },
    ratios: { stormsCancelToDeadVsKernelP50: round(of(dead, 0.5) / of(kernel, 0.5)) },
  }),
);
