// Unguessable ids that sort by creation time, and digests. This is the only source of randomness in Belay.
import { createHash, randomFillSync } from "node:crypto";
import type { Clock, Ids } from "../ports/clock.ts";

/** 45 bits of milliseconds: sorted until the year 3084. */
const TIME_CHARS = 9;
/** 75 bits, which cannot be guessed. */
const RANDOM_CHARS = 15;
const POOL_IDS = 256;
const ALPHABET = "0123456789abcdefghijklmnopqrstuv";

/**
 * Makes ids that begin with the time, so that rows created together are adjacent in a database index: purely random ids
 * would spread every commit over as many pages as it has rows. Random bytes come from a pool, so that one call into the
 * kernel serves many ids.
 */
export function randomIds(clock: Pick<Clock, "now">): Ids {
  const pool = new Uint8Array(RANDOM_CHARS * POOL_IDS);
  let used = pool.length;
  return {
    make(prefix) {
      if (used === pool.length) {
        randomFillSync(pool);
        used = 0;
      }
      let id: string = prefix + timeText(clock.now());
      // Uses five bits of each byte: wasteful, but simpler than shifting.
      for (const end = used + RANDOM_CHARS; used < end; used += 1) id += ALPHABET[(pool[used] ?? 0) & 31];
      return id;
    },
    digest: (text) => createHash("sha256").update(text).digest("base64url"),
  };
}

/** Has a fixed length, so that texts sort like times. A clock before 1970 counts as 1970. */
function timeText(ms: number): string {
  return Math.max(0, Math.trunc(ms)).toString(32).padStart(TIME_CHARS, "0").slice(-TIME_CHARS);
}
