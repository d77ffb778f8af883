// From asking for a command to knowing that its tree is gone: ours, recorded and contained, against a bare child.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBelay } from "../../src/sdk/belay.ts";
import { ascending, percentile, round } from "../report.ts";

const ROUNDS = 200;
const dir = mkdtempSync(join(tmpdir(), "belay-bench-"));
const belay = await openBelay({
  agent: () => "done",
  store: join(dir, "belay.db"),
  processes: { workspace: dir, dir: join(dir, "state") },
});
const session = await belay.createSession();
const ours: number[] = [];
const bare: number[] = [];
for (let index = 0; index < ROUNDS; index += 1) {
  let began = performance.now();
  await (await session.processes.start(["true"], { feedback: "silent" })).wait();
  ours.push(performance.now() - began);
  began = performance.now();
  await once(spawn("true", { stdio: ["ignore", "pipe", "pipe"] }), "close");
  bare.push(performance.now() - began);
}
await belay.close();
rmSync(dir, { recursive: true, force: true });
const of = (list: readonly number[], share: number): number => percentile(ascending(list), share);
console.log(
  JSON.stringify({
    ours: { startToEndP50Ms: round(of(ours, 0.5)), startToEndP99Ms: round(of(ours, 0.99)) },
    floor: { bareSpawnP50Ms: round(of(bare, 0.5)), bareSpawnP99Ms: round(of(bare, 0.99)) },
    ratios: { startToEndVsBareSpawn: round(of(ours, 0.5) / of(bare, 0.5)) },
  }),
);
