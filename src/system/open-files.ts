// The limit and the number of open files of this process.
import { readdirSync, readFileSync } from "node:fs";

/** The soft limit on file descriptors. Undefined on systems without `/proc`. */
export function openFilesMax(self = "/proc/self"): number | undefined {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync(`${self}/limits`, "latin1")) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

export function openFiles(self = "/proc/self"): number | undefined {
  try {
    // Minus the descriptor that the listing itself opens.
    return readdirSync(`${self}/fd`).length - 1;
  } catch {
    return undefined;
  }
}
