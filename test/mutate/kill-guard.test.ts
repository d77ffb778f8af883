import { expect, test } from "vitest";
import { type Kin, maySignal } from "./kill-guard.ts";

/** First process 1; the hunt is 2, its runners 10 and 20; 11, 12 and 21 are below them, 30 has lost its parent. */
const table = (pid: number): Kin | undefined =>
  new Map([
    [1, { parent: 0, group: 1 }],
    [2, { parent: 1, group: 2 }],
    [10, { parent: 2, group: 2 }],
    [11, { parent: 10, group: 11 }],
    [12, { parent: 11, group: 11 }],
    [20, { parent: 2, group: 2 }],
    [21, { parent: 20, group: 21 }],
    [30, { parent: 1, group: 30 }],
  ]).get(pid);

test("a mutant may signal what its tests have started, also once that has lost its parent", () => {
  expect([11, 12, -11, 30, -30].filter((target) => !maySignal(target, 10, table, true))).toEqual([]);
});

test("a mutant may not signal the hunt, its other runner and what that has started, or all processes", () => {
  const targets = [10, 2, 20, 21, -21, 1, 0, -1, -10, -2, -20, 1.5, Number.NaN];
  expect(targets.filter((target) => maySignal(target, 10, table, true))).toEqual([]);
});

test("without its own PID namespace, any process not below the hunt is foreign", () => {
  expect([11, 12, -11].filter((target) => !maySignal(target, 10, table, false))).toEqual([]);
  expect([30, -30, 21, 2, 1, 99].filter((target) => maySignal(target, 10, table, false))).toEqual([]);
});

test("a process that is gone may be signalled: the system answers ESRCH", () => {
  expect(maySignal(99, 10, table, true)).toBe(true);
});
