// Figures of a run of the suite: the number of trees, the survivors, the times.
import type { Mechanism, Tier } from "../../src/ports/spawner.ts";

export interface Figures {
  readonly tier: Tier;
  readonly trees: number;
  readonly shapes: number;
  /** Processes that were alive when their tree was reported ended, beyond the documented ones. */
  readonly survivors: number;
  /** From the stop to the verified end: by SIGKILL for shapes that ignore SIGTERM, else by SIGTERM. */
  readonly cancelToDeadP50Ms: number | undefined;
  readonly cancelToDeadP99Ms: number | undefined;
  /** The same for trees that were killed at once. Undefined, and omitted: there was none. */
  readonly forcedP50Ms: number | undefined;
  readonly forcedP99Ms: number | undefined;
  /** Processes of a killed server that only the next one has ended; not included in `survivors`. */
  readonly endedAtNextStart: number | undefined;
  /** Documented survivors, by shape, with the reason. */
  readonly documentedLeaks: Readonly<Record<string, string>>;
  /** Other survivors, by shape. */
  readonly survived: Readonly<Record<string, number>>;
  /** Other failures. */
  readonly troubles: readonly string[];
}

export interface TreeResult {
  readonly shape: string;
  readonly ms: number | undefined;
  readonly forced: boolean;
  readonly survivors: number;
  readonly leak: string | undefined;
  readonly trouble: string | undefined;
  /** After the kill of a server: how many only the next one has ended. */
  readonly atNextStart?: number;
}

export function summarise(tier: Tier, results: readonly TreeResult[]): Figures {
  const timed = results.flatMap(({ ms }) => ms ?? []);
  const forced = results.flatMap(({ ms, forced: wasForced }) => (wasForced ? (ms ?? []) : []));
  const leaks = results.flatMap(({ shape, survivors, leak }) =>
    survivors > 0 && leak !== undefined ? [[shape, leak] as const] : [],
  );
  return {
    tier,
    trees: results.length,
    shapes: new Set(results.map(({ shape }) => shape)).size,
    survivors: results.reduce((sum, { survivors, leak }) => sum + (leak === undefined ? survivors : 0), 0),
    cancelToDeadP50Ms: percentile(timed, 0.5),
    cancelToDeadP99Ms: percentile(timed, 0.99),
    forcedP50Ms: percentile(forced, 0.5),
    forcedP99Ms: percentile(forced, 0.99),
    endedAtNextStart: sumOf(results.map(({ atNextStart }) => atNextStart)),
    documentedLeaks: Object.fromEntries(leaks),
    survived: Object.fromEntries(survivedBy(results)),
    troubles: results.flatMap(({ trouble }) => trouble ?? []),
  };
}

/** Undefined, and omitted: not measured. */
function sumOf(counts: readonly (number | undefined)[]): number | undefined {
  const known = counts.filter((count) => count !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, count) => sum + count, 0);
}

function survivedBy(results: readonly TreeResult[]): ReadonlyMap<string, number> {
  const by = new Map<string, number>();
  for (const { shape, survivors, leak } of results) {
    if (survivors > 0 && leak === undefined) by.set(shape, (by.get(shape) ?? 0) + survivors);
  }
  return by;
}

/** The whole suite in one object: the figures of the best mechanism at the top, all of them below. */
export function report(
  all: ReadonlyMap<Mechanism, Figures>,
  about: { readonly seed: number; readonly parentKill: boolean },
): object {
  const [best] = all;
  if (best === undefined) throw new Error("No mechanism was tried.");
  const [mechanism, figures] = best;
  return { suite: "trees", ...about, mechanism, ...figures, mechanisms: Object.fromEntries(all) };
}

export function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return value === undefined ? undefined : Math.round(value * 10) / 10;
}
