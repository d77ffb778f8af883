// When stopped work has to be over. One deadline is made for each stop, when it is decided, and handed to all the
// turns, calls and processes that the stop covers. There is no second clock for any of them.
import { DEATH_MS } from "../../core/limits.ts";
import type { Clock } from "../../ports/clock.ts";

/** On the clock that never jumps. */
export interface Deadline {
  /** Work that has not stopped by now is abandoned, and processes are killed. */
  readonly stopBy: number;
  /** Processes that still exist now are reported as `dying`. */
  readonly deadBy: number;
}

export function makeDeadline(clock: Clock, graceMs: number): Deadline {
  const stopBy = clock.elapsed() + graceMs;
  return { stopBy, deadBy: stopBy + DEATH_MS };
}
