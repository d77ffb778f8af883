// One side in a process of its own: takes a line "KIND CONCURRENCY MS" at a time, answers each with a line of JSON.
//
//   printf 'tool 32 3000\ntool 32 1000\n' | npx node bench/turns/measure.ts aiSdk
//
// The first second or two are the compiler's, so the first figures of a process mean little.
import { createInterface } from "node:readline";
import { ascending, percentile, round } from "../report.ts";
import { type Cell, isSideName, KINDS, type Measured, openSide, type Side } from "./side.ts";
import { ANSWERS, toolCalls } from "./work.ts";

/** So many lanes, each beginning its next run when its last one has ended, until the time is up. */
async function measure(side: Side, { kind, concurrency, ms }: Cell): Promise<Measured> {
  const latencies: number[] = [];
  const callsBefore = toolCalls();
  const cpuBefore = process.cpuUsage();
  const from = performance.now();
  const lane = async (): Promise<void> => {
    for (let begun = performance.now(); begun - from < ms; begun = performance.now()) {
      const text = await side.run(kind);
      latencies.push(performance.now() - begun);
      if (text !== ANSWERS[kind]) throw new Error(`${side.name} answered ${JSON.stringify(text)} (${kind}).`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  const seconds = (performance.now() - from) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  const runs = latencies.length;
  const calls = toolCalls() - callsBefore;
  if (calls !== (kind === "tool" ? runs : 0)) {
    throw new Error(`${side.name} called the tool ${calls} times in ${runs} runs (${kind}).`);
  }
  const sorted = ascending(latencies);
  return {
    runsPerSecond: round(runs / seconds, 0),
    p50Ms: round(percentile(sorted, 0.5), 3),
    p99Ms: round(percentile(sorted, 0.99), 3),
    cpuMsPerRun: round((cpu.user + cpu.system) / 1000 / runs, 4),
  };
}

function cellOf(line: string): Cell {
  const [word, concurrency, ms] = line.trim().split(/\s+/);
  const kind = KINDS.find((one) => one === word);
  if (kind === undefined || !(Number(concurrency) > 0) || !(Number(ms) > 0)) {
    throw new Error(`"${line}" is not of the form KIND CONCURRENCY MS.`);
  }
  return { kind, concurrency: Number(concurrency), ms: Number(ms) };
}

const [name = ""] = process.argv.slice(2);
if (!isSideName(name)) throw new Error(`There is no side "${name}".`);
const side = await openSide(name);
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await measure(side, cellOf(line))));
}
await side.close();
