// Opens and configures SQLite connections.
import { BUSY_MS, CACHE_KIB, CHECKPOINT_PAGES, WAL_BYTES_MAX } from "./limits.ts";
import { DatabaseSync } from "./node-sqlite.ts";

/** The part of a connection that is used here: small enough for a test to replace. */
export type Database = Pick<DatabaseSync, "exec" | "prepare" | "close">;

/** Opens a connection that can write. It waits a limited time for other programs. */
export function openDatabase(file: string): Database {
  // @fault no-journal
  const setUp = `PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;`;
  return orClosed(new DatabaseSync(file), (database) => {
    database.exec(setUp);
    return database;
  });
}

/** Closes the connection if `make` fails: no caller has it then, and it may hold a lock. */
export function orClosed<A>(database: Database, make: (database: Database) => A): A {
  try {
    return make(database);
  } catch (error) {
    try {
      database.close(); // @fault left-open
    } catch {
      // A failed connection may fail to close, too. The error thrown says why.
    }
    throw error;
  }
}

/**
 * Enables the write-ahead log: writers do not wait for readers, and a commit is one write and one sync. FULL is set
 * explicitly because drivers have different defaults: with NORMAL, a power cut loses acknowledged commits.
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

/** Opens a connection that cannot write. */
export function openReadOnly(file: string): Database {
  const setUp = `PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA cache_size = -${CACHE_KIB};`;
  return orClosed(new DatabaseSync(file, { readOnly: true }), (database) => {
    database.exec(setUp);
    return database;
  });
}

export const userVersion = (database: Database): number => pragma(database, "user_version");

/** Freed pages are kept in a list and returned to the file system in small steps. */
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
