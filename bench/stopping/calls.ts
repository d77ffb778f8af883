// Single calls: 1,000 live calls, each stopped by a request of its own that waits for its end, and a run of another
// session that is stopped meanwhile. The floor stops the same calls with one request for each of their runs.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { type Belay, openBelay } from "../../src/index.ts";
import type { Turn } from "../../src/ports/agent.ts";
import { ascending, percentile, round } from "../report.ts";

const RUNS = 4;
const CALLS_PER_RUN = 250;
const ROUNDS = 5;

interface Stopped {
  readonly cpuMs: number;
  readonly tookMs: number;
  readonly loopMs: number;
  /** From the cancel of the other session's run to its outcome. */
  readonly otherMs: number;
}

const folder = mkdtempSync(join(tmpdir(), "belay-bench-"));
let begun: (id: string) => void = () => {};

const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason));
  });

const agent = async (turn: Turn): Promise<string> => {
  const call = () =>
    turn.call("wait", null, ({ callId, signal }) => {
      begun(callId);
      return untilAborted(signal);
    });
  if (turn.prompt.text === "other") begun(turn.runId);
  else await Promise.all(Array.from({ length: CALLS_PER_RUN }, call));
  return untilAborted(turn.signal);
};

async function measure(how: "each call" | "each run", index: number): Promise<Stopped> {
  const belay: Belay = await openBelay({ store: join(folder, `${how[5]}${index}.db`), agent });
  const ids: string[] = [];
  const ready = new Promise<void>((resolve) => {
    begun = (id) => {
      ids.push(id);
      if (ids.length === RUNS * CALLS_PER_RUN + 1) resolve();
    };
  });
  const runs = Array.from({ length: RUNS }, () => belay.prompt("calls"));
  const other = belay.prompt("other");
  await ready;
  const calls = ids.filter((id) => id !== other.id);
  globalThis.gc?.();
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const cpu = process.threadCpuUsage();
  const from = performance.now();
  const stopped = how === "each call" ? calls.map((id) => belay.cancel(id)) : runs.map((run) => run.cancel());
  // Behind them in the same tick, as a request that came with theirs.
  void other.cancel();
  const otherMs = other.outcome.then(() => performance.now() - from);
  await Promise.all(stopped);
  if (how === "each run") await Promise.all(runs.map((run) => run.outcome));
  const tookMs = performance.now() - from;
  const { user, system } = process.threadCpuUsage(cpu);
  loop.disable();
  const result = { cpuMs: (user + system) / 1_000, tookMs, loopMs: loop.max / 1e6, otherMs: await otherMs };
  await belay.close({ mode: "cancel" });
  return result;
}

const each: Stopped[] = [];
const whole: Stopped[] = [];
for (let index = -1; index < ROUNDS; index += 1) {
  const [a, b] = [await measure("each call", index), await measure("each run", index)];
  // The first round is for the compiler.
  if (index < 0) continue;
  each.push(a);
  whole.push(b);
}
rmSync(folder, { recursive: true });

const of = (all: readonly Stopped[], key: keyof Stopped): number =>
  percentile(ascending(all.map((one) => one[key])), 0.5);
console.log(
  JSON.stringify({
    ours: {
      singleCallsCpuMs: round(of(each, "cpuMs")),
      singleCallsTookMs: round(of(each, "tookMs")),
      singleCallsLongestBlockMs: round(of(each, "loopMs")),
      singleCallsOtherSessionMs: round(of(each, "otherMs")),
    },
    floor: {
      wholeRunsCpuMs: round(of(whole, "cpuMs")),
      wholeRunsTookMs: round(of(whole, "tookMs")),
      wholeRunsLongestBlockMs: round(of(whole, "loopMs")),
      wholeRunsOtherSessionMs: round(of(whole, "otherMs")),
    },
    ratios: {
      singleCallsCpuVsWholeRuns: round(of(each, "cpuMs") / of(whole, "cpuMs")),
      singleCallsOtherSessionVsWholeRuns: round(of(each, "otherMs") / of(whole, "otherMs")),
    },
  }),
);
