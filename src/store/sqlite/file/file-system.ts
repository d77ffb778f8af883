// Whether a file system can be trusted with a database. On one that other machines share, locks and the shared memory
// of the write-ahead log hold on each machine alone, so two servers could write into one file and damage it. And
// whether it has room.
import { statfsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import { ROOM_BYTES_MIN } from "../limits.ts";

/**
 * By the number that Linux calls each of them. Other systems have other numbers, and none of these. 9P is not among
 * them: it is how a sandbox shows its own disk, which nobody else shares.
 */
const SHARED: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB"],
  [0x517b, "SMB"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x00c36400, "Ceph"],
  [0x73757245, "Coda"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
]);

/** Set to 1 by somebody who knows that their file system keeps its locks, and that nobody else opens the file. */
const ANYWHERE = "BELAY_STORE_ANYWHERE";

/** Refuses a place that other machines share. */
export function requireLocal(file: string): void {
  const kind = SHARED.get(kindOf(dirname(resolve(file))));
  if (kind === undefined || process.env[ANYWHERE] === "1") return;
  throw new ControlError("invalid", `${file} is on a file system that other machines share (${kind}).`, {
    hint: `Put it on a disk of this machine, whose locks keep a second server out. ${ANYWHERE}=1 opens it anyway.`,
  });
}

/** Whether the disk of this file has so little left that something new may not fit. One that does not say has room. */
export function isTight(file: string): boolean {
  try {
    const { bavail, bsize, blocks } = statfsSync(dirname(resolve(file)));
    return blocks > 0 && bavail * bsize < ROOM_BYTES_MIN;
  } catch {
    return false;
  }
}

function kindOf(folder: string): number {
  try {
    // Unsigned, whichever way a system of 32 bits sees it.
    return statfsSync(folder).type >>> 0;
  } catch {
    // What cannot be looked at is told by whoever opens it.
    return 0;
  }
}
