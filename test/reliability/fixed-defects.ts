// Defects that were found and fixed, from a data file: what was seen, the first version without it, what keeps it out.
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface FixedDefect {
  readonly kind: string;
  readonly symptom: string;
  readonly fixedIn: string;
  /** The file of a test that fails if it comes back. */
  readonly test: string;
  /** A part of its title as it is in the file, where one file has tests of many things. */
  readonly title?: string;
}

export function fixedDefects(): readonly FixedDefect[] {
  const text = readFileSync(join(import.meta.dirname, "fixed-defects.json"), "utf8");
  const rows = JSON.parse(text) as readonly (readonly [string, string, string, string])[];
  return rows.map(([kind, symptom, fixedIn, where]) => {
    const [test = "", title] = where.split(" › ");
    return { kind, symptom, fixedIn, test, ...(title === undefined ? {} : { title }) };
  });
}

export function defectTable(defects: readonly FixedDefect[]): string {
  const kinds = [...Map.groupBy(defects, ({ kind }) => kind)];
  const rows = kinds.flatMap(([kind, some]) =>
    some.map(
      ({ symptom, fixedIn, test }) => `| ${kind} | ${symptom.replaceAll("|", "\\|")} | ${fixedIn} | ${linked(test)} |`,
    ),
  );
  return [
    "## Fixed defects",
    "",
    "What was found by attacks, reviews and the suites above, by kind. Each has a test that fails if it comes back.",
    "",
    ...["| kind | symptom | fixed in | kept out by |", "|---|---|---|---|", ...rows],
  ].join("\n");
}

const linked = (test: string): string => `[${test.split("/").at(-1)}](../${test})`;
