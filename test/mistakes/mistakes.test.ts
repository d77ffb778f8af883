// Known mistakes of all suites against the source as it is.
import { describe, expect, test } from "vitest";
import { CORPUS } from "../../sim/bugs/corpus.ts";
import { MISTAKES as ACP } from "../acp/mistakes.ts";
import { MISTAKES as CRASH } from "../crash/mistakes.ts";
import { MISTAKES as FAULTS } from "../faults/mistakes.ts";
import { MISTAKES as POWER, SMALL_RESERVE } from "../power/mistakes.ts";
import { MISTAKES as SHUTDOWN } from "../shutdown/mistakes.ts";
import { SMALL_CACHES, SMALL_SHELF, MISTAKES as SOAK } from "../soak/mistakes.ts";
import { changedBy } from "./changed-by.ts";
import { currentMarks, type Mistake } from "./mistake.ts";

const SUITES = { sim: CORPUS, acp: ACP, crash: CRASH, faults: FAULTS, power: POWER, shutdown: SHUTDOWN, soak: SOAK };
const SETTINGS: readonly Mistake[] = [SMALL_RESERVE, SMALL_CACHES, SMALL_SHELF];
const all = [...Object.values(SUITES).flat(), ...SETTINGS].filter(({ edits }) => Object.keys(edits).length > 0);

describe.each(Object.entries(SUITES))("the known mistakes of %s", (_, mistakes) => {
  test("have different names, and a sentence about each", () => {
    expect(new Set(mistakes.map(({ name }) => name)).size).toBe(mistakes.length);
    for (const { name, about } of mistakes) {
      expect(name).toMatch(/^[a-z]+(-[a-z]+)*$/);
      expect(about).toMatch(/^[A-Z].*\.$/);
    }
  });
});

test("the simulation has at least two hundred of them", () => {
  expect(CORPUS.length).toBeGreaterThanOrEqual(224);
});

test.each(all)("$name applies to the source and changes it", (mistake) => {
  expect(changedBy(mistake)).not.toEqual([]);
});

test("every mark in the source belongs to a known mistake", () => {
  const names = new Set(all.map(({ name }) => name));
  const unknown = [...currentMarks().names].filter((mark) => !names.has(mark.split(":")[0] ?? ""));
  expect(unknown).toEqual([]);
});
