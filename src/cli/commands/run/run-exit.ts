// What `belay run` leaves to the shell: how the run ended, and nothing that was not recorded.
import type { Outcome } from "../../../core/model/cancel.ts";

/** Numbers for life, like all exit codes. A run that was refused, or lost sight of, leaves its error's own code. */
export const EXIT_OUTCOME = { completed: 0, failed: 20, cancelled: 21, lost: 22 } as const satisfies Record<
  Outcome["kind"],
  number
>;

/** Whoever read the output has gone before the outcome: as if SIGPIPE had ended it, the way shells count. */
export const EXIT_UNREAD = 141;
