// The speed of the demo, and a pause that an abort ends.
import type { Clock } from "../ports/clock.ts";

export interface DemoPace {
  /** The pause between two words of an answer. */
  readonly wordMs: number;
  /** The duration of one step of a slow tool. */
  readonly stepMs: number;
  /** How long the tool that ignores the abort signal runs. */
  readonly stubbornMs: number;
}

/** Slow enough to stop anything in the middle. */
export const DEMO_PACE: DemoPace = { wordMs: 40, stepMs: 700, stubbornMs: 6_000 };

/** Waits. Rejects with the signal's reason in the tick in which it aborts, and leaves no timer behind. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stopped = (): void => {
      cancelTimer();
      reject(signal.reason);
    };
    const cancelTimer = clock.after(ms, () => {
      signal.removeEventListener("abort", stopped);
      resolve();
    });
    signal.addEventListener("abort", stopped, { once: true });
  });
}
