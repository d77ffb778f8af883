// A server that waits for the end of a run, to take over its data directory: no other program may be faster.
//
// Invariant: it is a lock of its own, which the operating system frees if the server dies while it waits.
import { join } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import type { DataDir } from "../../../sdk/data-dir.ts";
import { canonicalPath, takeLock } from "../../../store/sqlite/file/owner.ts";
import { holderOf } from "../store-holder.ts";

const placeOf = ({ dir }: DataDir): string => canonicalPath(join(dir, "next-server"));

/** Says that a server waits, until the returned function is called. Another one may have said so already. */
export function waitAsServer(home: DataDir): () => void {
  try {
    const lock = takeLock(placeOf(home));
    return () => lock.release();
  } catch (error) {
    if (error instanceof ControlError && error.code === "store_locked") return () => {};
    throw error;
  }
}

/** Whether a server takes the directory over as soon as it is free. */
export const isServerWaiting = (home: DataDir): boolean => holderOf(placeOf(home)) !== undefined;
