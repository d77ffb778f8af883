import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Database, openDatabase, openReadOnly, orClosed } from "./database.ts";
import { BUSY_MS, CACHE_KIB } from "./limits.ts";

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "belay-database-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

it("a connection that cannot be configured is closed, and the original error is thrown", () => {
  const reason = new Error("disk I/O error");
  const fail = (): never => {
    throw reason;
  };
  let closed = 0;
  const database: Database = {
    exec: fail,
    prepare: fail,
    close: () => {
      closed += 1;
      throw new Error("cannot be closed either");
    },
  };
  expect(() => orClosed(database, fail)).toThrow(reason);
  expect(closed).toBe(1);
  expect(orClosed(database, () => "made")).toBe("made");
  expect(closed).toBe(1);
});

it("a read-only connection waits for others as long as a writing one, and cannot write", () => {
  const file = join(directory, "belay.db");
  const writing = openDatabase(file);
  writing.exec("CREATE TABLE one (id INTEGER)");
  const reading = openReadOnly(file);
  for (const database of [writing, reading]) {
    expect(database.prepare("PRAGMA busy_timeout").get()).toEqual({ timeout: BUSY_MS });
  }
  expect(reading.prepare("PRAGMA cache_size").get()).toEqual({ cache_size: -CACHE_KIB });
  expect(() => reading.exec("INSERT INTO one VALUES (1)")).toThrow("readonly");
  writing.close();
  reading.close();
});
