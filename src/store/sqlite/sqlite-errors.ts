// Maps SQLite's errors to the store's. The five kinds differ in what is known about the write.
import { ControlError } from "../../core/errors.ts";

/**
 * - `breach`: the append contradicts stored data. Only this append is refused.
 * - `full`, `locked`, `corrupt`: nothing was written.
 * - `unclear`: the disk failed in the middle, so the file has to be read to find out.
 */
export type SqliteErrorKind = "breach" | "full" | "locked" | "corrupt" | "unclear";

const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const FULL = 13;
const CONSTRAINT = 19;
const NOT_A_DATABASE = 26;

export function errorKindOf(thrown: unknown): SqliteErrorKind {
  if (thrown instanceof ControlError) return kindOfCode(thrown);
  switch (primaryCode(thrown)) {
    case CONSTRAINT:
      return "breach";
    case FULL:
      return "full";
    case BUSY:
    case LOCKED:
      return "locked";
    case CORRUPT:
    case NOT_A_DATABASE:
      return "corrupt";
    default:
      return "unclear";
  }
}

/** The error for callers, with the file and SQLite's message. */
export function storeError(thrown: unknown, file: string): ControlError {
  if (thrown instanceof ControlError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  switch (errorKindOf(thrown)) {
    case "breach":
      return new ControlError("internal", `The store refused facts that contradict it: ${message}.`, { cause: thrown });
    case "full":
      return fullError(file, thrown);
    case "locked":
      return new ControlError("store_locked", `Another program is writing to ${file}.`, { cause: thrown });
    case "corrupt":
      return new ControlError("store_corrupt", `${file} is damaged: ${message}.`, { cause: thrown });
    case "unclear":
      return new ControlError("unavailable", `${file} cannot be used: ${message}.`, { cause: thrown });
  }
}

export const fullError = (file: string, cause?: unknown): ControlError =>
  new ControlError("store_full", `There is no space left for ${file}.`, { cause });

function kindOfCode({ code }: ControlError): SqliteErrorKind {
  switch (code) {
    case "internal":
      return "breach";
    case "store_full":
      return "full";
    case "store_locked":
      return "locked";
    case "store_corrupt":
    case "store_newer":
      return "corrupt";
    default:
      return "unclear";
  }
}

/** The low byte is the primary code; the rest is not needed here. */
function primaryCode(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !("errcode" in thrown) || typeof thrown.errcode !== "number") return undefined;
  return thrown.errcode & 0xff;
}
