// Many seeds, one after the other, in this thread.
import type { Focus } from "./flavour.ts";
import type { Violation } from "./oracle.ts";
import { runSeed } from "./random-schedule.ts";

export interface Found {
  readonly seed: number;
  readonly violations: readonly Violation[];
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
  /** Told now and then: how far it is, and the traces since it was told last. */
  readonly progress?: (schedules: number, hashes: readonly string[]) => void;
}

const PROGRESS_EVERY = 250;

export async function searchSeeds({ from, count, foundMax = 5, focus, progress }: SearchOptions): Promise<Searched> {
  const found: Found[] = [];
  let hashes: string[] = [];
  let schedules = 0;
  while (schedules < count && found.length < foundMax) {
    const seed = from + schedules;
    const { hash, violations } = await runSeed(seed, "hash", focus);
    schedules += 1;
    hashes.push(hash);
    if (violations.length > 0) found.push({ seed, violations });
    if (hashes.length < PROGRESS_EVERY) continue;
    progress?.(schedules, hashes);
    hashes = [];
  }
  progress?.(schedules, hashes);
  return { schedules, found };
}
