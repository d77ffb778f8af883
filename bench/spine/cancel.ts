// From the call of cancel() to the abort event in the tool, against a bare AbortController with one listener.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBelay } from "../../src/index.ts";
import { ascending, percentile, round } from "../report.ts";

const ROUNDS = 3_000;
const folder = mkdtempSync(join(tmpdir(), "belay-bench-"));

let seenAt = 0;
let waiting: () => void = () => {};
const belay = await openBelay({
  store: join(folder, "cancel.db"),
  agent: async (turn) => {
    await turn.call("wait", null, ({ signal }) => {
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          seenAt = performance.now();
          reject(signal.reason);
        });
        waiting();
      });
    });
  },
});
const session = await belay.createSession();

async function ours(): Promise<number> {
  const ready = new Promise<void>((resolve) => {
    waiting = resolve;
  });
  const run = session.prompt("wait");
  await ready;
  const from = performance.now();
  const receipt = run.cancel();
  const took = seenAt - from;
  await receipt;
  await run.outcome;
  if (took < 0) throw new Error("the signal did not fire in the tick of the cancel");
  return took;
}

async function floor(): Promise<number> {
  const controller = new AbortController();
  await new Promise<void>((resolve) => setImmediate(resolve));
  let at = 0;
  const rejected = new Promise((_, reject) => {
    controller.signal.addEventListener("abort", () => {
      at = performance.now();
      reject(controller.signal.reason);
    });
  });
  const from = performance.now();
  controller.abort();
  const took = at - from;
  await rejected.catch(() => {});
  return took;
}

const mine: number[] = [];
const bare: number[] = [];
for (let index = 0; index < ROUNDS; index += 1) {
  // Alternated, so that both meet the same machine; the first ones warm up.
  const [a, b] = [await ours(), await floor()];
  if (index < 500) continue;
  mine.push(a * 1000);
  bare.push(b * 1000);
}
await belay.close();
rmSync(folder, { recursive: true });
const [m, f] = [ascending(mine), ascending(bare)];
console.log(
  JSON.stringify({
    ours: { cancelToSignalP50Us: round(percentile(m, 0.5)), cancelToSignalP99Us: round(percentile(m, 0.99)) },
    floor: { abortControllerP50Us: round(percentile(f, 0.5)), abortControllerP99Us: round(percentile(f, 0.99)) },
    ratios: {
      cancelToSignalVsAbortController: round(percentile(m, 0.99) / percentile(f, 0.99)),
      cancelToSignalVsAbortControllerP50: round(percentile(m, 0.5) / percentile(f, 0.5)),
    },
  }),
);
