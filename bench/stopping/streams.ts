// A bulk stop: 1,000 live model streams over loopback HTTP, stopped at once with `cancelAll()`. The floor closes as
// many plain fetch streams in one tick and writes one record with fsync: what sockets and disk cost by themselves.
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Worker } from "node:worker_threads";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { modelAgent } from "../../src/agent/index.ts";
import { openBelay } from "../../src/index.ts";
import { ascending, percentile, round } from "../report.ts";

const STREAMS = 1_000;
const ROUNDS = 5;

const folder = mkdtempSync(join(tmpdir(), "belay-bench-"));
const provider = new Worker(new URL("./stream-server.ts", import.meta.url));
const port = await message<number>();
const baseURL = `http://127.0.0.1:${port}`;

function message<T>(): Promise<T> {
  return new Promise((resolve) => provider.once("message", resolve));
}

interface Stopped {
  readonly firstReceiptMs: number;
  readonly receiptsMs: number;
  readonly outcomesMs: number;
  readonly closedMs: number;
  readonly loopMs: number;
}

async function ours(index: number): Promise<Stopped> {
  const model = createOpenAICompatible({ name: "bench", baseURL, apiKey: "none" })("bench");
  const belay = await openBelay({ store: join(folder, `streams-${index}.db`), agent: modelAgent({ model }) });
  const runs = Array.from({ length: STREAMS }, () => belay.prompt("Stream."));
  await Promise.all(
    runs.map(async (run) => {
      for await (const event of run) if (event.type === "delta") return;
    }),
  );
  const closed = message<"closed">().then(() => performance.now());
  globalThis.gc?.();
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const from = performance.now();
  const since = (): number => performance.now() - from;
  let first = Number.NaN;
  // The first one by itself: its receipt says whether receipts wait for what the others tear down.
  const one = runs[0]?.cancel().then(() => {
    first = since();
  });
  const receipts = belay.cancelAll().then(since);
  const outcomes = Promise.all(runs.map((run) => run.outcome)).then(since);
  const [receiptsMs, outcomesMs] = await Promise.all([receipts, outcomes]);
  await one;
  const closedMs = (await closed) - from;
  loop.disable();
  await belay.close();
  return { firstReceiptMs: first, receiptsMs, outcomesMs, closedMs, loopMs: loop.max / 1e6 };
}

/** Milliseconds until the last of them has ended, and the record is on disk. */
async function floor(): Promise<number> {
  const streams = await Promise.all(
    Array.from({ length: STREAMS }, async () => {
      const controller = new AbortController();
      const response = await fetch(baseURL, { method: "POST", body: "{}", signal: controller.signal });
      const reader = response.body?.getReader();
      await reader?.read();
      const ended = reader?.read().catch(() => undefined);
      return { controller, ended };
    }),
  );
  const closed = message<"closed">();
  const file = openSync(join(folder, "floor"), "w");
  globalThis.gc?.();
  const from = performance.now();
  for (const { controller } of streams) controller.abort();
  writeSync(file, "stopped\n".repeat(STREAMS));
  fsyncSync(file);
  await Promise.all(streams.map(({ ended }) => ended));
  const took = performance.now() - from;
  closeSync(file);
  await closed;
  return took;
}

const samples: Stopped[] = [];
const floors: number[] = [];
for (let index = -1; index < ROUNDS; index += 1) {
  const [a, b] = [await ours(index), await floor()];
  // The first round is for the compiler.
  if (index < 0) continue;
  samples.push(a);
  floors.push(b);
}
await provider.terminate();
rmSync(folder, { recursive: true });

const median = (values: readonly number[]): number => percentile(ascending(values), 0.5);
const of = (key: keyof Stopped): number => median(samples.map((one) => one[key]));
console.log(
  JSON.stringify({
    ours: {
      streamsFirstReceiptMs: round(of("firstReceiptMs")),
      streamsReceiptsMs: round(of("receiptsMs")),
      streamsOutcomesMs: round(of("outcomesMs")),
      streamsClosedMs: round(of("closedMs")),
      streamsLongestBlockMs: round(of("loopMs")),
    },
    floor: { closeStreamsAndFsyncMs: round(median(floors)) },
    ratios: {
      streamsReceiptsVsFloor: round(of("receiptsMs") / median(floors)),
      streamsOutcomesVsFloor: round(of("outcomesMs") / median(floors)),
    },
  }),
);
// The provider package keeps sockets.
process.exit(0);
