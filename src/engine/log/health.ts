// Whether a session's log can be written. Everything that begins work, sends a batch or answers a command checks it.
//
// Invariants
// 1. While it is not `well`, stops and ends of work are kept; everything else is refused at once.
// 2. Nothing is sent before `until`. Each failure in a row doubles the pause.
import type { ControlError } from "../../core/errors.ts";
import { RETRY_FIRST_MS, RETRY_LAST_MS } from "../../core/limits.ts";

/**
 * The commands that are held back during the pause after a refusal. A full disk may have room for running work although
 * it refuses prompts: so the rest of a refused batch is retried at once, without the commands that can be refused.
 * `new`: commands that begin something. `refusable`: all that can be refused. `all`: stops and ends as well.
 */
export type Refused = "new" | "refusable" | "all";

export type Health =
  | { readonly kind: "well" }
  /** The store refused: nothing of the last batch was written. */
  | (Unwell & { readonly kind: "refusing"; readonly scope: Refused })
  /** Whether the last batch was written is unknown. The log is read before anything is sent. */
  | (Unwell & { readonly kind: "unknown" });

interface Unwell {
  /** The error that callers get meanwhile. */
  readonly error: ControlError;
  /** When the store is tried again, by a monotonic clock. */
  readonly until: number;
  /** Failures in a row. */
  readonly failures: number;
}

export const WELL: Health = { kind: "well" };

/** Codes with which a store guarantees that nothing of the batch is in the log. */
const WROTE_NOTHING: ReadonlySet<string> = new Set(["store_full", "store_locked", "store_corrupt", "overloaded"]);

export const isUnwritten = ({ code }: ControlError): boolean => WROTE_NOTHING.has(code);

/** The health after another failure. It stays `unknown` until the log has been read. */
export function afterFailure(health: Health, error: ControlError, scope: Refused, now: number): Health {
  const failures = health.kind === "well" ? 0 : health.failures;
  // @fault retry-pause-of-a-millisecond
  const until = now + Math.min(RETRY_FIRST_MS * 2 ** failures, RETRY_LAST_MS);
  const next = { error, until, failures: Math.min(failures + 1, 16) };
  // @fault lost-answer-taken-for-no
  const unknown = health.kind === "unknown" || !isUnwritten(error);
  return unknown ? { kind: "unknown", ...next } : { kind: "refusing", scope, ...next };
}

/** Whether something new may begin now. After the pause, the next command is tried. */
export const takesBeginnings = (health: Health, now: number): boolean =>
  health.kind === "well" || (health.kind === "refusing" && now >= health.until);

/** Whether commands of running work are accepted now. */
// @fault refused-start-repeated-at-once
export const takesCommands = (health: Health, now: number): boolean =>
  takesBeginnings(health, now) || (health.kind === "refusing" && health.scope === "new");

/** Whether a batch may be sent now. */
export const maySend = (health: Health, now: number): boolean =>
  takesBeginnings(health, now) || (health.kind === "refusing" && health.scope !== "all");
