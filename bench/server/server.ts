// What the server costs: fan-out to many, and how soon events arrive when everything is busy.
import { runParts } from "../parts.ts";
import type { Figures, JudgedFigures } from "../report.ts";

const PARTS = ["fan-out", "delivery"];

/** The goals, each with the figure it is about. Four fifths of a bare loop is a ratio of 1.25. */
const GOALS: readonly { readonly of: keyof Figures; readonly figure: string; readonly atMost: number }[] = [
  { of: "ratios", figure: "fanoutVsRawHttp", atMost: 1.25 },
  { of: "ours", figure: "deliveryP99Ms", atMost: 150 },
];

export async function server(progress: (line: string) => void): Promise<JudgedFigures> {
  const all = await runParts(import.meta.url, PARTS, progress);
  const missed = GOALS.filter(({ of, figure, atMost }) => !((all[of][figure] ?? Number.NaN) <= atMost)).map(
    ({ of, figure, atMost }) => `${figure} is ${all[of][figure]}; the goal is at most ${atMost}.`,
  );
  return { ...all, missed };
}
