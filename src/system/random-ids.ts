// Ids nobody can guess, in the order in which they were made; and digests: the only randomness of Belay.
import { createHash, randomFillSync } from "node:crypto";
import type { Clock, Ids } from "../ports/clock.ts";

/** 45 bits of milliseconds: in order until the year 3084. */
const TIME_CHARS = 9;
/** 75 bits, which nobody guesses. */
const RANDOM_CHARS = 15;
const POOL_IDS = 256;
const ALPHABET = "0123456789abcdefghijklmnopqrstuv";

/**
 * The time first, so that what is made together stands together in a database's index: chance alone would spread every
 * commit over as many pages as it has rows. Drawn from a pool: one call into the kernel serves many ids.
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
      // Five bits of each byte: wasteful, and simpler than shifting.
      for (const end = used + RANDOM_CHARS; used < end; used += 1) id += ALPHABET[(pool[used] ?? 0) & 31];
      return id;
    },
    digest: (text) => createHash("sha256").update(text).digest("base64url"),
  };
}

/** As long for every time, so that texts are in the order of times. A clock that runs before 1970 is taken for 1970. */
function timeText(ms: number): string {
  return Math.max(0, Math.trunc(ms)).toString(32).padStart(TIME_CHARS, "0").slice(-TIME_CHARS);
}
