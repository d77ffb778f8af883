// The signals of a bulk stop: all of them fire, and none blocks the event loop for long.
import { expect, test } from "vitest";
import { ABORT_SLICE_MS, ABORTS_AT_ONCE_MAX } from "../../core/limits.ts";
import type { Clock } from "../../ports/clock.ts";
import { AbortQueue } from "./abort-queue.ts";

/** A queue on a clock that only moves when a signal fires (by `costMs`) or a timer is run. */
function stage(costMs = 0) {
  let now = 1_000;
  const timers: (() => void)[] = [];
  let turned = (): void => {};
  const clock: Clock = {
    now: () => now,
    elapsed: () => now,
    after: (_, call) => {
      timers.push(call);
      return () => void timers.splice(timers.indexOf(call), 1);
    },
    immediate: (call) => {
      turned = call;
    },
  };
  const fired: number[] = [];
  const queue = new AbortQueue(clock);
  const stop = (count: number, from = 0): void => {
    for (let index = from; index < from + count; index += 1) {
      queue.fire({
        fire: () => {
          fired.push(index);
          now += costMs;
        },
      });
    }
  };
  /** A turn of the event loop. */
  const turn = (): void => turned();
  return { queue, fired, timers, stop, turn };
}

test("G12: the first hundred signals of a bulk stop fire in its tick, the others in order after it", () => {
  const { queue, fired, timers, stop } = stage();
  stop(ABORTS_AT_ONCE_MAX + 50);
  expect([fired.length, queue.size, timers.length]).toEqual([ABORTS_AT_ONCE_MAX, 50, 1]);
  timers.shift()?.();
  expect(fired).toEqual(Array.from({ length: ABORTS_AT_ONCE_MAX + 50 }, (_, index) => index));
  expect([queue.size, timers.length]).toEqual([0, 0]);
});

test("G12: a slice of a bulk stop ends when its time is up, and the next one follows", () => {
  const { queue, fired, timers, stop } = stage(2);
  stop(ABORTS_AT_ONCE_MAX + 7);
  const perSlice = Math.ceil(ABORT_SLICE_MS / 2);
  const slices: number[] = [];
  for (let before = fired.length; timers.length > 0; before = fired.length) {
    timers.shift()?.();
    slices.push(fired.length - before);
  }
  expect(slices).toEqual([perSlice, perSlice, 1]);
  expect(queue.size).toBe(0);
});

test("a signal after a bulk stop waits for its turn, so that the order is kept", () => {
  const { fired, timers, stop, turn } = stage(ABORT_SLICE_MS);
  stop(ABORTS_AT_ONCE_MAX + 2);
  timers.shift()?.();
  turn();
  stop(1, 900);
  expect(fired).not.toContain(900);
  while (timers.length > 0) timers.shift()?.();
  expect(fired.slice(-3)).toEqual([ABORTS_AT_ONCE_MAX, ABORTS_AT_ONCE_MAX + 1, 900]);
});

test("G2: a stop fires in its tick, however many came before it, if the event loop turns between them", () => {
  const { fired, timers, stop, turn } = stage();
  for (let count = 0; count < 3 * ABORTS_AT_ONCE_MAX; count += 1) {
    stop(1, count);
    turn();
  }
  expect([fired.length, timers.length]).toEqual([3 * ABORTS_AT_ONCE_MAX, 0]);
  stop(ABORTS_AT_ONCE_MAX + 1, 1_000);
  while (timers.length > 0) timers.shift()?.();
  turn();
  stop(1, 5_000);
  expect(fired.at(-1)).toBe(5_000);
});

test("waiting signals fire at once when the worker closes, and leave no timer", () => {
  const { queue, fired, timers, stop } = stage();
  stop(ABORTS_AT_ONCE_MAX + 3);
  queue.flush();
  expect([fired.length, queue.size, timers.length]).toEqual([ABORTS_AT_ONCE_MAX + 3, 0, 0]);
});
