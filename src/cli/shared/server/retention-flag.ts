// `--retention days=90,bytes=2GB,session-days=30`: the limits of retention as one word.
import { ControlError } from "../../../core/errors.ts";
import type { Retention } from "../../../core/model/retention.ts";

const NAMES = {
  days: ["overall", "days"],
  sessions: ["overall", "sessions"],
  bytes: ["overall", "bytes"],
  "session-days": ["perSession", "days"],
  "session-events": ["perSession", "events"],
  "session-bytes": ["perSession", "bytes"],
} as const;

const UNITS: Readonly<Record<string, number>> = { "": 1, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };

export function retentionOf(typed: string): Retention {
  const limits: Record<"perSession" | "overall", Record<string, number>> = { perSession: {}, overall: {} };
  for (const part of typed.split(",")) {
    const [, name = "", digits = "", unit = ""] = /^\s*([a-z-]+)=(\d+(?:\.\d+)?)([KMGT]B)?\s*$/.exec(part) ?? [];
    const place = Object.hasOwn(NAMES, name) ? NAMES[name as keyof typeof NAMES] : undefined;
    const value = Number(digits) * (UNITS[unit] ?? Number.NaN);
    const isBytes = name.endsWith("bytes");
    const isWhole = name.endsWith("days") || Number.isInteger(value);
    if (place === undefined || !(value > 0) || !isWhole || (unit !== "" && !isBytes)) throw notOne(part);
    limits[place[0]][place[1]] = value;
  }
  return limits;
}

const notOne = (part: string): ControlError =>
  new ControlError("invalid", `--retention takes limits such as days=90 (got ${JSON.stringify(part.slice(0, 40))}).`, {
    hint: `The limits: ${Object.keys(NAMES).join(", ")}. Bytes may end with KB, MB, GB or TB.`,
  });
