// Many seeds, one after the other, in this thread.
import type { Violation } from "./oracle.ts";
import { runSeed } from "./random-schedule.ts";

export interface Found {
  readonly seed: number;
  readonly violations: readonly Violation[];
}

export interface Searched {
  readonly schedules: number;
  readonly hashes: readonly string[];
  readonly found: readonly Found[];
}

export interface SearchOptions {
  readonly from: number;
  readonly count: number;
  /** Stop after this many seeds with violations: one mistake usually has many. */
  readonly foundMax?: number;
  /** Stop when this says so. */
  readonly enough?: () => boolean;
  readonly progress?: (schedules: number) => void;
}

const PROGRESS_EVERY = 250;

export async function searchSeeds(options: SearchOptions): Promise<Searched> {
  const { from, count, foundMax = 5, enough, progress } = options;
  const hashes: string[] = [];
  const found: Found[] = [];
  let schedules = 0;
  while (schedules < count && found.length < foundMax && enough?.() !== true) {
    const seed = from + schedules;
    const { hash, violations } = await runSeed(seed);
    schedules += 1;
    hashes.push(hash);
    if (violations.length > 0) found.push({ seed, violations });
    if (schedules % PROGRESS_EVERY === 0) progress?.(schedules);
  }
  return { schedules, hashes, found };
}
