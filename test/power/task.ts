// What a worker of the suite is asked to do, and what it tells meanwhile.
import type { EditedModule } from "../mistakes/mistake.ts";
import type { Finding } from "./check.ts";
import type { Lie } from "./sim-disk.ts";

export interface Task {
  readonly seed: number;
  /** Numbers of worlds: every `step`-th from `first` on, below `end`. */
  readonly first: number;
  readonly step: number;
  readonly end: number;
  readonly cutsPerWorld: number;
  /** Modules that differ from those on disk: with a mistake, or with sizes that a short life can fill. */
  readonly modules: readonly EditedModule[];
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
