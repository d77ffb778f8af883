// Exclusive use of a data directory: the lock of its store, taken before anything else in it is touched.
//
// Invariants
// 1. One process holds it at a time. The operating system releases it when that process ends, however it ends.
// 2. Only the holder writes the socket and the note. A new holder finds at most those of a dead process, and removes
//    them.
import { rmSync } from "node:fs";
import { ControlError, toControlError } from "../core/errors.ts";
import type { Store } from "../ports/store.ts";
import { canonicalPath, type Lock, takeLock } from "../store/sqlite/file/owner.ts";
import { isTakenOver } from "../store/sqlite/file/ownership.ts";
import { storeError } from "../store/sqlite/sqlite-errors.ts";
import { openSqliteStore } from "../store/sqlite/sqlite-store.ts";
import type { DataDir } from "./data-dir.ts";

export interface DataLock {
  /** The open store, unless everything is kept in memory. */
  readonly store: Store | ":memory:";
  /**
   * Takes the lock again if its file was removed or replaced. `lost`: another program holds the directory from now
   * on.
   */
  keep(): Promise<"held" | "lost">;
  /** Closes the store, if it is still open, and releases the lock. */
  release(): Promise<void>;
}

/** Takes the lock, or throws `store_locked` and names its holder. `store`: a file, or `:memory:`. */
export async function takeDataDirectory(home: DataDir, store: string): Promise<DataLock> {
  const lock = isOwn(home, store) ? undefined : lockOf(home);
  try {
    const opened = store === ":memory:" ? store : await openSqliteStore({ file: store });
    rmSync(home.serverFile, { force: true });
    const release = async (): Promise<void> => {
      try {
        if (opened !== ":memory:") await opened.close();
      } finally {
        lock?.release();
      }
    };
    const keep = async (): Promise<"held" | "lost"> => {
      try {
        lock?.keep();
      } catch (error) {
        return error instanceof ControlError && error.code === "store_locked" ? "lost" : "held";
      }
      return opened === ":memory:" || !(await isLost(opened, canonicalPath(store))) ? "held" : "lost";
    };
    return { store: opened, keep, release };
  } catch (error) {
    lock?.release();
    throw error;
  }
}

/** Only a takeover concerns the lock; other errors of the store do not, and by now the store holds its lock again. */
const isLost = (store: Store, file: string): Promise<boolean> =>
  (store.ready?.() ?? Promise.resolve()).then(
    () => false,
    (error: unknown) => isTakenOver(toControlError(error), file),
  );

const isOwn = ({ storeFile }: DataDir, store: string): boolean => canonicalPath(store) === canonicalPath(storeFile);

/** If the store is kept elsewhere, the lock of the directory's own store is taken as well. */
function lockOf({ dir, storeFile }: DataDir): Lock {
  const file = canonicalPath(storeFile);
  try {
    return takeLock(file);
  } catch (error) {
    if (!(error instanceof ControlError) || error.code !== "store_locked") throw storeError(error, file);
    throw new ControlError("store_locked", `The data directory ${dir} is in use.`, { cause: error });
  }
}
