// Ten gigabytes of output of one process, while other sessions go on: what it costs in memory, and what it costs them.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBelay } from "../../src/sdk/belay.ts";
import { ascending, percentile, round } from "../report.ts";

const GIGABYTES = Number(process.env.BELAY_BENCH_GB ?? 10);
const SESSIONS = 8;
const dir = mkdtempSync(join(tmpdir(), "belay-bench-"));
const belay = await openBelay({
  agent: () => "done",
  store: join(dir, "belay.db"),
  processes: { workspace: dir, dir: join(dir, "state") },
});

/** What the other sessions do all the time: a prompt, and its outcome. */
let going = true;
const delays: number[] = [];
async function others(): Promise<void> {
  const session = await belay.createSession();
  while (going) {
    const began = performance.now();
    await session.prompt("go").outcome;
    delays.push(performance.now() - began);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const busy = Array.from({ length: SESSIONS }, others);
const session = await belay.createSession();
// Everything that is loaded when it is first needed is loaded before the measuring begins.
await (await session.processes.start("head -c 1000000 /dev/zero", { feedback: "silent" })).wait();
await new Promise((resolve) => setTimeout(resolve, 2_000));
globalThis.gc?.();
const before = process.memoryUsage().rss;
const quiet = ascending(delays.splice(0));
let most = before;
const watch = setInterval(() => {
  most = Math.max(most, process.memoryUsage().rss);
}, 20);
const began = performance.now();
const child = await session.processes.start(`head -c ${GIGABYTES}000000000 /dev/zero`, { feedback: "silent" });
const result = await child.wait();
const seconds = (performance.now() - began) / 1_000;
clearInterval(watch);
const during = ascending(delays);
going = false;
await Promise.all(busy);
const counted = result?.output?.bytes ?? 0;
await belay.close();
rmSync(dir, { recursive: true, force: true });
if (counted !== GIGABYTES * 1e9) throw new Error(`${counted} bytes were counted of ${GIGABYTES}e9.`);

console.log(
  JSON.stringify({
    ours: {
      floodGigabytes: GIGABYTES,
      floodMBPerSecond: round((GIGABYTES * 1_000) / seconds, 0),
      floodMemoryGrowthMB: round((most - before) / 2 ** 20, 1),
      floodOtherSessionsP50Ms: round(percentile(during, 0.5), 2),
      floodOtherSessionsP99Ms: round(percentile(during, 0.99), 2),
      floodOtherRuns: during.length,
      quietOtherSessionsP99Ms: round(percentile(quiet, 0.99), 2),
    },
  }),
);
