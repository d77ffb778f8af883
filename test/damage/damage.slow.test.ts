// Files as they must not be: flipped, cut short, empty, without their log, one for the other. And a backup that works.
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SeededChooser } from "../../sim/chooser.ts";
import { ControlError } from "../../src/core/errors.ts";
import { openDatabase, openReadOnly } from "../../src/store/sqlite/database.ts";
import { openFile } from "../../src/store/sqlite/file/open-file.ts";
import { readOwner, takeEpochs } from "../../src/store/sqlite/file/owner.ts";
import { check } from "../power/check.ts";
import { Told } from "../power/told.ts";
import { Workload } from "../power/workload.ts";
import { examine } from "./examine.ts";
import { damageRounds } from "./rounds.ts";
import { appendNext, makeSpecimen } from "./specimen.ts";

let folder = "";
let file = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belay-damage-"));
  file = join(folder, "belay.db");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("D5: a damaged file", { timeout: 120_000 }, () => {
  test("is read as it was written, or refused with a code: never shorter, never different", {
    meta: { id: "G28/damage-never-silent" },
  }, () => {
    const ends = [...damageRounds(1, 120)];
    expect(ends.filter(({ verdict }) => verdict.kind === "silent" || verdict.kind === "broken")).toEqual([]);
    const codes = new Set(ends.flatMap(({ verdict }) => verdict.code ?? []));
    // A changed header may call the file another program's, or a newer Belay's: that is a refusal too.
    for (const code of codes) expect(["store_corrupt", "store_newer", "invalid", "unavailable"]).toContain(code);
    expect(ends.filter(({ verdict }) => verdict.code === "store_corrupt").length).toBeGreaterThan(40);
  });

  test("is noticed where only a letter of a text has changed, and the refusal says what to do", {
    meta: { id: "G28/single-letter-damage-noticed" },
  }, () => {
    const { bytes, told } = makeSpecimen(5, 40);
    // Other facts, as valid as those that were written, of the same length.
    const text = bytes.toString("latin1").replaceAll('"delivery":"queue"', '"delivery":"steer"');
    writeFileSync(file, Buffer.from(text, "latin1"));
    expect(examine(file, told)).toMatchObject({ kind: "refused", code: "store_corrupt" });
    expect(new ControlError("store_corrupt", "").hint).toMatch(/backup.*salvage/);
  });

  test.each([
    ["event", "UPDATE event SET data = replace(data, 'ses_', 'sez_') WHERE rowid = 1"],
    ["event", "DELETE FROM event WHERE rowid = (SELECT rowid FROM event WHERE seq > 1 ORDER BY rowid LIMIT 1)"],
    ["snapshot", "UPDATE snapshot SET data = replace(data, 'ses_', 'sez_')"],
    ["session", "UPDATE session SET title = 'another'"],
    ["run", "UPDATE run SET content = 'another' WHERE phase <> 'settled'"],
    ["call", "UPDATE call SET outcome = replace(outcome, 'completed', 'cancelled')"],
  ])("is noticed in a row of %s that SQLite finds nothing wrong with: %s", (_, sql) => {
    const { bytes, told } = makeSpecimen(1, 150);
    writeFileSync(file, bytes);
    const database = new DatabaseSync(file);
    const { changes } = database.prepare(sql).run();
    database.close();
    expect(changes).toBeGreaterThan(0);
    expect(examine(file, told)).toMatchObject({ kind: "refused", code: "store_corrupt" });
  });
});

test("these tests notice silent damage: without checksums, changed data is read as if it had been written so", () => {
  const { bytes, told } = makeSpecimen(5, 40);
  writeFileSync(file, bytes);
  const database = new DatabaseSync(file);
  const sql = `UPDATE event SET sum = NULL, data = replace(data, '"delivery":"queue"', '"delivery":"steer"')`;
  expect(database.prepare(sql).run().changes).toBeGreaterThan(0);
  database.close();
  expect(examine(file, told)).toMatchObject({ kind: "silent" });
});

describe("a file that was being made when the machine stopped", () => {
  test("is made again, although its first page is not there yet", () => {
    const making = join(folder, "making.db");
    const database = openDatabase(making);
    // Pages that do not fit into the cache are written before the end of the transaction, and the journal before them.
    database.exec("PRAGMA cache_size = 2; BEGIN; CREATE TABLE large (text)");
    const insert = database.prepare("INSERT INTO large VALUES (?)");
    for (let row = 0; row < 200; row += 1) insert.run("x".repeat(2_000));
    copyFileSync(making, file);
    copyFileSync(`${making}-journal`, `${file}-journal`);
    database.exec("ROLLBACK");
    database.close();
    const bytes = readFileSync(file);
    expect(bytes.length).toBeGreaterThan(4_096);
    writeFileSync(file, bytes.fill(0, 0, 4_096));
    openFile(file).close();
  });
});

test("an epoch whose commit failed is not handed out", () => {
  openFile(file).close();
  const owner = readOwner(file) ?? { pid: 0, since: 0 };
  const database = openDatabase(file);
  database.exec("CREATE TABLE parent (id INTEGER PRIMARY KEY)");
  // Fails at the commit, and not before.
  database.exec("CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)");
  database.exec("CREATE TRIGGER late AFTER UPDATE ON store BEGIN INSERT INTO child VALUES (1); END");
  expect(() => takeEpochs(database, owner)).toThrow("FOREIGN KEY");
  expect(database.prepare("SELECT epoch FROM store").get()).toEqual({ epoch: 0 });
  database.close();
});

describe("D14: a backup made while the store is written to", () => {
  test("with VACUUM INTO is a separate store, as the original was at one moment", {
    meta: { id: "store/vacuum-backup-one-moment" },
  }, () => {
    const told = new Told();
    const workload = new Workload(new SeededChooser(3));
    const opened = openFile(file);
    for (let left = 60; left > 0; left -= 1) appendNext(opened, workload, told);
    const copy = join(folder, "copy.db");
    const backup = new DatabaseSync(file, { readOnly: true });
    backup.exec(`VACUUM INTO '${copy}'`);
    backup.close();
    const after = new Told();
    for (const { sent } of told.sessions.values()) for (const one of sent) after.confirm(one);
    for (let left = 20; left > 0; left -= 1) appendNext(opened, workload, told);
    opened.close();
    expect(examine(copy, after)).toMatchObject({ kind: "whole" });
    expect(examine(file, told)).toMatchObject({ kind: "whole" });
  });
});

describe("D6: a copy of the file alone", () => {
  test("is what it was when the log was last moved into it: whole, and older (this cannot be noticed)", {
    meta: { id: "store/copy-without-wal-older" },
  }, () => {
    const told = new Told();
    const workload = new Workload(new SeededChooser(4));
    const first = openFile(file);
    for (let left = 40; left > 0; left -= 1) appendNext(first, workload, told);
    first.close();
    const second = openFile(file);
    const later = new Told();
    for (const { sent } of told.sessions.values()) for (const one of sent) later.confirm(one);
    for (let left = 5; left > 0; ) if (appendNext(second, workload, later)) left -= 1;
    const copy = join(folder, "copy.db");
    copyFileSync(file, copy);
    second.close();
    expect(examine(copy, told)).toMatchObject({ kind: "whole" });
    const database = openReadOnly(file);
    expect(check(database, later)).toEqual([]);
    database.close();
  });
});
