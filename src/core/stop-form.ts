// What a stop carries besides what it covers, as it is received: a reason, and how long to wait. Nothing of that is a
// reason to refuse the stop. In code, where a compiler looks at it, it is checked as everything else is.
import { WAIT_MS_MAX } from "./limits.ts";
import type { GivenReason } from "./model/cancel.ts";

/** Stands for the note of a reason that is not text. */
export const UNREADABLE_NOTE = "[unreadable reason]";

/** A reason that is valid: its readable parts, and a mark in place of a note that is not text. */
export function readableReason(given: unknown): GivenReason | undefined {
  if (given === undefined || given === null) return undefined;
  if (typeof given === "string") return given;
  if (typeof given !== "object" || Array.isArray(given)) return UNREADABLE_NOTE;
  const { kind, note, by } = given as Readonly<Record<string, unknown>>;
  const text = typeof note === "string" ? note : undefined;
  if (kind === "policy") return { kind, note: text ?? UNREADABLE_NOTE };
  const isEmpty = kind === "user" && (note === undefined || note === null);
  return {
    kind: "user",
    ...(isEmpty ? {} : { note: text ?? UNREADABLE_NOTE }),
    ...(typeof by === "string" ? { by } : {}),
  };
}

/** A time to wait, within the limit. Undefined: what was sent is not a time. */
export function readableWait(given: unknown): number | undefined {
  if (typeof given !== "number" || Number.isNaN(given)) return undefined;
  return Math.min(Math.max(0, Math.trunc(given)), WAIT_MS_MAX);
}
