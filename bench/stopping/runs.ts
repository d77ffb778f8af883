// What a run costs in a session with a past: the processor time of a run after 10, 1,000 and 10,000 others, with a
// model whose conversation is summed up now and then, so that its requests stay small.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { modelAgent } from "../../src/agent/index.ts";
import { type Belay, openBelay } from "../../src/index.ts";
import { round } from "../report.ts";

const PAST = [10, 1_000, 10_000] as const;
/** Runs of one measurement: many, because the clock of the processor is coarse. */
const RUNS = 200;
const ROUNDS = 11;
/** A summary every twenty runs or so. */
const ABOVE_TOKENS = 1_000;

const USAGE = {
  inputTokens: { total: 20, noCache: 20, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 40, text: 40, reasoning: undefined },
};
const ANSWER = "A turn's text of ordinary length, as it would stand in a log of a working day. ".repeat(2);
const PARTS: readonly LanguageModelV4StreamPart[] = [
  { type: "stream-start", warnings: [] },
  { type: "text-start", id: "0" },
  { type: "text-delta", id: "0", delta: ANSWER },
  { type: "text-end", id: "0" },
  { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: USAGE },
];
const model: LanguageModelV4 = {
  specificationVersion: "v4",
  provider: "bench",
  modelId: "runs",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("It only streams.")),
  doStream: async () => ({ stream: ReadableStream.from(PARTS) }),
};

const folder = mkdtempSync(join(tmpdir(), "belay-bench-"));

const open = (past: number): Promise<Belay> =>
  openBelay({
    store: join(folder, `runs-${past}.db`),
    agent: modelAgent({ model, compaction: { aboveTokens: ABOVE_TOKENS } }),
  });

async function work(belay: Belay, runs: number): Promise<void> {
  const session = belay.session("ses_long");
  for (let index = 0; index < runs; index += 1) {
    const outcome = await session.prompt("Do the next thing.").outcome;
    if (outcome.kind !== "completed") throw new Error(`A run has ended as ${outcome.kind}.`);
  }
}

/** Milliseconds of the processor for one run, in the main thread: the store has threads of its own. */
async function measure(belay: Belay): Promise<number> {
  globalThis.gc?.();
  const from = process.threadCpuUsage();
  await work(belay, RUNS);
  const { user, system } = process.threadCpuUsage(from);
  return (user + system) / 1_000 / RUNS;
}

const belays = new Map<number, Belay>();
for (const past of PAST) {
  const belay = await open(past);
  await belay.createSession({ id: "ses_long" });
  await work(belay, past);
  // After a restart nothing is in memory: what is measured begins with a session that was just loaded.
  await belay.close();
  belays.set(past, await open(past));
}
const samples = new Map<number, number[]>(PAST.map((past) => [past, []]));
// In turn, so that a busy moment of the machine falls on all of them. The first round is for the compiler.
for (let index = -1; index < ROUNDS; index += 1) {
  for (const [past, belay] of belays) {
    const ms = await measure(belay);
    if (index >= 0) samples.get(past)?.push(ms);
  }
}
for (const belay of belays.values()) await belay.close();
rmSync(folder, { recursive: true });

/** The least: what else the machine does only adds to it. */
const least = (past: number): number => Math.min(...(samples.get(past) ?? []));
const [first, ...others] = PAST;
console.log(
  JSON.stringify({
    ours: Object.fromEntries(PAST.map((past) => [`runCpuMsAfter${past}`, round(least(past), 3)])),
    ratios: Object.fromEntries(
      others.map((past) => [`runAfter${past}Over${first}`, round(least(past) / least(first))]),
    ),
  }),
);
