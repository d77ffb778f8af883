// What processes cost: how soon a tree is dead, what a flood of output does to everybody else, what a start takes.
import { runParts } from "../parts.ts";
import type { Figures, JudgedFigures } from "../report.ts";

const PARTS = ["cancel-to-dead", "flood", "start"];

/** The goals, each with the figure it is about. */
const GOALS: readonly { readonly of: keyof Figures; readonly figure: string; readonly atMost: number }[] = [
  { of: "ratios", figure: "cancelToDeadVsKernel", atMost: 2 },
  { of: "ours", figure: "floodMemoryGrowthMB", atMost: 64 },
  { of: "ours", figure: "floodOtherSessionsP99Ms", atMost: 50 },
];

export async function processes(progress: (line: string) => void): Promise<JudgedFigures> {
  const all = await runParts(import.meta.url, PARTS, progress);
  const missed = GOALS.filter(({ of, figure, atMost }) => !((all[of][figure] ?? Number.NaN) <= atMost)).map(
    ({ of, figure, atMost }) => `${figure} is ${all[of][figure]}; the goal is at most ${atMost}.`,
  );
  return { ...all, missed };
}
