// The deadline of stopped work. One is made for each stop, when it is decided, and passed to all turns, calls and
// processes that the stop covers. None of them has another one.
import { DEATH_MS } from "../../core/limits.ts";
import type { Clock } from "../../ports/clock.ts";

/** Times of a monotonic clock. */
export interface Deadline {
  /** Work that has not stopped by then is abandoned, and processes are killed. */
  readonly stopBy: number;
  /** Processes that still exist then are reported as `dying`. */
  readonly deadBy: number;
}

export function makeDeadline(clock: Clock, graceMs: number): Deadline {
  const stopBy = clock.elapsed() + graceMs;
  return { stopBy, deadBy: stopBy + DEATH_MS };
}
