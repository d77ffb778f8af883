// Checksums of stored text. SQLite detects damage to the structure of a file, but not to text in it: a flipped bit
// there would be read as if it had been written.
//
// Invariants
// 1. What is read is what was written, or the read is refused as `store_corrupt`. Rows from versions without
//    checksums have none, and are not checked.
import { crc32 } from "node:zlib";
import { ControlError } from "../../core/errors.ts";

type Value = string | number | null;

/** The checksum of a row's values, in this order. `text` may be long; it is hashed separately and not copied. */
export function sumOf(values: readonly Value[], text: string | null = null): number {
  const sum = crc32(values.join("\0"));
  return text === null ? sum : crc32(text, sum);
}

/** Throws unless the checksum matches the stored one. */
export function requireSum(stored: number | null, actual: number, what: string): void {
  if (stored === null || stored === actual) return;
  throw damaged(`${what} is not what was written`);
}

export const damaged = (what: string): ControlError =>
  new ControlError("store_corrupt", `The file is damaged: ${what}.`);
