// A clock and timers for browsers and Node.
import type { Clock } from "../ports/clock.ts";

/** Every platform fires a longer timer at once; longer waits are split. */
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

/** A pending timer keeps a Node program alive unless it is unreferenced; in a browser a timer is a number. */
function release(timer: unknown): void {
  if (typeof timer !== "object" || timer === null || !("unref" in timer)) return;
  if (typeof timer.unref === "function") timer.unref();
}
