// When people hear of a process that goes on: soon at first, then ever less often.
import type { Clock } from "../ports.ts";

/** Seconds until the first note, the second, and so on; the last one is repeated. */
export const PACE_MS: readonly number[] = [2_000, 4_000, 8_000, 16_000, 30_000];

/** Calls back on that pace, until it is taken back. Does not keep a program alive. */
export function startNotes(clock: Clock, note: () => void): () => void {
  let takeBack = (): void => {};
  const next = (index: number): void => {
    const paused = PACE_MS[Math.min(index, PACE_MS.length - 1)] ?? 0;
    takeBack = clock.after(
      paused,
      () => {
        note();
        next(index + 1);
      },
      "idle",
    );
  };
  next(0);
  return () => takeBack();
}
