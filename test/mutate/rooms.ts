// What is mutated, which tests look for the mutants, and what must be reached.
import { globSync } from "node:fs";

export interface Hunt {
  readonly mutate: readonly string[];
  /** In this order: those that are quick and say most come first. */
  readonly tests: readonly string[];
}

export interface Room extends Hunt {
  readonly name: "core" | "engine" | "store" | "process";
  /** Files that only whole trees of real programs can test: the mutants of all others need not wait for those. */
  readonly besides?: Hunt;
  /** Percent. Undefined: measured and looked at, but not promised. */
  readonly scoreMin: number | undefined;
}

export const filesOf = ({ mutate, besides }: Room): readonly string[] => [...mutate, ...(besides?.mutate ?? [])];

/** Go through so much that a mutant they let live would cost a minute. What they find is found besides. */
const LONG = [
  ...["src/core/phases.test.ts", "src/core/histories.test.ts"],
  ...["src/process/output/output-fuzz.test.ts", "src/process/output/capture-gibibyte.test.ts"],
];
/** Start real programs, or wait for real files, once for each mutant. */
const REAL = [
  ...["src/library/processes.test.ts", "src/library/directories.test.ts"],
  ...["src/agent/process-tools-real.test.ts", "src/agent/untrusted.test.ts"],
  // Its threads are other threads' code to the runner. threaded-store.test.ts puts the same contract to it in one.
  "src/store/sqlite/sqlite-store.test.ts",
];

/** Hold whole trees, with a server around them: a third of a second for each test, and more. */
const TREES = {
  mutate: [
    ...["anchor", "census", "doctor", "group", "mechanisms", "namespace-tree", "open-files", "platform", "polite"],
    ...["proc-sight", "ps-sight", "ps-watchdog", "self-test", "spawner", "start", "terminal", "tiers", "unshare"],
    "watchdog",
  ].map((name) => `src/process/${name}.ts`),
  tests: [
    ...["anchor", "group", "namespace-tree", "polite", "watchdog", "mechanisms", "profile", "ps-sight", "self-test"],
    ...["spawner", "spawner-start", "spawner-end"],
  ].map((name) => `src/process/${name}.test.ts`),
};

/** Look for the same mutants without any. */
const QUICK = ["bubblewrap", "census", "platform", "proc-sight", "start", "terminal", "tiers", "unshare"].map(
  (name) => `src/process/${name}.test.ts`,
);

const sources = (folder: string): readonly string[] =>
  globSync(`${folder}/**/*.ts`)
    .filter((file) => !/\.test\.ts$|\/contract(-[a-z]+)?\.ts$/.test(file))
    .toSorted();

const tests = (...folders: readonly string[]): readonly string[] =>
  folders
    .flatMap((folder) => globSync(`${folder}/**/*.test.ts`).toSorted())
    .filter((file) => !LONG.includes(file) && !REAL.includes(file));

/** Relative to the repository. */
export const rooms = (): readonly Room[] => [
  { name: "core", mutate: sources("src/core"), tests: tests("src/core"), scoreMin: 85 },
  {
    name: "engine",
    mutate: sources("src/engine"),
    tests: [...tests("src/engine", "src/library", "src/agent"), "test/mutate/schedules.ts"],
    scoreMin: 85,
  },
  { name: "store", mutate: sources("src/store"), tests: tests("src/store"), scoreMin: 85 },
  {
    name: "process",
    mutate: sources("src/process").filter((file) => !TREES.mutate.includes(file)),
    tests: tests("src/process").filter((file) => !TREES.tests.includes(file)),
    besides: { ...TREES, tests: [...QUICK, ...TREES.tests] },
    scoreMin: undefined,
  },
];
