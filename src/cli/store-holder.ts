// Who works on the store of a home without a server around it, so that nobody is left to wonder where their run is.
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { openReadOnly } from "../store/sqlite/database.ts";
import { canonicalPath, lockPath } from "../store/sqlite/owner.ts";
import { troubleOf } from "../store/sqlite/trouble.ts";

/** The other process that has a store open now. Undefined: none has, or nobody can tell. It leaves no trace. */
export function holderOf(store: string): number | undefined {
  const file = canonicalPath(store);
  // Whoever has it open has both beside it. Without them a look would make files of its own.
  if (![lockPath(file), `${file}-wal`].every((one) => existsSync(one))) return undefined;
  try {
    const pid = ownerOf(file);
    // The lock comes last: looking at one that is free could be in the way of somebody who takes it at that moment.
    return pid !== undefined && isAlive(pid) && isTaken(lockPath(file)) ? pid : undefined;
  } catch {
    // Being created, damaged, or not ours to read. Whoever opens it is told which.
    return undefined;
  }
}

/** Written when it was opened, and left there: they may have gone since. */
function ownerOf(file: string): number | undefined {
  const database = openReadOnly(file);
  try {
    const pid = database.prepare("SELECT owner_pid AS pid FROM store").get()?.pid;
    return typeof pid === "number" && pid > 0 && pid !== process.pid ? pid : undefined;
  } finally {
    database.close();
  }
}

function isAlive(pid: number): boolean {
  try {
    // Signal 0 is none: it only says whether there is somebody to send one to.
    return process.kill(pid, 0);
  } catch (error) {
    // There is, and it is somebody else's.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

function isTaken(lock: string): boolean {
  const database = new DatabaseSync(lock, { readOnly: true, timeout: 0 });
  try {
    database.prepare("SELECT count(*) FROM sqlite_master").get();
    return false;
  } catch (error) {
    return troubleOf(error) === "locked";
  } finally {
    database.close();
  }
}
