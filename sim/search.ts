// Many seeds, one after the other, in this thread.

import { runSeed } from "./random-schedule.ts";
import type { Focus, ScheduleOptions } from "./schedule-options.ts";
import type { Violation } from "./violation.ts";

export interface Found {
  readonly seed: number;
  readonly violations: readonly Violation[];
  /** What the seed has picked, in full. */
  readonly options: ScheduleOptions;
}

export interface Searched {
  readonly schedules: number;
  readonly found: readonly Found[];
}

export interface SearchOptions {
  readonly from: number;
  readonly count: number;
  /** Stop after this many seeds with violations: one mistake usually has many. */
  readonly foundMax?: number;
  /** What the schedules are to be about. */
  readonly focus?: Focus | undefined;
  /** Each seed twice: the same seed must be the same schedule. */
  readonly twice?: boolean | undefined;
  /** Told now and then: how far it is, and the traces since it was told last. */
  readonly progress?: (schedules: number, hashes: readonly string[]) => void;
}

const ANOTHER: Violation = { rule: "G34", message: "The same seed was another schedule the second time." };

/** Schedules between two words. */
export const PROGRESS_EVERY = 50;

export async function searchSeeds(search: SearchOptions): Promise<Searched> {
  const { from, count, foundMax = 5, focus, twice = false, progress } = search;
  const found: Found[] = [];
  let hashes: string[] = [];
  let schedules = 0;
  while (schedules < count && found.length < foundMax) {
    const seed = from + schedules;
    const { hash, violations: broken, options } = await runSeed(seed, "hash", focus);
    const again = twice ? await runSeed(seed, "hash", focus) : undefined;
    const violations = again === undefined || again.hash === hash ? broken : [...broken, ANOTHER];
    schedules += 1;
    hashes.push(hash);
    if (violations.length > 0) found.push({ seed, violations, options });
    if (hashes.length < PROGRESS_EVERY) continue;
    progress?.(schedules, hashes);
    hashes = [];
  }
  progress?.(schedules, hashes);
  return { schedules, found };
}
