// Reserves file descriptors of this program, so that a stop can always be received and carried out. Connections leave
// the same reserve: `src/http/transport/connection-limits.ts`.
import { openFiles, openFilesMax } from "../../system/open-files.ts";

/** Not available to commands: for stops, and for the files that the store opens meanwhile. */
export const FILES_FOR_STOPS = 12;

/** With fewer a server could not start one command. */
export const FILES_MIN = 64;

/** Pipes and output files of one command. */
export const FILES_OF_COMMAND = 10;

/** Whether opening `wanted` more files would use the reserve for stops. */
export function isShortOfFiles(wanted = 0, self = "/proc/self"): boolean {
  const max = openFilesMax(self);
  const open = max === undefined ? undefined : openFiles(self);
  return max !== undefined && open !== undefined && open + wanted > max - FILES_FOR_STOPS;
}
