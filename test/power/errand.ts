// What a worker of the suite is asked to do, and what it tells meanwhile.
import type { Edit } from "../../sim/bugs/bug.ts";
import type { Finding } from "./check.ts";
import type { Lie } from "./sim-disk.ts";

export interface Errand {
  readonly seed: number;
  /** Numbers of worlds: every `step`-th from `first` on, below `end`. */
  readonly first: number;
  readonly step: number;
  readonly end: number;
  readonly cutsPerWorld: number;
  /** Changes of the source: how the store is put wrong, or its sizes into what a short life can fill. */
  readonly edits: readonly Edit[];
  readonly lies: readonly Lie[];
}

export interface WorldReport {
  readonly world: number;
  readonly cuts: number;
  readonly acked: number;
  readonly moments: readonly string[];
  readonly digests: readonly string[];
  readonly findings: readonly Finding[];
}

/** The seed of one world: neighbours differ in everything. */
export const worldSeed = (seed: number, world: number): number => (Math.imul(seed, 0x9e3779b1) + world) >>> 0;

/** A reserve that is soon written and soon spent. Its size is no part of what is tested here. */
export const SMALL_RESERVE: Edit = {
  file: "src/store/sqlite/limits.ts",
  find: "export const RESERVE_BYTES = 1024 * 1024;",
  replace: "export const RESERVE_BYTES = 16 * 1024;",
};
