// The real clock and the real timers: the only place where Belay meets them.
import { performance } from "node:perf_hooks";
import type { Clock } from "../ports/clock.ts";

/** Node fires a longer timer at once; longer waits are made of several. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after,
  immediate: systemImmediate,
};

/** A turn of the event loop takes no time that could be injected, so a clock that only knows time uses this one. */
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
