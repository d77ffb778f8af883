// The system clock and real timers. No other module of Belay uses them directly.
import { performance } from "node:perf_hooks";
import type { Clock } from "../ports/clock.ts";

/** Node fires a longer timer immediately, so a longer wait is a chain of timers. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after,
  immediate: systemImmediate,
};

/** Calls back in the next turn of the event loop. Fake clocks use it too: it takes no time that could be injected. */
export function systemImmediate(call: () => void): void {
  setImmediate(call);
}

function after(ms: number, call: () => void, kind?: "idle"): () => void {
  let left = ms;
  let timer: NodeJS.Timeout;
  const arm = (): void => {
    const step = Math.min(left, TIMER_MS_MAX);
    left -= step;
    timer = setTimeout(left > 0 ? arm : call, step);
    if (kind === "idle") timer.unref();
  };
  arm();
  return () => clearTimeout(timer); // @fault leak-timer
}
