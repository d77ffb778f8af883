// Lets the crash loop loose on a server with one mistake in it.
import { readFileSync } from "node:fs";
import { patch } from "../../sim/patch.ts";
import { crashLoop } from "./loop.ts";
import type { Mistake } from "./mistakes.ts";

/** By then each of them has shown itself several times over. */
const KILLS_MAX = 50;

/** What gave it away; undefined if nothing did. */
export async function hunt(
  { name, points, edits }: Mistake,
  seed: number,
  stop?: AbortSignal,
): Promise<string | undefined> {
  // A change that does not fit any more would keep every server from starting, and pass for a mistake that was found.
  for (const edit of edits) patch(readFileSync(new URL(`../../${edit.file}`, import.meta.url), "utf8"), edit);
  let by: string | undefined;
  // Gone through again and again.
  const again = points === undefined ? undefined : [Array.from({ length: KILLS_MAX }, () => points).flat()];
  await crashLoop({
    ...{ kills: KILLS_MAX, seed, lanes: 1, mistake: name, points: again, roundKills: 10 },
    onFinding: ({ kind, message }) => {
      by ??= `${kind}: ${message}`;
    },
    untilFound: true,
    keep: "never",
    stop,
  });
  return by;
}
