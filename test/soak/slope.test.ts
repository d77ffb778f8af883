import { describe, expect, test } from "vitest";
import { chanceOf } from "./chance.ts";
import { STRETCHES, slopeOf } from "./slope.ts";

const MINUTE_MS = 60_000;

/** A sample every second for ten minutes. */
const samples = (valueAt: (atMs: number) => number) =>
  Array.from({ length: 600 }, (_, second) => ({ atMs: second * 1_000, value: valueAt(second * 1_000) }));

describe("a slope", () => {
  test("of a straight line is its own, and surely so", () => {
    const slope = slopeOf(samples((atMs) => 50 + (atMs / MINUTE_MS) * 2));
    expect(slope?.perHour).toBeCloseTo(120, 6);
    expect(slope?.errorPerHour).toBeCloseTo(0, 6);
    expect(slope?.atLeastPerHour).toBeCloseTo(120, 6);
    expect(slope?.stretches).toBe(STRETCHES);
  });

  test("of waves around a level is not shown to rise", () => {
    const slope = slopeOf(samples((atMs) => 100 + 10 * Math.sin(atMs / 20_000)));
    expect(slope?.atLeastPerHour).toBeLessThan(0);
    expect(slope?.errorPerHour).toBeGreaterThan(0);
  });

  test("of noise that rises is found under the noise", () => {
    const chance = chanceOf(1);
    const slope = slopeOf(samples((atMs) => (atMs / MINUTE_MS) * 5 + chance.below(20)));
    expect(slope?.atLeastPerHour).toBeGreaterThan(200);
    expect(slope?.perHour).toBeLessThan(400);
  });

  test("is not drawn through fewer than three stretches of time", () => {
    expect(slopeOf([])).toBeUndefined();
    expect(slopeOf([{ atMs: 1, value: 1 }])).toBeUndefined();
    expect(
      slopeOf([
        { atMs: 0, value: 1 },
        { atMs: 9, value: 2 },
      ]),
    ).toBeUndefined();
  });
});
