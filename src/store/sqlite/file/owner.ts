// Ensures that one server at a time uses a file.
//
// Invariants
// 1. The lock of a file is an exclusive transaction on a small database beside it, held while the store is open. The
//    operating system releases it when the process ends, however it ends, so there are no stale locks.
// 2. This process opens the lock file in no other way: closing it would release the lock.
import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import { type Database, openReadOnly } from "../database.ts";
import { EPOCH_BLOCK } from "../limits.ts";
import { DatabaseSync } from "../node-sqlite.ts";
import { errorKindOf } from "../sqlite-errors.ts";
import { FileIdentity, HeldDirectory, type Owner } from "./file-identity.ts";

export interface Lock {
  /**
   * Takes it again if its file was removed or replaced; throws `store_locked` if another program has it. If its
   * directory was renamed, the lock is still held there.
   */
  keep(): void;
  /** Whether its directory was moved: whatever is at this path now belongs to another program. */
  readonly isMoved: boolean;
  release(): void;
}

/** How long to wait for a taken lock. An owner keeps it for hours; a program that only checks it, for microseconds. */
const LOCK_WAIT_MS = 100;

/** Takes the lock of `file`, or throws `store_locked` and names its owner. */
export function takeLock(file: string): Lock {
  let held = lockNow(file);
  const directory = new HeldDirectory(dirname(lockPath(file)));
  return {
    keep: () => {
      if (typeof held.identity.look() !== "string" || directory.look() === "moved") return;
      const { database } = held;
      held = lockNow(file);
      database.close();
    },
    get isMoved() {
      return directory.look() === "moved";
    },
    release: () => {
      held.database.close();
      directory.close();
    },
  };
}

interface HeldLock {
  readonly database: DatabaseSync;
  readonly identity: FileIdentity;
}

function lockNow(file: string): HeldLock {
  const path = lockPath(file);
  const database = new DatabaseSync(path);
  try {
    // No journal on disk: nothing is ever written.
    database.exec(`PRAGMA busy_timeout = ${LOCK_WAIT_MS}; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE`);
    const identity = new FileIdentity(path);
    return { database, identity };
  } catch (error) {
    database.close();
    if (errorKindOf(error) !== "locked") throw error;
    throw inUse(file, error);
  }
}

/** One path for one file, whatever directory or link it is opened by: the lock file is beside that path. */
export function canonicalPath(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const directory = dirname(resolve(path));
  return existsSync(directory) ? join(realpathSync(directory), basename(path)) : resolve(path);
}

export const lockPath = (file: string): string => `${file}.lock`;

/** Records the new owner of the file. Its number is higher than the previous owner's. */
export function takeOwnership(database: Database, pid: number): Owner {
  // Reads all rows, although there is one: reading only the first would miss a failed commit.
  const [taken] = database
    .prepare(
      `UPDATE store SET owner_pid = ?, owner_since = MAX(?, COALESCE(owner_since, 0) + 1) WHERE id = 1
        RETURNING owner_since AS since`,
    )
    .all(pid, Date.now());
  return { pid, since: Number(taken?.since) };
}

/** Reserves a block of epochs, all higher than those before. */
export function takeEpochs(database: Database, { since }: Owner): number {
  // Reads all rows, although there is one: reading only the first would miss a failed commit.
  // @fault epoch-not-heard
  const [taken] = database
    .prepare(`UPDATE store SET epoch = epoch + ${EPOCH_BLOCK} WHERE owner_since = ? RETURNING epoch`)
    .all(since);
  if (taken === undefined) throw new ControlError("store_locked", "Another program has taken over the file.");
  return Number(taken.epoch) - EPOCH_BLOCK;
}

/** Refuses a file that a living process has open although its lock was free, because the lock file had been removed. */
export function requireAlone(file: string): void {
  // The last connection to close removes the write-ahead log.
  if (!existsSync(`${file}-wal`)) return;
  const { pid } = readOwner(file) ?? {};
  if (pid === undefined || pid === process.pid || !isAlive(pid)) return;
  throw new ControlError("store_locked", `${file} is in use${ownerOf(file)}, although its lock file was removed.`);
}

/** Whether a process with this id exists. It may be a later process with the same id. */
export function isAlive(pid: number): boolean {
  try {
    // Signal 0 sends nothing; it only checks whether the process exists.
    return process.kill(pid, 0);
  } catch (error) {
    // It exists and belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** The last program that opened the file. It may have ended. */
export function readOwner(file: string): Owner | undefined {
  const database = openReadOnly(file);
  try {
    const owner = database.prepare("SELECT owner_pid AS pid, owner_since AS since FROM store").get();
    return typeof owner?.pid === "number" ? { pid: owner.pid, since: Number(owner.since) } : undefined;
  } finally {
    database.close();
  }
}

function inUse(file: string, cause: unknown): ControlError {
  if (ownerNow(file)?.pid !== process.pid) {
    return new ControlError("store_locked", `${file} is in use${ownerOf(file)}.`, { cause });
  }
  return new ControlError("store_locked", `${file} is open already in this process (${process.pid}).`, {
    hint:
      "Open it once and share it. Where modules are evaluated again, as in `next dev` after an edit, keep it: " +
      "globalThis.belay ??= await openBelay(…).",
    cause,
  });
}

function ownerOf(file: string): string {
  const owner = ownerNow(file);
  return owner === undefined ? "" : ` by process ${owner.pid} since ${new Date(owner.since).toISOString()}`;
}

function ownerNow(file: string): Owner | undefined {
  try {
    return readOwner(file);
  } catch {
    // The owner may be creating the file at this moment. The lock alone shows that it is in use.
    return undefined;
  }
}
