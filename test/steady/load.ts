// A steady load on one Belay with retention: prompts at a fixed rate, with calls, summaries and cancels.

import { SeededChooser } from "../../sim/chooser.ts";
import type { Turn } from "../../src/ports/agent.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import type { Session } from "../../src/sdk/session.ts";

export interface LoadOptions {
  readonly file: string;
  readonly seed: number;
  readonly runsPerSecond: number;
}

/** What is kept under this load: a few hundred runs, reached within seconds. */
export const LIMITS = {
  perSession: { days: 1, events: 100, bytes: 300_000 },
  overall: { days: 1, sessions: 24, bytes: 20_000_000 },
} as const;

/** Enough for a session to pass its limit of events. */
const SESSION_RUNS = 12;
const SESSIONS_AT_ONCE = 8;
const RESULT_CHARS = 1_500;
/** A machine that falls behind the rate gets no more at once: what waits would be measured as growth. */
const RUNS_AT_ONCE_MAX = 32;

export async function startLoad({ file, seed, runsPerSecond }: LoadOptions) {
  const random = new SeededChooser(seed);
  const belay = await openBelay({ store: file, agent: work, retention: LIMITS, graceMs: 200 });
  const counts = { runs: 0, cancels: 0, sessions: 0, wrong: [] as string[] };
  let cancelMs: number[] = [];
  const open: { session: Session; runs: number }[] = [];

  async function once(): Promise<void> {
    const place = random.below(SESSIONS_AT_ONCE);
    const known = open[place];
    const slot =
      known !== undefined && known.runs < SESSION_RUNS ? known : { session: await belay.createSession(), runs: 0 };
    if (slot !== known) counts.sessions += 1;
    open[place] = slot;
    slot.runs += 1;
    const isCancelled = random.below(10) === 0;
    const run = slot.session.prompt(isCancelled ? "wait" : slot.runs % 7 === 0 ? "compact" : "work");
    if (isCancelled) {
      await run.accepted;
      const began = performance.now();
      await run.cancel();
      cancelMs.push(performance.now() - began);
      counts.cancels += 1;
    }
    const outcome = await run.outcome;
    counts.runs += 1;
    const isRight = outcome.kind === (isCancelled ? "cancelled" : "completed");
    if (!isRight) counts.wrong.push(`${run.id}: ${outcome.kind}`);
  }

  const running = new Set<Promise<unknown>>();
  const timer = setInterval(() => {
    if (running.size >= RUNS_AT_ONCE_MAX) return;
    const run = once()
      .catch((error: unknown) => counts.wrong.push(String(error)))
      .finally(() => running.delete(run));
    running.add(run);
  }, 1_000 / runsPerSecond);
  return {
    belay,
    counts,
    /** Twice as many sessions were made as are kept: every limit is in force. */
    isAtLimits: (): boolean => counts.sessions >= 2 * LIMITS.overall.sessions,
    /** How long cancels have taken since the last time: the slowest of a hundred. */
    takeCancelMs: (): number => {
      const sorted = cancelMs.toSorted((a, b) => a - b);
      cancelMs = [];
      return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
    },
    stop: async (): Promise<void> => {
      clearInterval(timer);
      // A run that the close cancels has not ended wrongly.
      await Promise.all(running);
      await belay.close();
    },
  };
}

async function work(turn: Turn): Promise<string> {
  await turn.transcript();
  if (turn.prompt.text === "wait") {
    await new Promise((_, reject) => turn.signal.addEventListener("abort", () => reject(turn.signal.reason)));
  }
  if (turn.prompt.text === "compact") await turn.compact("Everything so far, in one sentence.");
  await turn.call("read", { path: "a/file" }, () => "x".repeat(RESULT_CHARS));
  return "A short answer.";
}
