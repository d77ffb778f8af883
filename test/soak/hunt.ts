// Soaks the server for a moment with mistakes in it, and answers what has given them away.
import type { Mistake } from "../mistakes/mistake.ts";
import { SMALL_CACHES, SMALL_SHELF } from "./mistakes.ts";
import { soak } from "./soak.ts";
import { verdictOf } from "./verdict.ts";

/** What is left by mistake does not go away, however long one waits. */
const REST_MS = 2_000;

/** By what each of them is found out, whatever else is seen of it. */
const SEEN: Readonly<Record<string, RegExp>> = {
  "leak-listener": /^Feed: /,
  "leak-fd": /^open (stdout|all)\.log: /,
  "leak-timer": /^(Timeout|KeptFile): /,
  zombie: /^zombies: /,
};

/** What has given each of them away, all of them made at once; undefined: it was missed. */
export async function hunt(
  mistakes: readonly Mistake[],
  seed: number,
): Promise<ReadonlyMap<string, string | undefined>> {
  const soaked = await soak({
    ...{ seed, lanes: 4, restMs: REST_MS },
    mistakes: [SMALL_SHELF, SMALL_CACHES, ...mistakes],
    work: { kind: "rounds", rounds: 2, faults: [] },
  });
  const { findings } = verdictOf(soaked);
  return new Map(mistakes.map(({ name }) => [name, findings.find((finding) => SEEN[name]?.test(finding))]));
}
