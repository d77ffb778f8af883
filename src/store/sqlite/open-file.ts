// Opening a file for writing: ours, alone, whole, of this version. In this order, so that a refusal leaves no trace.
import { existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ControlError } from "../../core/control-error.ts";
import { type Database, openDatabase, orClosed, useWriteAheadLog } from "./database.ts";
import { requireLocal } from "./file-system.ts";
import { requireOurs, requireWhole } from "./inspect.ts";
import { MARK_EVERY_MS, RESERVE_BYTES } from "./limits.ts";
import { LogWriter } from "./log-writer.ts";
import { Mark, requireNewest, requireThere } from "./mark.ts";
import { migrate } from "./migrate.ts";
import { lockPath, takeEpochs, takeLock } from "./owner.ts";
import { Reserve } from "./reserve.ts";
import { MIGRATIONS } from "./schema.ts";
import { troubleError } from "./trouble.ts";

export interface OpenFile {
  readonly writer: LogWriter;
  /** Takes a block of epochs that are higher than all before. Answers the one before the first. */
  epochs(): number;
  close(): void;
}

export interface Opening {
  /** How a connection is made. */
  readonly open?: (path: string) => Database;
  readonly markEveryMs?: number;
}

/** Throws a ControlError if the file is in use, damaged, older than it was, newer, or not ours. */
export function openFile(file: string, { open = openDatabase, markEveryMs = MARK_EVERY_MS }: Opening = {}): OpenFile {
  try {
    requirePlace(file);
    requireLocal(file);
    // Before the lock too, so that nothing is put beside a file that is not ours. With a lock's file there, an owner
    // may be alive in this process, and reading the header by hand would drop the locks that it has on the database.
    if (!existsSync(lockPath(file))) requireOurs(file, MIGRATIONS);
    const lock = takeLock(file);
    try {
      requireOurs(file, MIGRATIONS);
      prepare(file);
      const mark = new Mark(file, markEveryMs);
      const reserve = new Reserve(`${file}.reserve`, RESERVE_BYTES);
      const writer = new LogWriter({ file, reserve, connect, mark });
      const owner = { pid: process.pid, since: Date.now() };
      const close = (): void => {
        try {
          // Before its end: from here on the log is moved into the file, and goes.
          mark.remove();
          writer.close();
        } finally {
          lock.release();
        }
      };
      return { writer, epochs: () => writer.with((database) => takeEpochs(database, owner)), close };
    } catch (error) {
      lock.release();
      throw error;
    }
  } catch (error) {
    throw troubleError(error, file);
  }

  function connect(): Database {
    return orClosed(open(file), (database) => {
      useWriteAheadLog(database);
      return database;
    });
  }
}

/** A mistake in the path is the caller's, and trying again does not help. */
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
    // The header of the file itself must tell the version: that is where the next one looks first.
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
}
