// Whether a file is ours, and whole. Looked at before anything is written to it.
//
// Invariants
// 1. A file that is refused is byte for byte what it was.
// 2. The header is read as bytes: SQLite may write to a database only because it was opened.
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { ControlError } from "../../core/control-error.ts";
import { type Database, openReadOnly, userVersion } from "./database.ts";
import { FULL_CHECK_BYTES } from "./limits.ts";
import { requireKnown } from "./migrate.ts";
import { APPLICATION_ID, type Migrations } from "./schema.ts";

const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";
const USER_VERSION_AT = 60;
const APPLICATION_ID_AT = 68;

/** Refuses a file that is no database, another program's, or a newer Belay's. Missing and empty files are fine. */
export function requireOurs(file: string, migrations: Migrations): void {
  const header = readHeader(file);
  if (header === undefined) return;
  if (header.length < HEADER_BYTES || header.toString("latin1", 0, MAGIC.length) !== MAGIC) {
    throw new ControlError("store_corrupt", `${file} is not a database. It was not touched.`);
  }
  if (header.readUInt32BE(APPLICATION_ID_AT) !== APPLICATION_ID) {
    throw new ControlError("invalid", `${file} is the database of another program. It was not touched.`);
  }
  requireKnown(header.readUInt32BE(USER_VERSION_AT), migrations);
  // After a crash the version may stand in the write-ahead log, where only SQLite can read it.
  if (existsSync(`${file}-wal`)) requireKnownInside(file, migrations);
}

/**
 * Looks for damage. In full if the file is small. Of a large one only the structure of the small tables is checked: a
 * check of every page would delay the start by seconds, and damage elsewhere is found when its page is read, and
 * refused then as `store_corrupt`.
 */
export function requireWhole(database: Database, file: string): void {
  const small = statSync(file).size <= FULL_CHECK_BYTES;
  const checks = small
    ? ["integrity_check(1)"]
    : ["quick_check(store)", "quick_check(session)", "quick_check(snapshot)"];
  for (const check of checks) {
    const said = database.prepare(`PRAGMA ${check}`).get();
    const verdict = Object.values(said ?? {})[0];
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

function readHeader(file: string): Buffer | undefined {
  if (!existsSync(file)) return undefined;
  const descriptor = openSync(file, "r");
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    const length = readSync(descriptor, header, 0, HEADER_BYTES, 0);
    return length === 0 ? undefined : header.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}
