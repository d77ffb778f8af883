// Commands leave some of the files free that this program may have open, so that a stop can always be received and
// carried out. Connections do too: `src/http/transport/connection-limits.ts`.
import { openFiles, openFilesMax } from "../../system/open-files.ts";

/** Kept free of commands: for stops, and for what the store opens meanwhile. */
export const FILES_FOR_STOPS = 12;

/** With fewer a server could not start one command. */
export const FILES_MIN = 64;

/** Pipes and output files of one command. */
export const FILES_OF_COMMAND = 10;

/** Whether `wanted` more files would use up what is kept for stops. */
export function isShortOfFiles(wanted = 0, self = "/proc/self"): boolean {
  const max = openFilesMax(self);
  const open = max === undefined ? undefined : openFiles(self);
  return max !== undefined && open !== undefined && open + wanted > max - FILES_FOR_STOPS;
}
