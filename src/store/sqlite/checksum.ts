// Checksums of what is stored. SQLite notices damage to the structure of a file, and none to a text in it: a bit that
// has changed there would be read as if it had been written so.
//
// Invariants
// 1. What is read is what was written, or it is refused as `store_corrupt`. What was written before there were sums has
//    none, and is read as it is.
import { crc32 } from "node:zlib";
import { ControlError } from "../../core/errors.ts";

type Value = string | number | null;

/** Of the values of a row, in this order. What may be long goes last, by itself: it is not copied. */
export function sumOf(values: readonly Value[], text: string | null = null): number {
  const sum = crc32(values.join("\0"));
  return text === null ? sum : crc32(text, sum);
}

/** Refuses what does not have the sum that it was stored with. */
export function requireSum(stored: number | null, actual: number, what: string): void {
  if (stored === null || stored === actual) return;
  throw damaged(`${what} is not what was written`);
}

export const damaged = (what: string): ControlError =>
  new ControlError("store_corrupt", `The file is damaged: ${what}.`);
