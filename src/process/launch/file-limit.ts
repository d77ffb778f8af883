// How many files this program may have open, and how many it has. Connections and commands leave some of them free, so
// that a stop can always be received and carried out.
import { readdirSync, readFileSync } from "node:fs";

/** Kept free of connections and commands: for stops on the private socket, and for what the store opens meanwhile. */
export const FILES_FOR_STOPS = 12;

/** Open in a server that does nothing. */
const FILES_OF_SERVER = 48;

/** With fewer a server could not start one command. */
export const FILES_MIN = 64;

/** Pipes and output files of one command. */
export const FILES_OF_COMMAND = 10;

/** Where few files may be open, a port still takes so many connections. */
const CONNECTIONS_MIN = 4;

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

/** Whether `wanted` more files would use up what is kept for stops. */
export function isShortOfFiles(wanted = 0, self = "/proc/self"): boolean {
  const max = openFilesMax(self);
  const open = max === undefined ? undefined : openFiles(self);
  return max !== undefined && open !== undefined && open + wanted > max - FILES_FOR_STOPS;
}

/** How many connections a port may have, of those that were asked for. */
export function connectionsWithin(wanted: number, max = openFilesMax()): number {
  if (max === undefined) return wanted;
  return Math.min(wanted, Math.max(CONNECTIONS_MIN, max - FILES_OF_SERVER - FILES_FOR_STOPS - FILES_OF_COMMAND));
}
