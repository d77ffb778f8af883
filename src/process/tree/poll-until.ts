// Polls a condition with a growing pause.
import { stat } from "node:fs";
import type { Clock } from "../../ports/clock.ts";

/** Between the first two polls. The kernel is usually faster than that. */
const PAUSE_MS_MIN = 1;

/** Between later polls: a condition that takes this long is not a matter of milliseconds. */
const PAUSE_MS_MAX = 25;

/**
 * Polls right after a wake-up: the awaited state is usually microseconds behind the event, and the shortest timer takes
 * a thousand.
 */
const POLLS_AFTER_WAKING = 8;

export interface PollOptions {
  readonly clock: Clock;
  readonly waitMs: number;
  /** Each one that settles ends the current pause once. */
  readonly wakes?: readonly Promise<unknown>[];
}

/** Whether the condition became true in time. Polls at least once. */
export async function until(condition: () => boolean, { clock, waitMs, wakes = [] }: PollOptions): Promise<boolean> {
  const end = clock.elapsed() + waitMs;
  const alarm = new Alarm(wakes);
  let pauseMs = PAUSE_MS_MIN;
  while (!condition()) {
    const leftMs = end - clock.elapsed();
    if (leftMs <= 0) return false;
    if (await alarm.within(clock, Math.min(pauseMs, leftMs))) {
      for (let poll = 0; poll < POLLS_AFTER_WAKING; poll += 1) {
        if (condition()) return true;
        await turn();
      }
    } else {
      pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX);
    }
  }
  return true;
}

/** Lets the event loop turn once; about ten microseconds. */
const turn = (): Promise<void> => new Promise((resolve) => stat("/", () => resolve()));

/** Wakes a waiting poll once for each promise that settles, including those that settled before the wait. */
class Alarm {
  #rings = 0;
  #wake = (): void => undefined;

  constructor(wakes: readonly Promise<unknown>[]) {
    const ring = (): void => {
      this.#rings += 1;
      this.#wake();
    };
    for (const wake of wakes) wake.then(ring, ring);
  }

  /** Whether a promise woke it. */
  async within(clock: Clock, ms: number): Promise<boolean> {
    if (this.#rings === 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const dispose = clock.after(ms, resolve);
      this.#wake = resolve;
      await promise;
      dispose();
    }
    if (this.#rings === 0) return false;
    this.#rings -= 1;
    return true;
  }
}

/** The promise's value, or undefined after the timeout. */
export async function within<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const dispose = clock.after(ms, () => late.resolve(undefined));
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    dispose();
  }
}
