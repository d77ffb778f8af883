// What a live run costs that waits for a tool, with 100,000 of them.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBelay } from "../../src/index.ts";
import { round } from "../report.ts";

const RUNS = 100_000;
const folder = mkdtempSync(join(tmpdir(), "belay-bench-"));
let live = 0;
let allLive: () => void = () => {};
const belay = await openBelay({
  store: join(folder, "memory.db"),
  liveRunsMax: RUNS,
  agent: async (turn) => {
    await turn.call("wait", null, () => {
      live += 1;
      if (live === RUNS) allLive();
      return new Promise(() => {});
    });
  },
});
const everyone = new Promise<void>((resolve) => {
  allLive = resolve;
});
const heap = (): number => {
  globalThis.gc?.();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return heapUsed + external + arrayBuffers;
};
const before = heap();
for (let at = 0; at < RUNS; at += 500) {
  await Promise.all(
    Array.from({ length: 500 }, async () => {
      const session = await belay.createSession();
      await session.prompt("wait").accepted;
    }),
  );
}
await everyone;
const perRun = (heap() - before) / RUNS;
console.log(
  JSON.stringify({
    ours: { bytesPerLiveRun: round(perRun, 0), liveRuns: live },
    ratios: { memoryVs4KiB: round(perRun / 4096) },
  }),
);
rmSync(folder, { recursive: true });
process.exit(0);
