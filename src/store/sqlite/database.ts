// A connection to SQLite, and how we set one up.
import { DatabaseSync } from "node:sqlite";
import { BUSY_MS, CACHE_KIB, CHECKPOINT_PAGES, WAL_BYTES_MAX } from "./limits.ts";

/** As much of a connection as we use: little enough that a test can stand between us and it. */
export type Database = Pick<DatabaseSync, "exec" | "prepare" | "close">;

/** A connection that may write. Waits a bounded time for other programs. */
export function openDatabase(file: string): Database {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;`);
  return database;
}

/**
 * From here on writers do not wait for readers, and a commit is one write and one sync of the write-ahead log.
 * FULL is said here because drivers differ in their defaults: with NORMAL, a power cut takes receipts back.
 */
export function useWriteAheadLog(database: Database): void {
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
    PRAGMA journal_size_limit = ${WAL_BYTES_MAX};
    PRAGMA cache_size = -${CACHE_KIB};
  `);
}

/** A connection that cannot write. */
export function openReadOnly(file: string): Database {
  const database = new DatabaseSync(file, { readOnly: true });
  database.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA cache_size = -${CACHE_KIB};`);
  return database;
}

export function userVersion(database: Database): number {
  return Number(database.prepare("PRAGMA user_version").get()?.user_version ?? 0);
}
