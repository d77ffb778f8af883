// Schedules of the simulation as tests, for the hunt for mutants: a few at a time, so that the first bad one ends it.
import { expect, test } from "vitest";
import { runSeed } from "../../sim/random-schedule.ts";

const SEEDS_EACH = 8;
const TESTS = 25;

for (let number = 0; number < TESTS; number += 1) {
  const from = 1 + number * SEEDS_EACH;
  test(`schedules ${from} to ${from + SEEDS_EACH - 1} break no guarantee`, async () => {
    for (let seed = from; seed < from + SEEDS_EACH; seed += 1) expect((await runSeed(seed)).violations).toEqual([]);
  });
}
