// Spans of time as people type them: 30d, 12h, 90m.
import { ControlError } from "../../../core/errors.ts";
import { plainLine } from "../../shared/format/plain-text.ts";

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Ten years: whoever wants it for ever leaves it out. */
const SPAN_MS_MAX = 3_650 * UNIT_MS.d;

export function spanMs(typed: string, option: string): number {
  const [, number = "", unit = ""] = /^(\d{1,9})([smhd])$/.exec(typed) ?? [];
  const ms = Number(number) * (Object.entries(UNIT_MS).find(([name]) => name === unit)?.[1] ?? 0);
  if (ms > 0 && ms <= SPAN_MS_MAX) return ms;
  throw new ControlError("invalid", `${option} is not "${plainLine(typed, 40)}".`, {
    hint: "It is a number and a unit: 90m, 12h or 30d, at most 3650d.",
  });
}
