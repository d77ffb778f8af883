// What processes cost: how soon a tree is dead, what a flood of output does to everybody else, what a start takes.
// Each part runs in a process of its own, so that none inherits another's heap.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Figures, JudgedFigures } from "../report.ts";

const run = promisify(execFile);
const PARTS = ["cancel-to-dead", "flood", "start"] as const;

/** The goals, each with the figure it is about. */
const GOALS: readonly { readonly of: keyof Figures; readonly figure: string; readonly atMost: number }[] = [
  { of: "ratios", figure: "cancelToDeadVsKernel", atMost: 2 },
  { of: "ours", figure: "floodMemoryGrowthMB", atMost: 64 },
  { of: "ours", figure: "floodOtherSessionsP99Ms", atMost: 50 },
];

export async function processes(progress: (line: string) => void): Promise<JudgedFigures> {
  const all: { -readonly [K in keyof Figures]: Record<string, number> } = {
    ours: {},
    peers: {},
    floor: {},
    ratios: {},
  };
  for (const part of PARTS) {
    progress(`${part} …`);
    const file = new URL(`./${part}.ts`, import.meta.url).pathname;
    const { stdout } = await run(process.execPath, ["--expose-gc", file], { maxBuffer: 2 ** 24 });
    const figures: Partial<Figures> = JSON.parse(stdout);
    for (const key of ["ours", "peers", "floor", "ratios"] as const) Object.assign(all[key], figures[key]);
    progress(`${part}: ${JSON.stringify(figures.ratios ?? figures.ours)}`);
  }
  const missed = GOALS.filter(({ of, figure, atMost }) => !((all[of][figure] ?? Number.NaN) <= atMost)).map(
    ({ of, figure, atMost }) => `${figure} is ${all[of][figure]}; the goal is at most ${atMost}.`,
  );
  return { ...all, missed };
}
