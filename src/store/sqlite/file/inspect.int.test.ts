import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../database.ts";
import { FULL_CHECK_BYTES } from "../limits.ts";
import { MIGRATIONS } from "../schema.ts";
import { requireOurs, requireWhole } from "./inspect.ts";
import { migrate } from "./migrate.ts";

const PAGE = 4096;

let directory = "";
let file = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "belay-inspect-"));
  file = join(directory, "belay.db");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** A closed Belay store. */
function make(): void {
  const database = openDatabase(file);
  migrate(database, MIGRATIONS);
  database.exec("INSERT INTO session (id, created_at) VALUES ('ses_a', 1)");
  database.exec("INSERT INTO event (session, seq, count, at, data) VALUES (1, 1, 1, 1, 'text')");
  database.close();
}

describe("whether a file is a Belay store", () => {
  const notADatabase = { code: "store_corrupt", message: () => `${file} is not a database. It was not touched.` };
  const refused = ({ code, message }: { code: string; message: () => string }): void =>
    expect(() => requireOurs(file, MIGRATIONS)).toThrow(expect.objectContaining({ code, message: message() }));

  it("is read from its complete header", () => {
    requireOurs(file, MIGRATIONS);
    writeFileSync(file, "");
    requireOurs(file, MIGRATIONS);
    make();
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.subarray(0, 99));
    refused(notADatabase);
    writeFileSync(file, bytes.subarray(0, 100));
    requireOurs(file, MIGRATIONS);
    const other = Buffer.from(bytes);
    other.write("SQLite format 4\0", "latin1");
    writeFileSync(file, other);
    refused(notADatabase);
  });

  it("is decided by its application id and its version", () => {
    make();
    const bytes = readFileSync(file);
    const other = Buffer.from(bytes);
    other.writeUInt32BE(7, 68);
    writeFileSync(file, other);
    refused({ code: "invalid", message: () => `${file} is the database of another program. It was not touched.` });
    const newer = Buffer.from(bytes);
    newer.writeUInt32BE(MIGRATIONS.length + 1, 60);
    writeFileSync(file, newer);
    const known = MIGRATIONS.length;
    const message = () => `The file is of version ${known + 1}; this Belay knows versions up to ${known}.`;
    refused({ code: "store_newer", message });
  });

  const journal = (change: (header: Buffer) => void = () => undefined): Buffer => {
    const header = Buffer.alloc(28);
    header.write("d9d505f920a163d7", "hex");
    change(header);
    return header;
  };

  it("is not decided by its bytes if a journal shows that it was being created at a power cut", () => {
    writeFileSync(file, "half of a page");
    writeFileSync(`${file}-journal`, journal());
    requireOurs(file, MIGRATIONS);
    writeFileSync(`${file}-journal`, journal().subarray(0, 20));
    requireOurs(file, MIGRATIONS);
  });

  it.each([
    ["is too short to say", journal().subarray(0, 19)],
    ["is empty", Buffer.alloc(0)],
    ["is no journal", journal((header) => header.writeUInt8(0, 7))],
    ["says that there was something before", journal((header) => header.writeUInt32BE(3, 16))],
  ])("is decided by its bytes if the journal beside it %s", (_, bytes) => {
    writeFileSync(file, "half of a page");
    writeFileSync(`${file}-journal`, bytes);
    refused(notADatabase);
  });

  it("is not read through SQLite while a journal must be rolled back, which only a writer can do", () => {
    make();
    const writing = openDatabase(file);
    writing.exec("PRAGMA journal_mode = WAL; PRAGMA user_version = 99");
    expect(existsSync(`${file}-wal`)).toBe(true);
    expect(() => requireOurs(file, MIGRATIONS)).toThrow(expect.objectContaining({ code: "store_newer" }));
    writeFileSync(
      `${file}-journal`,
      journal((header) => header.writeUInt32BE(3, 16)),
    );
    requireOurs(file, MIGRATIONS);
    rmSync(`${file}-journal`);
    writing.close();
  });
});

describe("whether a file is undamaged", () => {
  /** Damages the first page of a table. */
  function damage(table: string, sizeAfter: number): void {
    make();
    const database = openDatabase(file);
    const root = Number(database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(table)?.rootpage);
    database.close();
    const bytes = readFileSync(file);
    bytes.fill(0xff, (root - 1) * PAGE, (root - 1) * PAGE + 64);
    writeFileSync(file, bytes);
    if (sizeAfter > 0) truncateSync(file, sizeAfter);
  }
  const look = (): void => {
    const database = openDatabase(file);
    try {
      requireWhole(database, file);
    } finally {
      database.close();
    }
  };
  const large = FULL_CHECK_BYTES + 1;

  it.each([
    ["event", 0],
    ["event", FULL_CHECK_BYTES],
    ["session", 0],
    ["store", large],
    ["session", large],
    ["snapshot", large],
  ])("D5: damage to %s is found and reported when a file of %d bytes is opened", (table, size) => {
    damage(table, size);
    expect(look).toThrow(expect.objectContaining({ message: expect.stringMatching(/damaged|malformed|corrupt/) }));
  });

  it("is not checked on every page of a large file, which would delay the start by seconds", () => {
    damage("event", large);
    look();
  });

  it("is true for an undamaged file", () => {
    make();
    look();
    truncateSync(file, large);
    look();
  });
});
