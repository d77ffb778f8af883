// What the headers of a request say about it: its key, and where a stream resumes.
import { ControlError } from "../../core/errors.ts";
import { KEY_CHARS_MAX } from "../../core/limits.ts";

/**
 * The caller's own name for a request. In ASCII: a header has no agreed way to say more, and a key that arrives as
 * something else would not be the one its sender cancels by.
 */
export function checkKey(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (header.length > KEY_CHARS_MAX || !/^[\x20-\x7e]+$/.test(header)) {
    throw invalid(`Idempotency-Key has 1 to ${KEY_CHARS_MAX} characters of ASCII.`);
  }
  return header;
}

/** Where a stream resumes: the header counts more than the query, because a browser sends the old address again. */
export function checkCursor(header: string | undefined, after: number | undefined): number | undefined {
  if (header === undefined || header === "") return after;
  const cursor = /^\d{1,16}$/.test(header) ? Number(header) : Number.NaN;
  if (!Number.isSafeInteger(cursor)) throw invalid("Last-Event-ID is the `id` of an event of this stream.");
  return cursor;
}

const invalid = (message: string): ControlError => new ControlError("invalid", message);
