// The limits of retention, as a host gives them.

import { invalid, isObject, rejectUnknown } from "../../core/input.ts";
import type { Retention } from "../../core/model/retention.ts";

export function checkRetention(given: unknown): Retention {
  if (!isObject(given)) throw invalid("`retention` must be an object: { perSession, overall }.");
  const { perSession, overall, ...rest } = given;
  rejectUnknown(rest, "`retention`");
  check(perSession, "perSession", ["days", "events", "bytes"]);
  check(overall, "overall", ["days", "sessions", "bytes"]);
  return given as Retention;
}

function check(limits: unknown, name: string, known: readonly string[]): void {
  if (limits === undefined) return;
  if (!isObject(limits)) throw invalid(`\`retention.${name}\` must be an object.`);
  for (const [key, value] of Object.entries(limits)) {
    const place = `retention.${name}.${key}`;
    if (!known.includes(key)) throw invalid(`\`${place}\` is not known. It takes ${known.join(", ")}.`);
    const isWhole = key === "days" || Number.isInteger(value);
    if (typeof value !== "number" || !Number.isFinite(value) || value <= 0 || !isWhole)
      throw invalid(`\`${place}\` must be a ${key === "days" ? "" : "whole "}number above 0 (got ${String(value)}).`);
  }
}
