// What is mutated, which tests look for the mutants, and the score that must be reached.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../fixtures/repository.ts";

export interface Room {
  readonly name: "core" | "engine" | "store" | "process";
  readonly mutate: readonly string[];
  /** In this order: those that are quick and say most come first. */
  readonly tests: readonly string[];
  /** Percent. */
  readonly scoreMin: number;
}

/** Percent that a sample must reach. A single file may have a few mutants that change nothing. */
export const SAMPLE_SCORE_MIN = 50;
/** Lines of a file that a sample may choose: large enough to have mutants, small enough for a few seconds. */
const SAMPLE_LINES = { min: 60, max: 220 };

/** Go through so much that a mutant they let live would cost a minute. What they find is found besides. */
const TOO_LONG = /(?:phases|histories|output-fuzz|capture-gibibyte)\.test\.ts$/;
/** Its threads are other threads' code to the runner. threaded-store.test.ts puts the same contract to it in one. */
const OTHER_THREADS = /sqlite-store\.int\.test\.ts$/;

const sources = (folder: string): readonly string[] =>
  globSync(`${folder}/**/*.ts`, { cwd: ROOT })
    .filter((file) => !/\.test\.ts$|\/contract\//.test(file))
    .toSorted();

const found = (folders: readonly string[], name: string, ...left: readonly RegExp[]): readonly string[] =>
  folders
    .flatMap((folder) => globSync(`${folder}/**/${name}`, { cwd: ROOT }).toSorted())
    .filter((file) => !left.some((pattern) => pattern.test(file)));

const unit = (...folders: readonly string[]): readonly string[] =>
  found(folders, "*.test.ts", /\.(int|slow)\.test\.ts$/, TOO_LONG);
const integration = (...folders: readonly string[]): readonly string[] =>
  found(folders, "*.int.test.ts", OTHER_THREADS);

/** Paths are relative to the repository. */
export const rooms = (): readonly Room[] => [
  { name: "core", mutate: sources("src/core"), tests: unit("src/core"), scoreMin: 95 },
  {
    name: "engine",
    mutate: sources("src/engine"),
    tests: [...unit("src/engine", "src/sdk", "src/agent"), "test/mutate/schedules.ts"],
    scoreMin: 95,
  },
  {
    name: "store",
    mutate: sources("src/store"),
    tests: [...unit("src/store"), ...integration("src/store")],
    scoreMin: 92,
  },
  {
    name: "process",
    mutate: sources("src/process"),
    tests: [...unit("src/process"), ...integration("src/process")],
    scoreMin: 90,
  },
];

/** A file of the core, chosen by the seed. */
export function sampleOf(seed: number): string {
  const files = sources("src/core").filter((file) => {
    const lines = readFileSync(join(ROOT, file), "utf8").split("\n").length;
    return lines >= SAMPLE_LINES.min && lines <= SAMPLE_LINES.max && hasDecisions(file);
  });
  const file = files[seed % files.length];
  if (file === undefined) throw new Error("The core has no file of the size that a sample takes.");
  return file;
}

/** Files of types and constants have nothing that could be mutated. */
const hasDecisions = (file: string): boolean =>
  /\breturn\b[\s\S]*\breturn\b/.test(readFileSync(join(ROOT, file), "utf8"));
