// What stopping costs, and what must not grow: many streams stopped at once, many calls one by one, a stop while others
// fork as fast as they can; the cost of a delta with its followers, and of a run with the runs before it; and a stop in
// a browser whose tabs watch many runs.
import { runParts } from "../parts.ts";
import type { Figures, JudgedFigures } from "../report.ts";

const PARTS = ["streams", "calls", "storms", "deltas", "runs", "browser"];

/** The goals, each with the figure it is about. Those in milliseconds are for cores that do nothing else. */
const GOALS: readonly { readonly of: keyof Figures; readonly figure: string; readonly atMost: number }[] = [
  { of: "ours", figure: "streamsReceiptsMs", atMost: 100 },
  { of: "ours", figure: "streamsOutcomesMs", atMost: 300 },
  // A thousand cancels of single calls at once: what they cost, and how long another session waits meanwhile.
  { of: "ours", figure: "singleCallsCpuMs", atMost: 150 },
  { of: "ours", figure: "singleCallsOtherSessionMs", atMost: 150 },
  // The whole tree is dead within 2 s of a cancel, also while other trees fork as fast as they can (G19).
  { of: "ours", figure: "stormsCancelToDeadMaxMs", atMost: 2_000 },
  { of: "ours", figure: "stormsThemselvesStoppedMs", atMost: 2_000 },
  { of: "ratios", figure: "deltasReadingVsNone", atMost: 1.5 },
  { of: "ratios", figure: "deltasStalledVsNone", atMost: 1.5 },
  { of: "ours", figure: "deltasLongestBlockMsReadingFollower", atMost: 20 },
  { of: "ours", figure: "deltasLongestBlockMsStalledFollower", atMost: 20 },
  // Ten tabs with fifty watched runs each, to the receipt.
  { of: "ours", figure: "browserStopP99Ms", atMost: 100 },
  { of: "ours", figure: "browserStopSessionP99Ms", atMost: 100 },
  { of: "ours", figure: "noSocketStopP99Ms", atMost: 100 },
  { of: "ours", figure: "noSocketStopSessionP99Ms", atMost: 100 },
  { of: "ratios", figure: "runAfter1000Over10", atMost: 1.2 },
  { of: "ratios", figure: "runAfter10000Over10", atMost: 1.2 },
];

export async function stopping(progress: (line: string) => void): Promise<JudgedFigures> {
  const all = await runParts(import.meta.url, PARTS, progress);
  const missed = GOALS.filter(({ of, figure, atMost }) => !((all[of][figure] ?? Number.NaN) <= atMost)).map(
    ({ of, figure, atMost }) => `${figure} is ${all[of][figure]}; the goal is at most ${atMost}.`,
  );
  return { ...all, missed };
}
