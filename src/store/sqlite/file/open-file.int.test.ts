import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../database.ts";
import { MIGRATIONS } from "../schema.ts";
import { migrate } from "./migrate.ts";
import { openFile } from "./open-file.ts";

let directory = "";
let file = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "belay-file-"));
  file = join(directory, "belay.db");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe("a file that this Belay cannot use", () => {
  it("of a newer version is refused and not touched", { meta: { id: "G37/newer-file-refused" } }, () => {
    openFile(file).close();
    alter("PRAGMA user_version = 99");
    const before = readFileSync(file);
    refused("store_newer");
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it("with a newer version in the write-ahead log only is refused and not touched", () => {
    openFile(file).close();
    // As a crash leaves it: copied while a newer Belay has it open and has not made a checkpoint.
    const newer = new DatabaseSync(file);
    newer.exec("PRAGMA user_version = 99");
    const left = join(directory, "left.db");
    copyFileSync(file, left);
    copyFileSync(`${file}-wal`, `${left}-wal`);
    newer.close();
    const before = [readFileSync(left), readFileSync(`${left}-wal`)];
    expect(() => openFile(left)).toThrow(expect.objectContaining({ code: "store_newer" }));
    expect([readFileSync(left), readFileSync(`${left}-wal`)]).toEqual(before);
  });

  it("of another program is refused and not touched, and no file is created beside it", () => {
    const foreign = new DatabaseSync(file);
    foreign.exec("CREATE TABLE precious (id INTEGER); INSERT INTO precious VALUES (1)");
    foreign.close();
    const before = readFileSync(file);
    refused("invalid");
    expect(readFileSync(file).equals(before)).toBe(true);
    expect(readdirSync(directory)).toEqual([basename(file)]);
  });

  it("of another program is refused and not touched even beside the files of a former Belay store", () => {
    openFile(file).close();
    rmSync(file);
    const foreign = new DatabaseSync(file);
    foreign.exec("CREATE TABLE precious (id INTEGER); INSERT INTO precious VALUES (1)");
    foreign.close();
    const before = readFileSync(file);
    refused("invalid");
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it.each([
    ["short", Buffer.from("hello")],
    ["long", Buffer.alloc(8192, "no database ")],
  ])("that is not a database is refused and not touched (%s)", (_, content) => {
    writeFileSync(file, content);
    refused("store_corrupt");
    expect(readFileSync(file).equals(content)).toBe(true);
    expect(readdirSync(directory)).toEqual([basename(file)]);
  });
});

describe("an invalid path", () => {
  it("is an error of the caller: a directory that does not exist, and a directory instead of a file", () => {
    expect(() => openFile(join(directory, "nowhere", "belay.db"))).toThrow(
      expect.objectContaining({ code: "invalid", message: expect.stringContaining("There is no folder") }),
    );
    expect(() => openFile(directory)).toThrow(
      expect.objectContaining({ code: "invalid", message: expect.stringContaining("is a folder") }),
    );
  });
});

describe("a damaged file", () => {
  it("is refused, wherever the damage is", { meta: { id: "G28/damaged-page-refused" } }, () => {
    openFile(file).close();
    alter("INSERT INTO session (id, created_at) VALUES ('ses_a', 1)");
    alter(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
      INSERT INTO event (session, seq, count, at, data) SELECT 1, i, 1, 1, hex(randomblob(100)) FROM n`);
    const whole = readFileSync(file);
    const pages = whole.length / 4096;
    let found = 0;
    for (let page = 1; page < pages; page += 1) {
      const damaged = Buffer.from(whole);
      damaged.fill(0xff, page * 4096, page * 4096 + 64);
      writeFileSync(file, damaged);
      refused("store_corrupt");
      found += 1;
    }
    expect(found).toBeGreaterThan(20);
  });

  it("is refused if its end is missing", { meta: { id: "G28/truncated-file-refused" } }, () => {
    openFile(file).close();
    writeFileSync(file, readFileSync(file).subarray(0, 4096 * 5));
    refused("store_corrupt");
  });
});

describe("migrating", () => {
  it("leaves a file unchanged if a step fails midway", { meta: { id: "store/failed-migration-rolled-back" } }, () => {
    openFile(file).close();
    const before = readFileSync(file);
    const database = openDatabase(file);
    const failing = "CREATE TABLE extra (id INTEGER); INSERT INTO store (id, epoch) VALUES (1, 1)";
    expect(() => migrate(database, [...MIGRATIONS, "ALTER TABLE session ADD COLUMN extra TEXT", failing])).toThrow(
      "UNIQUE",
    );
    // No transaction is left open.
    database.exec("BEGIN; ROLLBACK");
    database.close();
    expect(readFileSync(file).equals(before)).toBe(true);
    openFile(file).close();
  });

  it("throws the original error, and not that there was nothing left to roll back", {
    meta: { id: "store/migration-error-not-masked" },
  }, () => {
    const full = new Error("database or disk is full");
    const database = openDatabase(file);
    const failing = {
      prepare: (sql: string) => database.prepare(sql),
      close: () => database.close(),
      exec: (sql: string) => {
        if (sql === "ROLLBACK") throw new Error("cannot rollback - no transaction is active");
        if (sql.includes("CREATE TABLE store")) throw full;
      },
    };
    expect(() => migrate(failing, MIGRATIONS)).toThrow(full);
    database.close();
  });

  it("checks the version again, and writes nothing to a file of this version or a newer one", () => {
    openFile(file).close();
    for (const version of [MIGRATIONS.length, 99]) {
      alter(`PRAGMA user_version = ${version}`);
      const before = readFileSync(file);
      const database = openDatabase(file);
      if (version === 99) {
        expect(() => migrate(database, MIGRATIONS)).toThrow(expect.objectContaining({ code: "store_newer" }));
      } else migrate(database, MIGRATIONS);
      database.close();
      expect(readFileSync(file).equals(before)).toBe(true);
    }
  });

  it("continues from the file's version, once", () => {
    openFile(file).close();
    const database = openDatabase(file);
    const next = [...MIGRATIONS, "ALTER TABLE session ADD COLUMN extra TEXT"];
    migrate(database, next);
    migrate(database, next);
    expect(database.prepare("PRAGMA user_version").get()).toMatchObject({ user_version: MIGRATIONS.length + 1 });
    database.close();
    refused("store_newer");
  });
});

describe("a new file", () => {
  it("has the settings that durability needs", { meta: { id: "G1/durable-pragmas-set" } }, () => {
    const opened = openFile(file);
    const pragma = (name: string): unknown =>
      opened.writer.with((database) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
    expect(pragma("journal_mode")).toBe("wal");
    expect(pragma("synchronous")).toBe(2);
    expect(pragma("foreign_keys")).toBe(1);
    expect(pragma("busy_timeout")).toBe(2_000);
    opened.close();
  });
});

function refused(code: string): void {
  expect(() => openFile(file)).toThrow(expect.objectContaining({ name: "ControlError", code }));
}

function alter(sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}
