// The right to a data directory: the lock of its store, taken before anything else in it is touched.
//
// Invariants
// 1. One program has it at a time. The operating system ends it with the process, however that dies.
// 2. The socket and the note of a data directory are written by its holder alone. A holder that comes finds only what a
//    dead one has left, and removes it.
import { rmSync } from "node:fs";
import { ControlError, toControlError } from "../core/errors.ts";
import type { Store } from "../ports/store.ts";
import { canonicalPath, type Lock, takeLock } from "../store/sqlite/file/owner.ts";
import { isTakenOver } from "../store/sqlite/file/ownership.ts";
import { storeError } from "../store/sqlite/sqlite-errors.ts";
import { openSqliteStore } from "../store/sqlite/sqlite-store.ts";
import type { DataDir } from "./data-dir.ts";

export interface DataLock {
  /** Open, unless everything is kept in memory. */
  readonly store: Store | ":memory:";
  /** Takes it again if its file was removed or replaced. `lost`: another program has the directory from now on. */
  keep(): Promise<"held" | "lost">;
  /** Closes the store, if it is still open, and gives the right back. */
  release(): Promise<void>;
}

/** Takes the right, or throws `store_locked` and says who has it. `store`: a file, or `:memory:`. */
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

/** What else its store reports does not concern the lock, which it has taken again by then. */
const isLost = (store: Store, file: string): Promise<boolean> =>
  (store.ready?.() ?? Promise.resolve()).then(
    () => false,
    (error: unknown) => isTakenOver(toControlError(error), file),
  );

const isOwn = ({ storeFile }: DataDir, store: string): boolean => canonicalPath(store) === canonicalPath(storeFile);

/** For a store that is kept elsewhere, the one that the directory would have is locked as well. */
function lockOf({ dir, storeFile }: DataDir): Lock {
  const file = canonicalPath(storeFile);
  try {
    return takeLock(file);
  } catch (error) {
    if (!(error instanceof ControlError) || error.code !== "store_locked") throw storeError(error, file);
    throw new ControlError("store_locked", `The data directory ${dir} is in use.`, { cause: error });
  }
}
