// A connection to SQLite, and how we set one up.
import { BUSY_MS, CACHE_KIB, CHECKPOINT_PAGES, WAL_BYTES_MAX } from "./limits.ts";
import { DatabaseSync } from "./node-sqlite.ts";

/** As much of a connection as we use: little enough that a test can stand between us and it. */
export type Database = Pick<DatabaseSync, "exec" | "prepare" | "close">;

/** A connection that may write. Waits a bounded time for other programs. */
export function openDatabase(file: string): Database {
  // @fault no-journal
  const setUp = `PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;`;
  return orClosed(new DatabaseSync(file), (database) => {
    database.exec(setUp);
    return database;
  });
}

/** What is made of a connection. If that fails the connection is closed: nobody else could, and it may hold a lock. */
export function orClosed<A>(database: Database, make: (database: Database) => A): A {
  try {
    return make(database);
  } catch (error) {
    try {
      database.close(); // @fault left-open
    } catch {
      // A connection that failed may fail at this too. What is thrown says why.
    }
    throw error;
  }
}

/**
 * From here on writers do not wait for readers, and a commit is one write and one sync of the write-ahead log.
 * FULL is said here because drivers differ in their defaults: with NORMAL, a power cut takes receipts back.
 */
export function useWriteAheadLog(database: Database): void {
  // @fault sync-normal, sync-off
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
  const setUp = `PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA cache_size = -${CACHE_KIB};`;
  return orClosed(new DatabaseSync(file, { readOnly: true }), (database) => {
    database.exec(setUp);
    return database;
  });
}

export const userVersion = (database: Database): number => pragma(database, "user_version");

/** Pages that are freed are kept in a list, and given back in small steps. */
export const INCREMENTAL = 2;

export const autoVacuum = (database: Database): number => pragma(database, "auto_vacuum");

export interface Pages {
  readonly pageBytes: number;
  readonly pages: number;
  readonly freePages: number;
}

export const pagesOf = (database: Database): Pages => ({
  pageBytes: pragma(database, "page_size"),
  pages: pragma(database, "page_count"),
  freePages: pragma(database, "freelist_count"),
});

const pragma = (database: Database, name: string): number =>
  Number(database.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
