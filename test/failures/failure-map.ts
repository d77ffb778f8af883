// The list of what can fail, as rows: what is promised for each, and where that is shown. The rows are in
// failure-map.json; this file reads them.
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The long suites, which are commands, and where their points and known mistakes are named. */
export const SUITES = {
  sim: "sim/bugs",
  trees: "test/trees/shapes.ts",
  crash: "test/crash",
  power: "test/power",
  faults: "test/faults",
  soak: "test/soak",
} as const;

export type Suite = keyof typeof SUITES;

export interface ShownByTest {
  /** From the root of the repository. */
  readonly file: string;
  /** A title, or the beginning of one; with the titles around it, joined by " > ", where it alone is not enough. */
  readonly name: string;
}

export interface ShownBySuite {
  readonly suite: Suite;
  /** What it stands for in that suite: a known mistake it finds, a point it kills at, a shape, a story. */
  readonly point: string;
}

export interface FailureRow {
  readonly id: string;
  readonly failure: string;
  readonly promise: string;
  readonly tests?: readonly ShownByTest[];
  readonly suites?: readonly ShownBySuite[];
  /** Why nothing shows it. Begins with "not yet" where it will apply once something is built. */
  readonly doesNotApply?: string;
  /** What is not covered, or differs from what one might expect. */
  readonly limit?: string;
}

/** How many rows each part of the list has. */
const PARTS = { A: 16, B: 9, C: 12, D: 15, E: 10, F: 13, G: 26, H: 12, I: 4, J: 12, K: 12 } as const;

/** Every id there is, in order. */
export const IDS: readonly string[] = Object.entries(PARTS).flatMap(([part, count]) =>
  Array.from({ length: count }, (_, index) => `${part}${index + 1}`),
);

/** The rows, in the order of the file. */
export function failureMap(): readonly FailureRow[] {
  // Decoding: the shape of the file is held against this type by its test.
  return JSON.parse(readFileSync(join(import.meta.dirname, "failure-map.json"), "utf8")) as readonly FailureRow[];
}

export interface MapCounts {
  readonly entries: number;
  readonly mapped: number;
  readonly doesNotApply: number;
  /** Of those that do not apply: the ones that will. */
  readonly notYet: number;
}

export function countRows(rows: readonly FailureRow[]): MapCounts {
  const out = rows.filter(({ doesNotApply }) => doesNotApply !== undefined);
  return {
    entries: rows.length,
    mapped: rows.length - out.length,
    doesNotApply: out.length,
    notYet: out.filter(({ doesNotApply }) => doesNotApply?.startsWith("not yet") === true).length,
  };
}
