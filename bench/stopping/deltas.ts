// What a follower costs a run that streams: 100,000 deltas of a model with no follower, with one that reads and with
// one that has stopped reading. The longest block of the event loop is measured beside it.
import { setImmediate as nextTick } from "node:timers/promises";
import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { modelAgent } from "../../src/agent/index.ts";
import { openBelay, type Session } from "../../src/index.ts";
import { SseParser } from "../../src/wire/sse-parser.ts";
import { ascending, percentile, round } from "../report.ts";

const DELTAS = 100_000;
/** As many as a provider's answer brings with one read of its socket. */
const DELTAS_PER_READ = 100;
const ROUNDS = 7;

type Follower = "none" | "reading" | "stalled";

interface Measured {
  /** Processor time of the main thread: what others do on the machine does not count. */
  readonly cpuMs: number;
  readonly longestBlockMs: number;
}

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: DELTAS, text: DELTAS, reasoning: undefined },
};

/** What one read of the socket brings, as Anthropic writes it. */
const READ = new TextEncoder().encode(
  `event: content_block_delta\ndata: ${JSON.stringify({
    type: "content_block_delta",
    index: 0,
    delta: { type: "text_delta", text: "token " },
  })}\n\n`.repeat(DELTAS_PER_READ),
);

/** Streams its deltas as a provider's package does: all that one read has brought is parsed, then the next read. */
const model: LanguageModelV4 = {
  specificationVersion: "v4",
  provider: "bench",
  modelId: "deltas",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("It only streams.")),
  doStream: async () => ({ stream: answer() }),
};

function answer(): ReadableStream<LanguageModelV4StreamPart> {
  let left = DELTAS;
  let last = performance.now();
  longestBlockMs = 0;
  const parser = new SseParser();
  return new ReadableStream<LanguageModelV4StreamPart>({
    start: (controller) => {
      controller.enqueue({ type: "stream-start", warnings: [] });
      controller.enqueue({ type: "text-start", id: "0" });
    },
    pull: async (controller) => {
      await nextTick();
      const now = performance.now();
      longestBlockMs = Math.max(longestBlockMs, now - last);
      last = now;
      for (const { data } of parser.push(READ)) {
        const { index, delta } = JSON.parse(data) as { index: number; delta: { text: string } };
        controller.enqueue({ type: "text-delta", id: String(index), delta: delta.text });
      }
      left -= DELTAS_PER_READ;
      if (left > 0) return;
      controller.enqueue({ type: "text-end", id: "0" });
      controller.enqueue({ type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: USAGE });
      controller.close();
    },
  });
}

let longestBlockMs = 0;
const belay = await openBelay({ store: ":memory:", agent: modelAgent({ model }) });

/** Begins to follow, and resolves once it is registered. `left` ends it. */
async function follow(session: Session, follower: Follower): Promise<() => Promise<unknown>> {
  if (follower === "none") return async () => undefined;
  const events = session.events({ deltas: "with" });
  await events.next();
  const reading = follower === "reading" ? drain(events) : undefined;
  return async () => {
    await events.return(undefined);
    await reading;
  };
}

async function drain(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}

async function measure(follower: Follower): Promise<Measured> {
  const session = await belay.createSession();
  const leave = await follow(session, follower);
  globalThis.gc?.();
  const from = process.threadCpuUsage();
  const outcome = await session.prompt("Stream.").outcome;
  const { user, system } = process.threadCpuUsage(from);
  if (outcome.kind !== "completed") throw new Error(`The run has ended as ${outcome.kind}.`);
  await leave();
  return { cpuMs: (user + system) / 1_000, longestBlockMs };
}

const FOLLOWERS: readonly Follower[] = ["none", "reading", "stalled"];
const cpu: Record<Follower, number[]> = { none: [], reading: [], stalled: [] };
const block: Record<Follower, number[]> = { none: [], reading: [], stalled: [] };
for (let index = -2; index < ROUNDS; index += 1) {
  for (const follower of FOLLOWERS) {
    const measured = await measure(follower);
    // The first rounds are for the compiler.
    if (index < 0) continue;
    cpu[follower].push(measured.cpuMs);
    block[follower].push(measured.longestBlockMs);
  }
}
await belay.close();

const median = (values: readonly number[]): number => percentile(ascending(values), 0.5);
const ratio = (follower: Follower): number => round(median(cpu[follower]) / median(cpu.none));
console.log(
  JSON.stringify({
    ours: {
      deltasCpuMsNoFollower: round(median(cpu.none)),
      deltasCpuMsReadingFollower: round(median(cpu.reading)),
      deltasCpuMsStalledFollower: round(median(cpu.stalled)),
      deltasLongestBlockMsNoFollower: round(median(block.none)),
      deltasLongestBlockMsReadingFollower: round(median(block.reading)),
      deltasLongestBlockMsStalledFollower: round(median(block.stalled)),
    },
    ratios: { deltasReadingVsNone: ratio("reading"), deltasStalledVsNone: ratio("stalled") },
  }),
);
