// The whole house: the real agent loop, clocks that jump, whoever follows. Short versions of the long searches.
import { expect, test } from "vitest";
import { runSeed, type ScheduleResult } from "./random-schedule.ts";
import { FOCUSES } from "./schedule-options.ts";
import { searchSeeds } from "./search.ts";

test.each([
  ["model", 500],
  ["time", 400],
  ["followers", 400],
] as const)(
  "schedules about %s break no guarantee, each seed the same twice",
  { timeout: 120_000 },
  async (focus, count) => {
    const { found, schedules } = await searchSeeds({ from: 1, count, focus, twice: true });
    expect(found).toEqual([]);
    expect(schedules).toBe(count);
  },
);

const times = (results: readonly ScheduleResult[], what: RegExp): number =>
  results.reduce((sum, { lines }) => sum + lines.filter((line) => what.test(line)).length, 0);

test("what these schedules are about does happen in them", { timeout: 60_000 }, async () => {
  const all: ScheduleResult[] = [];
  for (const focus of FOCUSES) for (let seed = 1; seed <= 100; seed += 1) all.push(await runSeed(seed, "lines", focus));
  expect(times(all, /asks the model, turn/)).toBeGreaterThan(100);
  expect(times(all, /asks the model, compaction/)).toBeGreaterThan(5);
  expect(times(all, /lets go of the model/)).toBeGreaterThan(20);
  expect(times(all, /^late /)).toBeGreaterThan(0);
  expect(times(all, /^jump /)).toBeGreaterThan(50);
  expect(times(all, /^sleep .*taken/)).toBeGreaterThan(5);
  expect(times(all, /^tick .*late by/)).toBeGreaterThan(20);
  expect(times(all, /^leave /)).toBeGreaterThan(50);
  expect(times(all, /^trim /)).toBeGreaterThan(20);
});

test("a seed is printed with everything that it has picked", async () => {
  const { options, lines } = await runSeed(3, "lines", "model");
  expect(JSON.parse(lines[0] ?? "")).toEqual(JSON.parse(JSON.stringify(options)));
  expect(options.model).toMatchObject({ attemptsMax: expect.any(Number), parallelMax: expect.any(Number) });
});
