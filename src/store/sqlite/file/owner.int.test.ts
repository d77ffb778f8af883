import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../database.ts";
import { EPOCH_BLOCK } from "../limits.ts";
import { MIGRATIONS } from "../schema.ts";
import { migrate } from "./migrate.ts";
import { canonicalPath, lockPath, takeEpochs, takeLock, takeOwnership } from "./owner.ts";

let directory = "";
let file = "";
beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), "belay-owner-")));
  file = join(directory, "belay.db");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe("the canonical path of a file", () => {
  it("is that of the file itself, whatever link leads to it", () => {
    writeFileSync(file, "");
    symlinkSync(file, join(directory, "link.db"));
    expect(canonicalPath(join(directory, "link.db"))).toBe(file);
    expect(canonicalPath(relative(process.cwd(), file))).toBe(file);
  });

  it("of a file that does not exist yet follows the links of its directory", () => {
    mkdirSync(join(directory, "real"));
    symlinkSync(join(directory, "real"), join(directory, "link"));
    expect(canonicalPath(join(directory, "link", "new.db"))).toBe(join(directory, "real", "new.db"));
    expect(canonicalPath(relative(process.cwd(), join(directory, "link", "new.db")))).toBe(
      join(directory, "real", "new.db"),
    );
  });

  it("of a file in a directory that does not exist is the absolute path", () => {
    const nowhere = join(directory, "nowhere", "new.db");
    expect(canonicalPath(relative(process.cwd(), nowhere))).toBe(nowhere);
  });
});

describe("the lock of a file", () => {
  const told = (): string => {
    try {
      takeLock(file).release();
    } catch (error) {
      const cause = expect.objectContaining({ message: "database is locked" });
      expect(error).toMatchObject({ name: "ControlError", code: "store_locked", cause });
      return String((error as Error).message);
    }
    throw new Error("the lock was given away twice");
  };

  it("has one holder, which is named by process and time, and then the next once it is released", () => {
    const lock = takeLock(file);
    expect(told()).toBe(`${file} is in use.`);
    const database = openDatabase(file);
    migrate(database, MIGRATIONS);
    expect(told()).toBe(`${file} is in use.`);
    const { since } = takeOwnership(database, 4711);
    expect(told()).toBe(`${file} is in use by process 4711 since ${new Date(since).toISOString()}.`);
    database.close();
    lock.release();
    takeLock(file).release();
    expect(existsSync(lockPath(file))).toBe(true);
  });

  it("fails with the actual reason where no lock file can be created", () => {
    mkdirSync(lockPath(file));
    expect(() => takeLock(file)).toThrow("unable to open database file");
  });

  it("D9: cannot be taken where another kind of file is in its place, and the error names no owner", () => {
    writeFileSync(lockPath(file), "no lock of ours ".repeat(512));
    expect(() => takeLock(file)).toThrow("file is not a database");
  });

  it("comes with epochs that are higher than all before", () => {
    const database = openDatabase(file);
    migrate(database, MIGRATIONS);
    const owner = takeOwnership(database, 1);
    expect([takeEpochs(database, owner), takeEpochs(database, owner)]).toEqual([0, EPOCH_BLOCK]);
    database.close();
  });

  it("G26: gets a higher number with each opening, and the previous owner gets no epochs", () => {
    const database = openDatabase(file);
    migrate(database, MIGRATIONS);
    const first = takeOwnership(database, 1);
    const second = takeOwnership(database, 1);
    expect(second.since).toBeGreaterThan(first.since);
    expect(() => takeEpochs(database, first)).toThrow(expect.objectContaining({ code: "store_locked" }));
    expect(takeEpochs(database, second)).toBe(0);
    database.close();
  });

  it("is taken again when its file was removed, unless another program has it", () => {
    const lock = takeLock(file);
    rmSync(lockPath(file));
    lock.keep();
    expect(told()).toContain("in use");
    rmSync(lockPath(file));
    const other = takeLock(file);
    expect(() => lock.keep()).toThrow(expect.objectContaining({ code: "store_locked" }));
    other.release();
    lock.release();
  });
});
