// The list of known failures: what is promised for each, and which tests and suites show it. The rows are in
// failure-map.json; this file reads them.
import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The long suites, which are commands. All but `trees` have known mistakes (known-mistakes.ts). Those with a folder
 * have other points as well, which are string literals in it: kill points, shapes of process trees, stories.
 */
export const SUITES = {
  sim: undefined,
  acp: undefined,
  soak: undefined,
  trees: "test/trees/",
  crash: "test/crash/",
  power: "test/power/",
  faults: "test/faults/",
} as const satisfies Readonly<Record<string, string | undefined>>;

export type Suite = keyof typeof SUITES;

export interface ShownBySuite {
  readonly suite: Suite;
  /** A known mistake that the suite finds, a point at which it kills, a shape, a story. */
  readonly point: string;
}

export interface FailureRow {
  readonly id: string;
  readonly failure: string;
  readonly promise: string;
  /** The ids of the tests that show it: `{ meta: { id } }` in the options of a test (test-ids.ts). */
  readonly tests?: readonly string[];
  readonly suites?: readonly ShownBySuite[];
  /** Why no test shows it. Begins with "not yet" where it will apply once something is built. */
  readonly doesNotApply?: string;
  /** What is not covered, or differs from what one might expect. */
  readonly limit?: string;
}

/** The number of rows in each part of the list. */
const PARTS = { A: 16, B: 9, C: 12, D: 15, E: 10, F: 13, G: 26, H: 12, I: 4, J: 12, K: 12 } as const;

/** Every id of a row, in order. */
export const IDS: readonly string[] = Object.entries(PARTS).flatMap(([part, count]) =>
  Array.from({ length: count }, (_, index) => `${part}${index + 1}`),
);

/** The rows, in the order of the file. */
export function failureMap(): readonly FailureRow[] {
  // Decoding: the test of the map checks the shape of the file.
  return JSON.parse(readFileSync(join(import.meta.dirname, "failure-map.json"), "utf8")) as readonly FailureRow[];
}

export interface MapCounts {
  readonly entries: number;
  readonly mapped: number;
  readonly doesNotApply: number;
  /** The ones among `doesNotApply` that will apply later. */
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
