// Parses the headers of a request: its idempotency key, and the cursor at which a stream resumes.
import { ControlError } from "../../core/errors.ts";
import { KEY_CHARS_MAX } from "../../core/limits.ts";

/**
 * The idempotency key. It must be ASCII: headers have no agreed encoding for anything else, and a key that arrives
 * changed would not be the one that its sender cancels by.
 */
export function checkKey(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (header.length > KEY_CHARS_MAX || !/^[\x20-\x7e]+$/.test(header)) {
    throw invalid(`Idempotency-Key must have 1 to ${KEY_CHARS_MAX} ASCII characters.`);
  }
  return header;
}

/** The cursor at which a stream resumes. The header overrides the query, because a browser repeats the original URL. */
export function checkCursor(header: string | undefined, after: number | undefined): number | undefined {
  if (header === undefined || header === "") return after;
  const cursor = /^\d{1,16}$/.test(header) ? Number(header) : Number.NaN;
  if (!Number.isSafeInteger(cursor)) throw invalid("Last-Event-ID must be the `id` of an event of this stream.");
  return cursor;
}

const invalid = (message: string): ControlError => new ControlError("invalid", message);
