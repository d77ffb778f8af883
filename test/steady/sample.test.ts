import { expect, test } from "vitest";
import { changeOf, hasGrown, heldBytes, isLeaking, memorySlope, type Sample } from "./sample.ts";

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

test("memory does not count the free part of the heap", () => {
  expect(heldBytes({ rss: 240, heapTotal: 75, heapUsed: 15 })).toBe(
    heldBytes({ rss: 195, heapTotal: 30, heapUsed: 15 }),
  );
});

test("a slow growth of memory is found by its slope, and a step or a slow moment is not", () => {
  const hour = (memoryMB: (minute: number) => number): number =>
    memorySlope(
      Array.from({ length: 60 }, (_, minute) => ({
        ...sample(1),
        ...{ atSeconds: minute * 60, memoryMB: memoryMB(minute) },
      })),
    );
  const leak = hour((minute) => 200 + minute / 3);
  expect(leak).toBeCloseTo(20);
  expect(isLeaking(leak, 60)).toBe(true);
  expect(isLeaking(leak, 10)).toBe(false);
  expect(
    isLeaking(
      hour(() => 200),
      60,
    ),
  ).toBe(false);
  expect(
    isLeaking(
      hour((minute) => (minute < 15 ? 180 : 200)),
      60,
    ),
  ).toBe(false);
  expect(
    isLeaking(
      hour((minute) => (minute === 40 ? 300 : 200)),
      60,
    ),
  ).toBe(false);
});
