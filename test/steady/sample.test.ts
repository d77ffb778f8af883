import { expect, test } from "vitest";
import { changeOf, hasGrown, type Sample } from "./sample.ts";

const sample = (storeMB: number): Sample => ({
  ...{ atSeconds: 0, storeMB, memoryMB: 100, cpuMsPerRun: 2, startMs: 50, cancelMs: 5, sessions: 1, events: 1 },
});

test("growth compares the last third with the second, and leaves the first one out", () => {
  const samples = [1, 5, 9, 10, 10, 99, 10, 12, 12].map(sample);
  const change = changeOf(samples);
  expect(change.storeMB).toEqual({ before: 10, after: 12, growth: 1.2 });
  expect(change.memoryMB).toEqual({ before: 100, after: 100, growth: 1 });
});

test("more than a quarter, and more than the noise of a machine, has grown", () => {
  expect(hasGrown("storeMB", { before: 10, after: 13, growth: 1.3 })).toBe(true);
  expect(hasGrown("storeMB", { before: 10, after: 12, growth: 1.2 })).toBe(false);
  expect(hasGrown("storeMB", { before: 1, after: 1.5, growth: 1.5 })).toBe(false);
});
