// The optional fields of a stop, as received over a protocol: its reason, and how long to wait. Invalid ones never
// refuse the stop. In code, where a compiler checks them, they are validated like all other input.
import { WAIT_MS_MAX } from "./limits.ts";
import type { GivenReason } from "./model/cancel.ts";

/** Replaces the note of a reason that is not text. */
export const UNREADABLE_NOTE = "[unreadable reason]";

/** A valid reason, made of the readable parts of the given one; a note that is not text is replaced. */
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

/** A time to wait, within the limit. Undefined: the value is not a time. */
export function readableWait(given: unknown): number | undefined {
  if (typeof given !== "number" || Number.isNaN(given)) return undefined;
  return Math.min(Math.max(0, Math.trunc(given)), WAIT_MS_MAX);
}
