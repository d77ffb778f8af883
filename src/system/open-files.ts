// How many files this program may have open, and how many it has.
import { readdirSync, readFileSync } from "node:fs";

/** The lowest number that a new file cannot have. Undefined: this system does not say. */
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
    // Less the one that the listing takes.
    return readdirSync(`${self}/fd`).length - 1;
  } catch {
    return undefined;
  }
}
