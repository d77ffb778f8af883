// Where bytes of UTF-8, or of what should be it, can be cut so that the halves decode to the same text as the whole.
//
// The decoder meant is the platform's: a sequence that breaks off is one U+FFFD, and the byte that broke it begins
// anew. So whether a position is a boundary depends on at most three bytes before it and one after.
import { CHARACTER_BYTES_MAX } from "./limits.ts";

/** The mark at the beginning of some files is a character like any other: a page has no beginning of a file. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export const textOf = (bytes: Uint8Array): string => decoder.decode(bytes);

/**
 * Whether a character or a broken sequence ends before `at`. At the end of the bytes: whether nothing that may still
 * come can belong to what is there. Bytes before the first are taken as complete.
 */
export function isBoundary(bytes: Uint8Array, at: number): boolean {
  const next = bytes[at];
  if (next !== undefined && !isContinuation(next)) return true;
  for (let back = 1; back < CHARACTER_BYTES_MAX; back += 1) {
    const lead = bytes[at - back];
    if (lead === undefined) return true;
    if (isContinuation(lead)) continue;
    return followersOf(lead) < back || !mayFollow(lead, bytes[at - back + 1]);
  }
  return true;
}

/** The last boundary at or before `at`: at most three bytes away. */
export function boundaryBefore(bytes: Uint8Array, at: number): number {
  let found = at;
  while (!isBoundary(bytes, found)) found -= 1;
  return found;
}

/** The first boundary at or after `at`: at most three bytes away. The end of the bytes, if none is known before it. */
export function boundaryAfter(bytes: Uint8Array, at: number): number {
  let found = at;
  while (found < bytes.length && !isBoundary(bytes, found)) found += 1;
  return found;
}

/** The same where what came before `at` is lost: what can only be the rest of a character is passed over. */
export function boundaryAfterLoss(bytes: Uint8Array, at: number): number {
  let found = at;
  while (found < at + CHARACTER_BYTES_MAX - 1 && isContinuation(bytes[found] ?? 0)) found += 1;
  return found;
}

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80;

/** How many bytes a character with this first byte has after it. */
function followersOf(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return 0;
  if (lead < 0xe0) return 1;
  return lead < 0xf0 ? 2 : 3;
}

/** Some first bytes do not go with every second one: what they would mean has a shorter form, or is no character. */
function mayFollow(lead: number, second: number | undefined): boolean {
  if (second === undefined) return true;
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second < 0xa0;
  if (lead === 0xf0) return second >= 0x90;
  if (lead === 0xf4) return second < 0x90;
  return true;
}
