// Looks until something is so: soon at first, then less and less often.
import { stat } from "node:fs";
import type { Clock } from "../../ports/clock.ts";

/** Between the first two looks. The kernel is usually faster than that. */
const PAUSE_MS_MIN = 1;

/** Between later ones: whatever takes this long is not a matter of milliseconds any more. */
const PAUSE_MS_MAX = 25;

/**
 * Looks right after being woken: what is waited for is usually some microseconds behind what has woken us, and the
 * shortest timer is a thousand of them.
 */
const LOOKS_AFTER_WAKING = 8;

export interface Patience {
  readonly clock: Clock;
  readonly waitMs: number;
  /** Each says, once, when it is worth looking before the pause is over. */
  readonly wakes?: readonly Promise<unknown>[];
}

/** Whether it was so within the time. Looks at least once. */
export async function until(isSo: () => boolean, { clock, waitMs, wakes = [] }: Patience): Promise<boolean> {
  const end = clock.elapsed() + waitMs;
  const bell = new Bell(wakes);
  let pauseMs = PAUSE_MS_MIN;
  while (!isSo()) {
    const leftMs = end - clock.elapsed();
    if (leftMs <= 0) return false;
    if (await bell.within(clock, Math.min(pauseMs, leftMs))) {
      for (let look = 0; look < LOOKS_AFTER_WAKING; look += 1) {
        if (isSo()) return true;
        await turn();
      }
    } else {
      pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX);
    }
  }
  return true;
}

/** Lets everything else happen once; some ten microseconds. */
const turn = (): Promise<void> => new Promise((resolve) => stat("/", () => resolve()));

/** Rings once for each promise that comes true, also for those that have before anybody listened. */
class Bell {
  #rung = 0;
  #hear = (): void => undefined;

  constructor(wakes: readonly Promise<unknown>[]) {
    const ring = (): void => {
      this.#rung += 1;
      this.#hear();
    };
    for (const wake of wakes) wake.then(ring, ring);
  }

  /** Whether it rang. */
  async within(clock: Clock, ms: number): Promise<boolean> {
    if (this.#rung === 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const dispose = clock.after(ms, resolve);
      this.#hear = resolve;
      await promise;
      dispose();
    }
    if (this.#rung === 0) return false;
    this.#rung -= 1;
    return true;
  }
}

/** What comes of it, or undefined once the time has passed. */
export async function within<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const dispose = clock.after(ms, () => late.resolve(undefined));
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    dispose();
  }
}
