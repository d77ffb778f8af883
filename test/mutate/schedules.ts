// Schedules of the simulation as tests, for the hunt for mutants: a few at a time, so that the first bad one ends it.
import { expect, test } from "vitest";
import { runSeed } from "../../sim/random-schedule.ts";
import { FOCUSES } from "../../sim/schedule-options.ts";

const SEEDS_EACH = 8;
/** Of all kinds, and then of each kind that has something of its own. */
const TESTS = 25;
const TESTS_OF_A_KIND = 10;

for (const focus of [undefined, ...FOCUSES]) {
  for (let number = 0; number < (focus === undefined ? TESTS : TESTS_OF_A_KIND); number += 1) {
    const from = 1 + number * SEEDS_EACH;
    const kind = focus === undefined ? "" : ` about ${focus}`;
    test(`schedules ${from} to ${from + SEEDS_EACH - 1}${kind} break no guarantee`, async () => {
      for (let seed = from; seed < from + SEEDS_EACH; seed += 1) {
        expect((await runSeed(seed, "hash", focus)).violations).toEqual([]);
      }
    });
  }
}
