import { expect, test } from "vitest";
import { RECENT_RUNS_MAX } from "../../core/limits.ts";
import type { Outcome } from "../../core/model/cancel.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { RunId } from "../../core/model/ids.ts";
import { Waiters } from "./waiters.ts";

const completed: Outcome = { kind: "completed" };
const settled = (runId: RunId): Recorded => ({ type: "run.settled", runId, outcome: completed, seq: 9, at: 0 });
const started = (runId: RunId): Recorded => ({ type: "run.started", runId, seq: 8, at: 0 });

/** A callback waits for each of these runs; `told`: the arguments of the calls, in order. */
function waiting(...runs: readonly RunId[]) {
  const waiters = new Waiters();
  const told: (readonly [who: number, outcome: Outcome | "absent" | undefined])[] = [];
  const dispose = runs.map((run, who) => waiters.wait(run, (outcome) => told.push([who, outcome])));
  return { waiters, told, takeBack: dispose };
}

test("G8: every waiter of a run is called once, with its own outcome and nothing else", () => {
  const { waiters, told } = waiting("run_a", "run_b", "run_a", "run_a");
  waiters.recorded([started("run_a"), settled("run_none")]);
  expect(told).toEqual([]);
  waiters.recorded([settled("run_a")]);
  waiters.recorded([settled("run_a")]);
  expect(told).toEqual([
    [0, completed],
    [2, completed],
    [3, completed],
  ]);
  expect(waiters.size).toBe(1);
  waiters.recorded([settled("run_b")]);
  expect(told.at(-1)).toEqual([1, completed]);
  expect(waiters.size).toBe(0);
});

test("a waiter that was disposed is not called, others are, and nothing stays registered", () => {
  const { waiters, told, takeBack: dispose } = waiting("run_a", "run_a", "run_a", "run_b", "run_c", "run_c");
  dispose[1]?.();
  dispose[3]?.();
  // A second disposal does not affect the other waiters.
  dispose[1]?.();
  expect(waiters.size).toBe(2);
  dispose[4]?.();
  dispose[5]?.();
  expect(waiters.size).toBe(1);
  waiters.recorded([settled("run_a"), settled("run_b"), settled("run_c")]);
  expect(told).toEqual([
    [0, completed],
    [2, completed],
  ]);
  dispose[0]?.();
  expect(waiters.size).toBe(0);
});

test("a waiter is not removed when another one is disposed", () => {
  const { waiters, told, takeBack: dispose } = waiting("run_a");
  waiters.recorded([settled("run_a")]);
  const other = waiters.wait("run_a", () => told.push([7, completed]));
  dispose[0]?.();
  expect(waiters.size).toBe(1);
  other();
  expect(waiters.size).toBe(0);
});

test("G8: a run that does not exist after all releases those that wait for it with `absent`", () => {
  const { waiters, told } = waiting("run_a", "run_b");
  waiters.leave(["run_a"], "absent");
  expect(told).toEqual([[0, "absent"]]);
  expect(waiters.size).toBe(1);
});

test("G8: a run that is no longer driven here releases its waiters, and no others", () => {
  const { waiters, told } = waiting("run_a", "run_b", "run_b", "run_c");
  waiters.leave(["run_a", "run_b", "run_none"]);
  expect(told).toEqual([
    [0, undefined],
    [1, undefined],
    [2, undefined],
  ]);
  expect(waiters.size).toBe(1);
  waiters.close();
  expect(told.at(-1)).toEqual([3, undefined]);
  expect(waiters.size).toBe(0);
});

test("no waiter waits for a worker that has closed", () => {
  const { waiters, told } = waiting("run_a", "run_b", "run_b");
  waiters.close();
  waiters.close();
  expect(told).toEqual([
    [0, undefined],
    [1, undefined],
    [2, undefined],
  ]);
  expect(waiters.size).toBe(0);
});

test("G15, G33: the last outcomes are kept, and no more than a limit", () => {
  const { waiters } = waiting();
  const runs = Array.from({ length: RECENT_RUNS_MAX + 2 }, (_, index): RunId => `run_${index}`);
  waiters.recorded([started("run_x"), ...runs.map(settled)]);
  expect(runs.filter((run) => waiters.recent(run) === undefined)).toEqual(["run_0", "run_1"]);
  expect(waiters.recent("run_2")).toEqual(completed);
  expect(waiters.recent("run_x")).toBeUndefined();
});
