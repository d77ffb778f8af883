// One server for one file.
//
// Invariants
// 1. The right to a file is an exclusive transaction on a tiny database beside it, held as long as the store is open.
//    The operating system ends it with the process, however that dies, so there is no stale lock to reason about.
// 2. Nobody in this process opens the lock's file by other means: closing it would drop the lock.
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
   * Takes it again if its file was removed or replaced; throws `store_locked` if another program was faster. If its
   * directory was renamed, it is still held there.
   */
  keep(): void;
  /** Whether its directory stands elsewhere now: what is in this place belongs to another. */
  readonly isMoved: boolean;
  release(): void;
}

/** How long a lock that is taken is waited for. An owner keeps it for hours; one that only looks, for microseconds. */
const LOOK_MS = 100;

/** Takes the right to `file`, or throws `store_locked` and says who has it. */
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
    // Without a journal on disk: nothing is ever written.
    database.exec(`PRAGMA busy_timeout = ${LOOK_MS}; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE`);
    const identity = new FileIdentity(path);
    return { database, identity };
  } catch (error) {
    database.close();
    if (errorKindOf(error) !== "locked") throw error;
    throw inUse(file, error);
  }
}

/** One name for one file, whatever directory or link it is reached by: the lock stands beside that name. */
export function canonicalPath(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const directory = dirname(resolve(path));
  return existsSync(directory) ? join(realpathSync(directory), basename(path)) : resolve(path);
}

export const lockPath = (file: string): string => `${file}.lock`;

/** Writes down who owns the file from now on. Its number is higher than that of the owner before. */
export function takeOwnership(database: Database, pid: number): Owner {
  // All of its rows, of which there is one: a caller that takes only the first does not learn that the commit failed.
  const [taken] = database
    .prepare(
      `UPDATE store SET owner_pid = ?, owner_since = MAX(?, COALESCE(owner_since, 0) + 1) WHERE id = 1
        RETURNING owner_since AS since`,
    )
    .all(pid, Date.now());
  return { pid, since: Number(taken?.since) };
}

/** Takes a block of epochs: those in it are higher than all before. */
export function takeEpochs(database: Database, { since }: Owner): number {
  // All of its rows, of which there is one: whoever takes only the first is not told if the commit behind it fails.
  // @fault epoch-not-heard
  const [taken] = database
    .prepare(`UPDATE store SET epoch = epoch + ${EPOCH_BLOCK} WHERE owner_since = ? RETURNING epoch`)
    .all(since);
  if (taken === undefined) throw new ControlError("store_locked", "Another program has taken over the file.");
  return Number(taken.epoch) - EPOCH_BLOCK;
}

/** Refuses a file that a living process has open, although its lock was free: the lock's file had been removed. */
export function requireAlone(file: string): void {
  // The last connection to leave takes the write-ahead log along.
  if (!existsSync(`${file}-wal`)) return;
  const { pid } = readOwner(file) ?? {};
  if (pid === undefined || pid === process.pid || !isAlive(pid)) return;
  throw new ControlError("store_locked", `${file} is in use${ownerOf(file)}, although its lock file was removed.`);
}

/** Whether a process has this id now. It may be another one than the process that is meant. */
export function isAlive(pid: number): boolean {
  try {
    // Signal 0 sends nothing: it only tells whether the process exists.
    return process.kill(pid, 0);
  } catch (error) {
    // It exists, and belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Who opened the file last. It may have gone since. */
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
    // The owner may be creating the file at this very moment. That it is in use is known, and is what matters.
    return undefined;
  }
}
