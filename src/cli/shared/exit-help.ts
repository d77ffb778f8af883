// The table of exit codes that --help shows.
import type { ControlCode } from "../../core/errors.ts";
import { EXIT_OUTCOME } from "../commands/run/run-exit.ts";
import { EXIT_CODE, EXIT_FOUND, EXIT_OK, EXIT_SIGNAL } from "./exit-code.ts";

/** The meaning of each failure. A record, so that the compiler reports a missing one. */
const MEANING: Readonly<Record<ControlCode, string>> = {
  invalid: "wrong usage, or an id that is not the only one of its beginning",
  not_found: "no such file, session, run, call, process or question",
  conflict: "too late, or other bytes than those that were shown",
  closed: "the session is closed",
  busy: "the session is busy",
  queue_full: "the queue is full",
  overloaded: "the server has too much to do",
  shutting_down: "the server is shutting down",
  store_full: "the disk is full",
  store_locked: "the file is in use",
  store_corrupt: "the file is damaged",
  store_newer: "the file is of a newer Belay",
  unavailable: "the store did not answer, or `serve` cannot listen at that address",
  not_started: "a process could not be started",
  uncontained: "processes are not held (as surely as required)",
  unauthenticated: "no valid token",
  forbidden: "the token may not do that",
  disconnected: "no server, or the connection was lost",
  internal: "a fault in Belay",
};

/** Every exit code and its meaning, in ascending order. */
export function exitMeanings(): readonly (readonly [code: string, meaning: string])[] {
  const failures = Object.entries(EXIT_CODE).map(
    ([code, number]) => [number, MEANING[code as ControlCode]] as readonly [number, string],
  );
  const all: readonly (readonly [number, string])[] = [
    [EXIT_OK, "in order; a cancel that came too late is in order, and says how it ended"],
    [EXIT_FOUND, "`verify` found something, `doctor` has only the last tier, or a question of ours got no yes"],
    ...failures,
    [EXIT_OUTCOME.failed, "`run`: the run failed"],
    [EXIT_OUTCOME.cancelled, "`run`: the run was cancelled"],
    [EXIT_OUTCOME.lost, "`run`: the run was lost: what it did is unknown"],
  ];
  const signals = Object.values(EXIT_SIGNAL).join(", ");
  return [
    ...all.toSorted(([one], [other]) => one - other).map(([code, meaning]) => [String(code), meaning] as const),
    [signals, "stopped by a signal"],
  ];
}

const CODE_WIDTH = 4;

export function exitHelp(): string {
  const lines = exitMeanings().map(([code, meaning]) =>
    code.length > CODE_WIDTH ? `  ${code}: ${meaning}` : `  ${code.padStart(CODE_WIDTH)}  ${meaning}`,
  );
  return ["Exit codes:", ...lines].join("\n");
}
