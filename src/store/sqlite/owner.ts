// One server for one file.
//
// Invariants
// 1. The right to a file is an exclusive transaction on a tiny database beside it, held as long as the store is open.
//    The operating system ends it with the process, however that dies, so there is no stale lock to reason about.
// 2. Nobody in this process opens the lock's file by other means: closing it would drop the lock.
import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ControlError } from "../../core/control-error.ts";
import { type Database, openReadOnly } from "./database.ts";
import { EPOCH_BLOCK } from "./limits.ts";
import { troubleOf } from "./trouble.ts";

export interface Lock {
  release(): void;
}

/** Takes the right to `file`, or throws `store_locked` and says who has it. */
export function takeLock(file: string): Lock {
  const database = new DatabaseSync(lockPath(file));
  try {
    // Not waiting: an owner keeps it for hours. Without a journal on disk: nothing is ever written.
    database.exec("PRAGMA busy_timeout = 0; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (troubleOf(error) !== "locked") throw error;
    throw new ControlError("store_locked", `${file} is in use${ownerOf(file)}.`, { cause: error });
  }
  return { release: () => database.close() };
}

/** One name for one file, whatever directory or link it is reached by: the lock stands beside that name. */
export function canonicalPath(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const directory = dirname(resolve(path));
  return existsSync(directory) ? join(realpathSync(directory), basename(path)) : resolve(path);
}

export const lockPath = (file: string): string => `${file}.lock`;

/** Writes down who owns the file now, and takes a block of epochs: those in it are higher than all before. */
export function takeEpochs(database: Database, owner: { readonly pid: number; readonly since: number }): number {
  // All of its rows, of which there is one: whoever takes only the first is not told if the commit behind it fails.
  // @fault epoch-not-heard
  const [taken] = database
    .prepare(
      `UPDATE store SET epoch = epoch + ${EPOCH_BLOCK}, owner_pid = ?, owner_since = ? WHERE id = 1 RETURNING epoch`,
    )
    .all(owner.pid, owner.since);
  return Number(taken?.epoch) - EPOCH_BLOCK;
}

function ownerOf(file: string): string {
  try {
    const database = openReadOnly(file);
    try {
      const owner = database.prepare("SELECT owner_pid AS pid, owner_since AS since FROM store").get();
      if (typeof owner?.pid !== "number") return "";
      return ` by process ${owner.pid} since ${new Date(Number(owner.since)).toISOString()}`;
    } finally {
      database.close();
    }
  } catch {
    // The owner may be creating the file at this very moment. That it is in use is known, and is what matters.
    return "";
  }
}
