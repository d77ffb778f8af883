// Predictable ids: run_1, run_2, … Each prefix is counted separately.
import { createHash } from "node:crypto";
import type { Ids } from "../ports/clock.ts";

export function sequentialIds(first = 1): Ids {
  const next = new Map<string, number>();
  return {
    make(prefix) {
      const number = next.get(prefix) ?? first;
      next.set(prefix, number + 1);
      return `${prefix}${number}`;
    },
    digest: (text) => createHash("sha256").update(text).digest("base64url"),
  };
}
