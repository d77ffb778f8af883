// Marks a server that waits for a run to end to take over its data directory, so that no other program takes it first.
//
// Invariant: the mark is a separate lock, which the operating system frees if the server dies while it waits.
import { join } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import type { DataDir } from "../../../sdk/data-dir.ts";
import { canonicalPath, takeLock } from "../../../store/sqlite/file/owner.ts";
import { holderOf } from "../store-holder.ts";

const placeOf = ({ dir }: DataDir): string => canonicalPath(join(dir, "next-server"));

/** Sets the mark until the returned function is called. Does nothing if another server has set it already. */
export function waitAsServer(home: DataDir): () => void {
  try {
    const lock = takeLock(placeOf(home));
    return () => lock.release();
  } catch (error) {
    if (error instanceof ControlError && error.code === "store_locked") return () => {};
    throw error;
  }
}

/** Whether a server waits to take over the directory. */
export const isServerWaiting = (home: DataDir): boolean => holderOf(placeOf(home)) !== undefined;
