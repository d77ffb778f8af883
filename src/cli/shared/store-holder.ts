// Finds the process that holds the lock of a store. Creates no files.
import { existsSync } from "node:fs";
import type { Owner } from "../../store/sqlite/file/file-identity.ts";
import { canonicalPath, isAlive, lockPath, readOwner } from "../../store/sqlite/file/owner.ts";
import { DatabaseSync } from "../../store/sqlite/node-sqlite.ts";
import { errorKindOf } from "../../store/sqlite/sqlite-errors.ts";

export interface Holder {
  /** Undefined: the file does not name one, because it is being opened, or the store is in memory. */
  readonly pid: number | undefined;
  /** When it opened the store: wall clock, ms. */
  readonly since: number | undefined;
}

/** The process that has a store open now. Undefined: no process has. */
export function holderOf(store: string): Holder | undefined {
  const file = canonicalPath(store);
  if (!isTaken(lockPath(file))) return undefined;
  const { pid, since } = ownerOf(file) ?? {};
  return { pid, since };
}

/** The owner that the file names. An entry of a dead process does not name the one that is opening it now. */
function ownerOf(file: string): Owner | undefined {
  // Without the write-ahead log of an owner, opening the database would create files beside it.
  if (!existsSync(`${file}-wal`)) return undefined;
  try {
    const owner = readOwner(file);
    return owner !== undefined && isAlive(owner.pid) ? owner : undefined;
  } catch {
    return undefined;
  }
}

function isTaken(lock: string): boolean {
  if (!existsSync(lock)) return false;
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(lock, { readOnly: true, timeout: 0 });
    database.prepare("SELECT count(*) FROM sqlite_master").get();
    return false;
  } catch (error) {
    // Anything else is not a lock, or belongs to another user: opening the store reports it.
    return errorKindOf(error) === "locked";
  } finally {
    database?.close();
  }
}
