// How the demo spends its time, and a wait that a stop ends.
import type { Clock } from "../ports/clock.ts";

export interface DemoPace {
  /** Between two words of an answer. */
  readonly wordMs: number;
  /** What one step of a slow tool takes. */
  readonly stepMs: number;
  /** How long the tool that does not listen goes on, whatever it is told. */
  readonly stubbornMs: number;
}

/** Slow enough to press a button in the middle of anything. */
export const DEMO_PACE: DemoPace = { wordMs: 40, stepMs: 700, stubbornMs: 6_000 };

/** Time passes. Rejects with the signal's reason in the tick in which it aborts, and leaves no timer behind. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stopped = (): void => {
      dispose();
      reject(signal.reason);
    };
    const dispose = clock.after(ms, () => {
      signal.removeEventListener("abort", stopped);
      resolve();
    });
    signal.addEventListener("abort", stopped, { once: true });
  });
}
