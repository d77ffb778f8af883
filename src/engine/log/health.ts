// Whether a session's log can be written. Whatever begins work, sends a batch or answers a command looks here.
//
// Invariants
// 1. While it is not `well`, stops and ends of work are kept; what is refused is refused at once.
// 2. Nothing is sent before `until`. Each failure in a row doubles the pause.
import type { ControlError } from "../../core/errors.ts";
import { RETRY_FIRST_MS, RETRY_LAST_MS } from "../../core/limits.ts";

/**
 * What a store that refuses is not sent before its pause is over. A full disk may have room for what has begun,
 * although it refuses prompts: so the rest of a refused batch is tried again at once, without what can be refused.
 * `new`: what begins something. `refusable`: all that can be refused. `all`: stops and ends as well.
 */
export type Refused = "new" | "refusable" | "all";

export type Health =
  | { readonly kind: "well" }
  /** The store said no: nothing of the last batch was written. */
  | (Unwell & { readonly kind: "refusing"; readonly scope: Refused })
  /** Whether the last batch was written is not known. The log is read before anything is sent. */
  | (Unwell & { readonly kind: "unknown" });

interface Unwell {
  /** What callers are answered meanwhile. */
  readonly error: ControlError;
  /** When the store is asked again, by the clock that never jumps. */
  readonly until: number;
  /** Failures in a row. */
  readonly failures: number;
}

export const WELL: Health = { kind: "well" };

/** Codes after which a store promises that nothing of the batch is in the log. */
const WROTE_NOTHING: ReadonlySet<string> = new Set(["store_full", "store_locked", "store_corrupt", "overloaded"]);

export const isUnwritten = ({ code }: ControlError): boolean => WROTE_NOTHING.has(code);

/** The health after another failure. Once a batch is in doubt it stays so until the log has been read. */
export function afterFailure(health: Health, error: ControlError, scope: Refused, now: number): Health {
  const failures = health.kind === "well" ? 0 : health.failures;
  // @fault retry-pause-of-a-millisecond
  const until = now + Math.min(RETRY_FIRST_MS * 2 ** failures, RETRY_LAST_MS);
  const next = { error, until, failures: Math.min(failures + 1, 16) };
  // @fault lost-answer-taken-for-no
  const unknown = health.kind === "unknown" || !isUnwritten(error);
  return unknown ? { kind: "unknown", ...next } : { kind: "refusing", scope, ...next };
}

/** Whether something new may begin now. After its pause, a store that refused is tried with the next command. */
export const takesBeginnings = (health: Health, now: number): boolean =>
  health.kind === "well" || (health.kind === "refusing" && now >= health.until);

/** Whether commands about what has begun are taken now. */
// @fault refused-start-repeated-at-once
export const takesCommands = (health: Health, now: number): boolean =>
  takesBeginnings(health, now) || (health.kind === "refusing" && health.scope === "new");

/** Whether a batch is sent now. */
export const maySend = (health: Health, now: number): boolean =>
  takesBeginnings(health, now) || (health.kind === "refusing" && health.scope !== "all");
