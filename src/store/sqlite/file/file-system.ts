// Checks whether a file system can hold a database. On a network file system, locks and the shared memory of the
// write-ahead log work on each machine alone, so two servers could write to one file and corrupt it. Also checks for
// free space.
import { statfsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import { ROOM_BYTES_MIN } from "../limits.ts";

/**
 * File system types by Linux's magic numbers. Other systems have other numbers, none of them listed here. 9P is not
 * listed: sandboxes use it for their own disk, which no other machine shares.
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

/** Set to 1 by users whose network file system has working locks, or who know that no other machine opens the file. */
const ANYWHERE = "BELAY_STORE_ANYWHERE";

/** Refuses a file on a shared file system. */
export function requireLocal(file: string): void {
  const kind = SHARED.get(kindOf(dirname(resolve(file))));
  if (kind === undefined || process.env[ANYWHERE] === "1") return;
  throw new ControlError("invalid", `${file} is on a file system that other machines share (${kind}).`, {
    hint: `Put it on a disk of this machine, whose locks keep a second server out. ${ANYWHERE}=1 opens it anyway.`,
  });
}

/**
 * Whether the disk has so little free space that a new write may fail. If the system does not report it, there is
 * space.
 */
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
    // Unsigned, because 32-bit systems return it signed.
    return statfsSync(folder).type >>> 0;
  } catch {
    // Opening the file will report this error.
    return 0;
  }
}
