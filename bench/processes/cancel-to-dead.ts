// From the cancel to the death of the whole tree: ours, with its record in the log, against the kernel's own kill of
// the same tree in the same run, one after the other.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBelay } from "../../src/sdk/belay.ts";
import { ascending, percentile, round } from "../report.ts";
import { now, plant } from "./tree.ts";

const ROUNDS = 400;
const WARM = 10;
const dir = mkdtempSync(join(tmpdir(), "belay-bench-"));
const belay = await openBelay({
  agent: () => "done",
  store: join(dir, "belay.db"),
  processes: { workspace: dir, dir: join(dir, "state") },
});
const session = await belay.createSession();
const times = { asked: [] as number[], forced: [] as number[], kernel: [] as number[], recorded: [] as number[] };
for (let round = 0; round < ROUNDS + WARM; round += 1) {
  const measured = {
    asked: await cancelled(`a${round}`, "plain", undefined),
    forced: await cancelled(`f${round}`, "deaf", 0),
    kernel: await killed(`k${round}`),
  };
  if (round < WARM) continue;
  times.asked.push(measured.asked.dead);
  times.recorded.push(measured.asked.told);
  times.forced.push(measured.forced.dead);
  times.kernel.push(measured.kernel);
}
const info = await session.processes.start("true", { feedback: "silent" });
const tier = info.info?.mechanism;
await belay.close();
rmSync(dir, { recursive: true, force: true });

const of = (list: readonly number[], share: number): number => percentile(ascending(list), share);
const figures = {
  ours: {
    cancelToDeadP50Ms: round(of(times.asked, 0.5), 3),
    cancelToDeadP99Ms: round(of(times.asked, 0.99), 3),
    forcedToDeadP50Ms: round(of(times.forced, 0.5), 3),
    forcedToDeadP99Ms: round(of(times.forced, 0.99), 3),
    cancelToToldP50Ms: round(of(times.recorded, 0.5), 3),
    cancelToToldP99Ms: round(of(times.recorded, 0.99), 3),
  },
  floor: {
    kernelKillP50Ms: round(of(times.kernel, 0.5), 3),
    kernelKillP99Ms: round(of(times.kernel, 0.99), 3),
  },
  ratios: {
    cancelToDeadVsKernel: round(of(times.asked, 0.99) / of(times.kernel, 0.99)),
    cancelToDeadVsKernelP50: round(of(times.asked, 0.5) / of(times.kernel, 0.5)),
    forcedToDeadVsKernel: round(of(times.forced, 0.99) / of(times.kernel, 0.99)),
  },
};
console.error(`mechanism: ${tier}`);
console.log(JSON.stringify(figures));

/** Through the whole house: decided, recorded, carried out, verified, told. */
async function cancelled(
  name: string,
  kind: "plain" | "deaf",
  graceMs: number | undefined,
): Promise<{ readonly dead: number; readonly told: number }> {
  const tree = plant(dir, name, kind);
  const options = { feedback: "silent", ...(graceMs === undefined ? {} : { graceMs }) } as const;
  const child = await session.processes.start(tree.command, options);
  await tree.up;
  const began = now();
  const told = belay.cancel(child.id).then(() => now());
  const dead = (await tree.gone) - began;
  return { dead, told: (await told) - began };
}

/** What the kernel takes for it: one signal to the group, nothing recorded, nothing verified. */
async function killed(name: string): Promise<number> {
  const tree = plant(dir, name, "plain");
  const child = spawn("sh", ["-c", tree.command], { detached: true, stdio: "ignore" });
  await tree.up;
  const began = now();
  process.kill(-(child.pid ?? 0), "SIGKILL");
  return (await tree.gone) - began;
}
