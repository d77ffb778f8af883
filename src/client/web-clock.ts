// Time and timers as browsers and Node both have them.
import type { Clock } from "../ports/clock.ts";

/** A longer timer fires at once on every platform; longer waits are made of several. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const webClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after,
};

function after(ms: number, call: () => void, kind?: "idle"): () => void {
  let left = ms;
  let timer: ReturnType<typeof setTimeout>;
  const arm = (): void => {
    const step = Math.min(left, TIMER_MS_MAX);
    left -= step;
    timer = setTimeout(left > 0 ? arm : call, step);
    if (kind === "idle") release(timer);
  };
  arm();
  return () => clearTimeout(timer);
}

/** In Node a timer keeps the program alive unless it is told not to; in a browser it is a number. */
function release(timer: unknown): void {
  if (typeof timer !== "object" || timer === null || !("unref" in timer)) return;
  if (typeof timer.unref === "function") timer.unref();
}
