// Opens a file for writing, after checking that it is a Belay store, not in use, undamaged and of a known version.
// The checks run in this order, so that a refusal leaves no trace.
import { existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import {
  autoVacuum,
  type Database,
  INCREMENTAL,
  openDatabase,
  orClosed,
  pagesOf,
  useWriteAheadLog,
} from "../database.ts";
import { MARK_EVERY_MS, RESERVE_BYTES, REWRITE_BYTES_MAX } from "../limits.ts";
import { LogWriter } from "../log-writer.ts";
import { MIGRATIONS } from "../schema.ts";
import { storeError } from "../sqlite-errors.ts";
import type { Owner } from "./file-identity.ts";
import { requireLocal } from "./file-system.ts";
import { requireOurs, requireWhole } from "./inspect.ts";
import { LogEndMark, requireNewest, requireThere } from "./log-end-mark.ts";
import { migrate } from "./migrate.ts";
import { type Lock, lockPath, requireAlone, takeEpochs, takeLock, takeOwnership } from "./owner.ts";
import { FileLost, Ownership, requireOneName, TakenOver } from "./ownership.ts";
import { Reserve } from "./reserve.ts";

export interface OpenFile {
  readonly writer: LogWriter;
  /** Reserves a block of epochs that are higher than all before. Returns the epoch before the first one. */
  epochs(): number;
  /** Throws unless the file is still in place and owned by this program. Writes nothing. */
  look(): void;
  /** Throws the same after everything was closed, unless the check itself failed. */
  close(): void;
}

export interface Opening {
  /** Opens a connection. */
  readonly open?: (path: string) => Database;
  readonly markEveryMs?: number;
}

/** Throws a ControlError if the file is in use, damaged, outdated, of a newer version, or not a Belay store. */
export function openFile(file: string, { open = openDatabase, markEveryMs = MARK_EVERY_MS }: Opening = {}): OpenFile {
  try {
    requirePlace(file);
    requireLocal(file);
    // Checked before the lock too, so that no file is created beside another program's. If there is a lock file, an
    // owner may be alive in this process, and reading the header directly would release its locks on the database.
    if (!existsSync(lockPath(file))) requireOurs(file, MIGRATIONS);
    requireOneName(file);
    const lock = takeLock(file);
    try {
      requireOneName(file);
      requireOurs(file, MIGRATIONS);
      prepare(file);
      const mark = new LogEndMark(file, markEveryMs);
      const owner = own(openDatabase(file), mark);
      const ownership = new Ownership(file, lock, owner);
      const reserve = new Reserve(`${file}.reserve`, RESERVE_BYTES);
      const writer = new LogWriter({ file, reserve, connect, mark, ownership });
      const look = (): void => requirePlaced(ownership, lock, mark);
      const close = (): void => {
        const lost = lostOf(look);
        try {
          // Must precede the writer's close, which moves the write-ahead log into the file and deletes it.
          if (lost === undefined) mark.remove();
          writer.close();
        } finally {
          lock.release();
        }
        if (lost instanceof FileLost || lost instanceof TakenOver) throw lost;
      };
      return { writer, epochs: () => writer.with((database) => takeEpochs(database, owner)), look, close };
    } catch (error) {
      lock.release();
      throw error;
    }
  } catch (error) {
    throw storeError(error, file);
  }

  function connect(): Database {
    return orClosed(open(file), (database) => {
      useWriteAheadLog(database);
      return database;
    });
  }
}

/** Uses a separate connection, so that the writer has only connections that it can open again. */
function own(database: Database, mark: LogEndMark): Owner {
  try {
    const owner = takeOwnership(database, process.pid);
    mark.begin(database);
    return owner;
  } finally {
    database.close();
  }
}

function lostOf(look: () => void): unknown {
  try {
    look();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** If the file was removed, its mark stays: the next start must not take its absence for a new store. */
function requirePlaced(ownership: Ownership, lock: Lock, mark: LogEndMark): void {
  try {
    ownership.require("any");
  } catch (error) {
    if (error instanceof FileLost && error.what === "removed" && !lock.isMoved) mark.restore();
    throw error;
  }
}

/** A mistake in the path is the caller's, and retrying does not help. */
function requirePlace(file: string): void {
  const folder = dirname(resolve(file));
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new ControlError("invalid", `There is no folder ${folder}. Create it, or give another file.`);
  }
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true) {
    throw new ControlError("invalid", `${file} is a folder. Give the name of a file in it.`);
  }
}

/**
 * Checks and migrates. A new file gets its tables before its write-ahead log, so that it is either empty or complete.
 */
function prepare(file: string): void {
  requireThere(file);
  const database = openDatabase(file);
  try {
    requireWhole(database, file);
    requireNewest(database, file);
    migrate(database, MIGRATIONS);
    if (autoVacuum(database) !== INCREMENTAL) rewrite(database);
    // The header of the file itself must have the version, because the next start reads it there first.
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
  requireAlone(file);
}

/**
 * A file can return space only after it was rewritten in that mode. Not before its first table is created: a power
 * cut would leave a file without an owner. A large file of an older version is left unchanged.
 */
function rewrite(database: Database): void {
  const { pages, pageBytes } = pagesOf(database);
  if (pages * pageBytes > REWRITE_BYTES_MAX) return;
  try {
    database.exec(`PRAGMA auto_vacuum = ${INCREMENTAL}`);
    database.exec("VACUUM");
  } catch {
    // There is no space for a second copy. The file still works, and the next start tries again.
  }
}
