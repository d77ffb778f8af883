// Whether a soak holds, and the line that says so.
import { countOf } from "./level.ts";
import { type Slope, slopeOf } from "./slope.ts";
import type { Soaked } from "./soak.ts";

/**
 * How fast memory may grow. The log, its index and the files with output grow on the disk, as they should; in memory
 * there is only what is bounded: pages of the database, lanes that rest, the last events of the house. So nothing in it
 * depends on how long the server has run. A short soak cannot tell one megabyte in an hour from none. It holds if the
 * growth is not shown to be more than that: the lower end of its confidence interval is what is compared.
 */
export const RSS_MB_PER_HOUR_MAX = 1;

/** The same for what is on the heap after a collection, where nothing of the allocator's is in the way. */
export const HEAP_MB_PER_HOUR_MAX = 1;

/** What one run may leave on the heap at rest, over a fixed amount of work: less than half of what a live one takes. */
export const HEAP_BYTES_PER_RUN_MAX = 2_048;

/** Work after which even a heap of constant size is larger or smaller by this much. */
export const HEAP_NOISE_BYTES = 512 * 1_024;

const MB = 1_000_000;

export interface Verdict {
  readonly holds: boolean;
  readonly findings: readonly string[];
  readonly figures: Readonly<Record<string, unknown>>;
}

export function verdictOf(soaked: Soaked): Verdict {
  const { tally, leaks, survivors, first, second, runsBetween } = soaked;
  const [rss, heap, descriptors] = [soaked.rss, soaked.heap, soaked.descriptors].map(slopeOf);
  const heapBytesPerRun = (second.memory.heapBytes - first.memory.heapBytes) / Math.max(1, runsBetween);
  const findings = [
    ...leaks.map(({ what, before, after }) => `${what}: ${before} at the first rest, ${after} at the second`),
    ...survivors.map((command) => `left behind when the server had ended: ${command}`),
    ...tally.wrong,
    ...tooFast("RSS", rss, RSS_MB_PER_HOUR_MAX),
    ...tooFast("the heap", heap, HEAP_MB_PER_HOUR_MAX),
    ...tooMuch(soaked),
  ];
  const { runs, sessions, cancels, processes, faults, refused } = tally;
  return {
    holds: findings.length === 0,
    findings,
    figures: {
      rssSlopeMBPerHour: inMB(rss?.perHour),
      rssSlopeErrorMBPerHour: inMB(rss?.errorPerHour),
      leaks: countOf(leaks) + survivors.length,
      ...{ runs, sessions, events: soaked.events, cancels, processes, faults, refused, wrong: tally.wrong.length },
      heapSlopeMBPerHour: inMB(heap?.perHour),
      heapSlopeErrorMBPerHour: inMB(heap?.errorPerHour),
      heapBytesPerRun: Math.round(heapBytesPerRun),
      fdSlopePerHour: descriptors === undefined ? undefined : Math.round(descriptors.perHour * 10) / 10,
      zombies: second.outside.zombies,
      rssMB: inMB(second.outside.rssBytes),
      heapFirstMB: inMB(first.memory.heapBytes),
      heapMB: inMB(second.memory.heapBytes),
      descriptors: second.outside.descriptors,
    },
  };
}

function tooFast(what: string, slope: Slope | undefined, maxMB: number): readonly string[] {
  if (slope === undefined || slope.atLeastPerHour <= maxMB * MB) return [];
  const [least, most] = [slope.atLeastPerHour, slope.perHour].map(inMB);
  return [`${what} grows by ${most} MB an hour, and by ${least} at least; ${maxMB} is the limit`];
}

/** Only over a fixed amount of work: there caches are small and full before the first rest. */
function tooMuch({ first, second, runsBetween, rss }: Soaked): readonly string[] {
  if (rss.length > 0) return [];
  const grown = second.memory.heapBytes - first.memory.heapBytes;
  const allowed = HEAP_NOISE_BYTES + runsBetween * HEAP_BYTES_PER_RUN_MAX;
  return grown <= allowed ? [] : [`the heap has grown by ${grown} bytes over ${runsBetween} runs; ${allowed} may be`];
}

const inMB = (bytes: number | undefined): number | undefined =>
  bytes === undefined ? undefined : Math.round((bytes / MB) * 100) / 100;
