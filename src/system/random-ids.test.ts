import { expect, test } from "vitest";
import { randomIds } from "./random-ids.ts";

/** More than are drawn from the kernel at once. */
const MANY = 1_000;

const at = (ms: number) => randomIds({ now: () => ms });
/** What stands for the time, behind the prefix. */
const timeOf = (id: string): string => id.slice(4, 13);

test("an id is its prefix, the time and chance, always as long, in letters that a link takes", () => {
  for (const ms of [0, 1, 1_800_000_000_000, 2 ** 45 - 1]) expect(at(ms).make("run_")).toMatch(/^run_[0-9a-v]{24}$/);
  expect(at(0).make("ses_")).toMatch(/^ses_0{9}/);
});

test("ids are in the order of the times at which they were made", () => {
  const times = [0, 1, 31, 32, 1_000, 1_800_000_000_000, 1_800_000_000_001, 2 ** 45 - 1];
  const ids = times.map((ms) => at(ms).make("run_"));
  expect(ids.map(timeOf)).toEqual(ids.map(timeOf).toSorted());
  expect(new Set(ids.map(timeOf)).size).toBe(times.length);
});

test("a clock that runs before 1970, or tells parts of a millisecond, makes ids like any other", () => {
  expect(timeOf(at(-5).make("run_"))).toBe("000000000");
  expect(timeOf(at(33.7).make("run_"))).toBe("000000011");
  // In the year 3085 the order begins anew; the length stays.
  expect(timeOf(at(2 ** 45 + 1).make("run_"))).toBe("000000001");
});

test("no two ids of one moment are the same, and every place of one takes every letter", () => {
  const ids = randomIds({ now: () => 7 });
  const made = Array.from({ length: MANY }, () => ids.make("run_").slice(13));
  expect(new Set(made).size).toBe(MANY);
  // Also the first of each life.
  expect(new Set(Array.from({ length: 9 }, () => at(7).make("run_"))).size).toBe(9);
  for (let place = 0; place < 15; place += 1) {
    // That one of them is missing by chance happens once in 10 to the 11.
    expect(new Set(made.map((one) => one[place])).size).toBe(32);
  }
});

test("a digest is that of SHA-256, in letters that a link takes", () => {
  expect(at(0).digest("abc")).toBe("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
});
