// Lets the crash loop loose on a server with one mistake in it.
import { editModules } from "../mistakes/mistake.ts";
import { crashLoop } from "./loop.ts";
import type { Mistake } from "./mistakes.ts";

/** By then each of them has shown itself several times over. */
const KILLS_MAX = 50;

/** What gave it away; undefined if nothing did. */
export async function hunt(mistake: Mistake, seed: number, stop?: AbortSignal): Promise<string | undefined> {
  const { points } = mistake;
  let by: string | undefined;
  // Gone through again and again.
  const again = points === undefined ? undefined : [Array.from({ length: KILLS_MAX }, () => points).flat()];
  await crashLoop({
    ...{ kills: KILLS_MAX, seed, lanes: 1, modules: editModules([mistake]), points: again, roundKills: 10 },
    onFinding: ({ kind, message }) => {
      by ??= `${kind}: ${message}`;
    },
    untilFound: true,
    keep: "never",
    stop,
  });
  return by;
}
