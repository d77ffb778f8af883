// Checks whether a file is a Belay store, and undamaged, before anything is written to it.
//
// Invariants
// 1. A refused file is not changed by a single byte.
// 2. The header is read as bytes: SQLite may write to a database merely because it was opened.
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { ControlError } from "../../../core/errors.ts";
import { type Database, openReadOnly, userVersion } from "../database.ts";
import { FULL_CHECK_BYTES } from "../limits.ts";
import { APPLICATION_ID, type Migrations } from "../schema.ts";
import { requireKnown } from "./migrate.ts";

const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";
const USER_VERSION_AT = 60;
const APPLICATION_ID_AT = 68;
const JOURNAL_HEADER_BYTES = 20;
const JOURNAL_MAGIC = "d9d505f920a163d7";
const PAGES_BEFORE_AT = 16;

/**
 * Refuses a file that is not a database, or is another program's, or a newer Belay's. Missing and empty files are
 * allowed.
 */
export function requireOurs(file: string, migrations: Migrations): void {
  const header = readHeader(file, HEADER_BYTES);
  if (header === undefined || wasBeingCreated(file)) return; // @fault header-believed
  if (header.length < HEADER_BYTES || header.toString("latin1", 0, MAGIC.length) !== MAGIC) {
    throw new ControlError("store_corrupt", `${file} is not a database. It was not touched.`);
  }
  if (header.readUInt32BE(APPLICATION_ID_AT) !== APPLICATION_ID) {
    throw new ControlError("invalid", `${file} is the database of another program. It was not touched.`);
  }
  requireKnown(header.readUInt32BE(USER_VERSION_AT), migrations);
  // After a crash the version may be in the write-ahead log, where only SQLite can read it. A journal would have to
  // be rolled back first, which only a writer can do: the migration checks again.
  // @fault journal-in-the-way
  if (existsSync(`${file}-wal`) && !existsSync(`${file}-journal`)) requireKnownInside(file, migrations);
}

/**
 * Checks for damage. Small files are checked completely. Of a large file only the structure of the small tables is
 * checked: checking every page would delay the start by seconds, and damage elsewhere is found when its page is read,
 * and reported as `store_corrupt`.
 */
export function requireWhole(database: Database, file: string): void {
  const small = statSync(file).size <= FULL_CHECK_BYTES;
  const checks = small
    ? ["integrity_check(1)"]
    : ["quick_check(store)", "quick_check(session)", "quick_check(snapshot)", "quick_check(memo)"];
  for (const check of checks) {
    const row = database.prepare(`PRAGMA ${check}`).get();
    const verdict = Object.values(row ?? {})[0];
    if (verdict !== "ok") throw new ControlError("store_corrupt", `${file} is damaged: ${String(verdict)}.`);
  }
}

function requireKnownInside(file: string, migrations: Migrations): void {
  const database = openReadOnly(file);
  try {
    requireKnown(userVersion(database), migrations);
  } finally {
    database.close();
  }
}

/**
 * Whether a crash or a power cut happened while the file was created: then its contents mean nothing. The rollback
 * journal beside it, with which SQLite undoes the creation, says that the database was empty before.
 */
function wasBeingCreated(file: string): boolean {
  const journal = readHeader(`${file}-journal`, JOURNAL_HEADER_BYTES);
  if (journal === undefined || journal.length < JOURNAL_HEADER_BYTES) return false;
  return journal.toString("hex", 0, 8) === JOURNAL_MAGIC && journal.readUInt32BE(PAGES_BEFORE_AT) === 0;
}

function readHeader(file: string, bytes: number): Buffer | undefined {
  if (!existsSync(file)) return undefined;
  const descriptor = openSync(file, "r");
  try {
    const header = Buffer.alloc(bytes);
    const length = readSync(descriptor, header, 0, bytes, 0);
    return length === 0 ? undefined : header.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}
