// Finds positions where UTF-8, valid or not, can be cut so that the parts decode to the same text as the whole.
//
// This follows the platform's decoder: an incomplete sequence is one U+FFFD, and the byte that broke it begins a new
// one. So a boundary depends on at most three bytes before it and one after.
import { CHARACTER_BYTES_MAX } from "./limits.ts";

/** Keeps the byte order mark: a page may begin anywhere, so it is a character like any other. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export const textOf = (bytes: Uint8Array): string => decoder.decode(bytes);

/**
 * Whether a character or a broken sequence ends before `at`. At the end of the bytes: whether no later byte can belong
 * to the last character. Bytes before the first count as complete.
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

/** The first boundary at or after `at`: at most three bytes away. The end of the bytes if there is none before it. */
export function boundaryAfter(bytes: Uint8Array, at: number): number {
  let found = at;
  while (found < bytes.length && !isBoundary(bytes, found)) found += 1;
  return found;
}

/** The same after missing bytes: skips bytes that can only be the rest of a character. */
export function boundaryAfterLoss(bytes: Uint8Array, at: number): number {
  let found = at;
  while (found < at + CHARACTER_BYTES_MAX - 1 && isContinuation(bytes[found] ?? 0)) found += 1;
  return found;
}

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80;

/** How many continuation bytes follow this first byte. */
function followersOf(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return 0;
  if (lead < 0xe0) return 1;
  return lead < 0xf0 ? 2 : 3;
}

/** Some first bytes allow only certain second bytes: the others would be overlong forms or invalid characters. */
function mayFollow(lead: number, second: number | undefined): boolean {
  if (second === undefined) return true;
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second < 0xa0;
  if (lead === 0xf0) return second >= 0x90;
  if (lead === 0xf4) return second < 0x90;
  return true;
}
