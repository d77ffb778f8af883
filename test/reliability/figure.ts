// A figure: what one suite said when it was run, where, when and on which commit. Kept as JSON in docs/figures.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../fixtures/repository.ts";

export const FIGURES_FOLDER = "docs/figures";

export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryGB: number;
  readonly kernel: string;
  readonly node: string;
  readonly sqlite: string;
}

export type Result = Readonly<Record<string, unknown>>;

export interface Figure {
  /** As it is typed. */
  readonly command: string;
  /** The last line it has printed. */
  readonly result: Result;
  readonly exitCode: number;
  /** ISO, UTC. */
  readonly startedAt: string;
  readonly minutes: number;
  /** Short; with "+changes" if something under src, sim or test was not committed. */
  readonly commit: string;
  readonly machine: Machine;
}

export type Figures = ReadonlyMap<string, Figure>;

/** By the name of the suite. */
export function readFigures(folder: string = join(ROOT, FIGURES_FOLDER)): Figures {
  if (!existsSync(folder)) return new Map();
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return new Map(
    names
      .toSorted()
      .map((name) => [name.replace(/\.json$/, ""), decode(name, readFileSync(join(folder, name), "utf8"))]),
  );
}

/** Anything that is not whole is refused: a page must not be made of half a figure. */
export function decode(name: string, text: string): Figure {
  const given: unknown = JSON.parse(text);
  const machine = field(given, "machine");
  const whole =
    ["command", "startedAt", "commit"].every((key) => typeof field(given, key) === "string") &&
    ["exitCode", "minutes"].every((key) => typeof field(given, key) === "number") &&
    typeof field(given, "result") === "object" &&
    ["cores", "memoryGB"].every((key) => typeof field(machine, key) === "number") &&
    ["cpu", "kernel", "node", "sqlite"].every((key) => typeof field(machine, key) === "string");
  if (!whole) throw new TypeError(`${name} is not a figure.`);
  return given as Figure;
}

export const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;

/** What stands there; a part of a part is named with a dot between. */
export const valueIn = (result: Result, path: string): unknown =>
  path.split(".").reduce<unknown>((value, name) => field(value, name), result);

export function numberIn(result: Result, name: string): number | undefined {
  const value = valueIn(result, name);
  return typeof value === "number" ? value : undefined;
}
