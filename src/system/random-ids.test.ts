import { expect, test } from "vitest";
import { randomIds } from "./random-ids.ts";

/** More than one pool of random bytes serves. */
const MANY = 1_000;

const at = (ms: number) => randomIds({ now: () => ms });
/** The part of an id that encodes the time. */
const timeOf = (id: string): string => id.slice(4, 13);

test("an id is its prefix, the time and random characters, of fixed length and safe in a URL", () => {
  for (const ms of [0, 1, 1_800_000_000_000, 2 ** 45 - 1]) expect(at(ms).make("run_")).toMatch(/^run_[0-9a-v]{24}$/);
  expect(at(0).make("ses_")).toMatch(/^ses_0{9}/);
});

test("ids sort by the time of their creation", () => {
  const times = [0, 1, 31, 32, 1_000, 1_800_000_000_000, 1_800_000_000_001, 2 ** 45 - 1];
  const ids = times.map((ms) => at(ms).make("run_"));
  expect(ids.map(timeOf)).toEqual(ids.map(timeOf).toSorted());
  expect(new Set(ids.map(timeOf)).size).toBe(times.length);
});

test("a clock before 1970, or with fractions of a millisecond, makes valid ids", () => {
  expect(timeOf(at(-5).make("run_"))).toBe("000000000");
  expect(timeOf(at(33.7).make("run_"))).toBe("000000011");
  // In the year 3085 the order wraps around; the length stays.
  expect(timeOf(at(2 ** 45 + 1).make("run_"))).toBe("000000001");
});

test("ids of the same millisecond are unique, and every position takes every character", () => {
  const ids = randomIds({ now: () => 7 });
  const made = Array.from({ length: MANY }, () => ids.make("run_").slice(13));
  expect(new Set(made).size).toBe(MANY);
  // Even the first id of each process is unique.
  expect(new Set(Array.from({ length: 9 }, () => at(7).make("run_"))).size).toBe(9);
  for (let place = 0; place < 15; place += 1) {
    // The probability that a character is missing by chance is 10 to the power of -11.
    expect(new Set(made.map((one) => one[place])).size).toBe(32);
  }
});

test("a digest is SHA-256, in characters that are safe in a URL", () => {
  expect(at(0).digest("abc")).toBe("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
});
