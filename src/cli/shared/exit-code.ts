// The exit codes of the command line. A number never changes its meaning: scripts branch on them.
import type { ControlCode } from "../../core/errors.ts";

/** Success; a check found no problem. */
export const EXIT_OK = 0;

/** The command worked and found a problem: `belay verify` with findings. */
export const EXIT_FOUND = 1;

/** A failure, by its code. Each has its own number, so that a script need not read the text. */
export const EXIT_CODE = {
  invalid: 2,
  not_found: 3,
  conflict: 4,
  closed: 5,
  busy: 6,
  queue_full: 7,
  overloaded: 8,
  shutting_down: 9,
  store_full: 10,
  store_locked: 11,
  store_corrupt: 12,
  store_newer: 13,
  unavailable: 14,
  not_started: 15,
  uncontained: 16,
  unauthenticated: 17,
  forbidden: 18,
  disconnected: 19,
  internal: 70,
} as const satisfies Record<ControlCode, number>;

/** Shut down gracefully by a signal: 128 plus the signal's number, as shells do. */
export const EXIT_SIGNAL = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

export type StopSignal = keyof typeof EXIT_SIGNAL;
