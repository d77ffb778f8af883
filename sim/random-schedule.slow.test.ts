import { expect, test } from "vitest";
import { runSeed } from "./random-schedule.ts";
import { searchSeeds } from "./search.ts";

test("2,000 seeded schedules of the real engine break no guarantee", { timeout: 60_000 }, async () => {
  const traces = new Set<string>();
  const progress = (_: number, hashes: readonly string[]): void => {
    for (const hash of hashes) traces.add(hash);
  };
  const { schedules, found } = await searchSeeds({ from: 1, count: 2_000, progress });
  expect(found).toEqual([]);
  expect(schedules).toBe(2_000);
  expect(traces.size).toBeGreaterThan(1_990);
});

test("the same seed is the same schedule, another seed is another", async () => {
  for (let seed = 1; seed <= 100; seed += 1) {
    const [one, two] = [await runSeed(seed, "lines"), await runSeed(seed, "lines")];
    expect(one.lines).toEqual(two.lines);
    expect(one.hash).toBe(two.hash);
  }
  expect((await runSeed(1)).hash).not.toBe((await runSeed(2)).hash);
});

test("keeping the lines changes nothing", async () => {
  expect((await runSeed(7, "lines")).hash).toBe((await runSeed(7)).hash);
});
