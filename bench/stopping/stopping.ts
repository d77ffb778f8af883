// What must not grow: the cost of a delta with its followers, and of a run with the runs before it.
import { runParts } from "../parts.ts";
import type { Figures, JudgedFigures } from "../report.ts";

const PARTS = ["deltas", "runs"];

/** The goals, each with the figure it is about. */
const GOALS: readonly { readonly of: keyof Figures; readonly figure: string; readonly atMost: number }[] = [
  { of: "ratios", figure: "deltasReadingVsNone", atMost: 1.5 },
  { of: "ratios", figure: "deltasStalledVsNone", atMost: 1.5 },
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
