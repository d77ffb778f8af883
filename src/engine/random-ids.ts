// Ids nobody can guess, and digests: the only randomness of Belay.
import { createHash, randomFillSync } from "node:crypto";
import type { Ids } from "../ports.ts";

const ID_BYTES = 15;
const POOL_IDS = 256;
const ALPHABET = "0123456789abcdefghijklmnopqrstuv";

/** 24 characters of base 32 carry 120 bits. Drawn from a pool: one call into the kernel serves many ids. */
export function randomIds(): Ids {
  const pool = new Uint8Array(ID_BYTES * POOL_IDS);
  let used = pool.length;
  return {
    make(prefix) {
      if (used === pool.length) {
        randomFillSync(pool);
        used = 0;
      }
      const id = prefix + base32(pool, used);
      used += ID_BYTES;
      return id;
    },
    digest: (text) => createHash("sha256").update(text).digest("base64url"),
  };
}

/** Five bytes at a time are eight characters. */
function base32(bytes: Uint8Array, from: number): string {
  let text = "";
  for (let at = from; at < from + ID_BYTES; at += 5) {
    // 40 bits fit a double exactly, but not a 32-bit shift: two halves of 20.
    const high = ((bytes[at] ?? 0) << 12) | ((bytes[at + 1] ?? 0) << 4) | ((bytes[at + 2] ?? 0) >> 4);
    const low = (((bytes[at + 2] ?? 0) & 15) << 16) | ((bytes[at + 3] ?? 0) << 8) | (bytes[at + 4] ?? 0);
    for (let shift = 15; shift >= 0; shift -= 5) text += ALPHABET[(high >> shift) & 31];
    for (let shift = 15; shift >= 0; shift -= 5) text += ALPHABET[(low >> shift) & 31];
  }
  return text;
}
