import { expect, test } from "vitest";
import { ageOf } from "./age.ts";

test.each([
  [0, "0s"],
  [59_999, "59s"],
  [60_000, "1m"],
  [3_599_999, "59m"],
  [3_600_000, "1h"],
  [47 * 3_600_000, "47h"],
  [48 * 3_600_000, "2d"],
  [-5_000, "0s"],
])("%i ms ago is %s", (ms, text) => {
  expect(ageOf(1_000_000_000 - ms, 1_000_000_000)).toBe(text);
});

test("an unknown time has an empty age", () => {
  expect(ageOf(undefined, 1)).toBe("");
});
