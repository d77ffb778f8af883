import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Event } from "../../core/model/event.ts";
import type { Batch } from "../../ports/store.ts";
import {
  accepted,
  batch,
  completed,
  created,
  fold,
  processRequested,
  processSettled,
  SES,
  settled,
  started,
} from "../contract/facts.ts";
import { type Database, openDatabase } from "./database.ts";
import { migrate } from "./file/migrate.ts";
import { openFile } from "./file/open-file.ts";
import { LogWriter } from "./log-writer.ts";
import { MIGRATIONS } from "./schema.ts";
import { type Cell, packBatch, unpackBatches, type Written } from "./thread/message.ts";

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "belay-writer-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const append = (writer: LogWriter, ...batches: readonly Batch[]): readonly Written[] => {
  const cells: Cell[] = [];
  for (const one of batches) packBatch(cells, one);
  return writer.append(unpackBatches(cells));
};
const appended = (head: number): Written => ({ kind: "appended", head });
const logged = (writer: LogWriter): number =>
  writer.with((database) => Number(database.prepare("SELECT SUM(count) AS n FROM event").get()?.n));

describe("a group of appends", () => {
  it("is one transaction, and a bad one among them fails alone", () => {
    const { writer, close } = openFile(join(directory, "belay.db"));
    append(writer, batch(SES, 0, [created(SES), accepted("run_1"), settled("run_1")]));
    const answers = append(
      writer,
      batch(SES, 3, [accepted("run_2")]),
      batch(SES, 4, [settled("run_1")]),
      batch(SES, 4, [accepted("run_3")]),
      batch(SES, 4, [accepted("run_4")]),
      batch("ses_b", 0, [created("ses_b")]),
    );
    expect(answers).toMatchObject([
      appended(4),
      { kind: "failed", code: "internal" },
      appended(5),
      { kind: "moved", head: 5 },
      appended(1),
    ]);
    close();
  });
});

describe("an append that fails", () => {
  const good = batch("ses_b", 0, [created("ses_b")]);

  it("G14: fails alone, in one attempt if it came alone, and keeps the connection and the reserve", () => {
    const { writer, counts } = counted();
    append(writer, batch(SES, 0, [created(SES), accepted("run_1"), settled("run_1")]));
    for (const event of [settled("run_1"), settled("run_none")]) {
      const before = counts.begun;
      expect(append(writer, batch(SES, 3, [event]))).toMatchObject([{ kind: "failed", code: "internal" }]);
      expect(counts.begun - before).toBe(1);
    }
    expect(append(writer, batch(SES, 3, [settled("run_none")]), good)).toMatchObject([
      { kind: "failed", code: "internal" },
      appended(1),
    ]);
    expect(counts).toMatchObject({ connections: 1, spent: 0 });
    writer.close();
  });

  it("G28: because the file is damaged is not retried", () => {
    const { writer, counts } = counted((statement) => {
      statement.run = () => {
        throw Object.assign(new Error("malformed"), { errcode: 11 });
      };
    });
    const told = { kind: "failed", code: "store_corrupt" };
    expect(append(writer, batch(SES, 0, [created(SES)]), good)).toMatchObject([told, told]);
    expect(counts).toMatchObject({ begun: 1, connections: 1 });
    writer.close();
  });

  it("G28: because the disk fails returns the disk's error", () => {
    const { writer, file } = counted((statement) => {
      statement.run = () => {
        throw Object.assign(new Error("disk I/O error"), { errcode: 10 });
      };
    });
    const told = { kind: "failed", code: "unavailable", message: `${file} cannot be used: disk I/O error.` };
    expect(append(writer, good)).toEqual([told]);
    writer.close();
  });

  it("G28: because the disk is full spends the reserve to end what has started, and never for something new", () => {
    let full = false;
    const { writer, counts } = counted((statement) => {
      const run = statement.run.bind(statement);
      statement.run = (...given: readonly unknown[]) => {
        if (full && counts.spent === 0) throw Object.assign(new Error("full"), { errcode: 13 });
        return run(...(given as SQLInputValue[]));
      };
    });
    append(writer, batch(SES, 0, [created(SES), accepted("run_1"), ...started("run_1")]));
    full = true;
    expect(append(writer, good)).toMatchObject([{ kind: "failed", code: "store_full" }]);
    expect(append(writer, batch(SES, 4, [accepted("run_2")]))).toMatchObject([{ kind: "failed", code: "store_full" }]);
    expect(counts.spent).toBe(0);
    expect(append(writer, batch(SES, 4, [said("a little more")]))).toEqual([appended(5)]);
    expect(counts.spent).toBe(1);
    writer.close();
  });

  /** A writer that counts its actions, and whose inserts of events can be changed. */
  function counted(change: (insert: StatementSync) => void = () => undefined) {
    const file = join(directory, "belay.db");
    const counts = { begun: 0, connections: 0, spent: 0 };
    const open = prepared(prepared(openDatabase, "INSERT INTO event", change), "BEGIN IMMEDIATE", (statement) => {
      const run = statement.run.bind(statement);
      statement.run = () => {
        counts.begun += 1;
        return run();
      };
    });
    const spend = (): boolean => {
      counts.spent += 1;
      return true;
    };
    const connect = (): Database => {
      counts.connections += 1;
      const database = open(file);
      migrate(database, MIGRATIONS);
      return database;
    };
    const reserve = { hasRoom: () => true, isTight: () => false, spend };
    return { writer: new LogWriter({ file, reserve, connect }), counts, file };
  }
});

describe("another program's lock", () => {
  it("is waited for once per group, not once per append", {
    meta: { id: "G28/lock-waited-once-per-group" },
  }, () => {
    let begun = 0;
    const open = (path: string): Database => {
      const database = openDatabase(path);
      const prepare: Database["prepare"] = (sql) => {
        const statement = database.prepare(sql);
        if (sql !== "BEGIN IMMEDIATE") return statement;
        statement.run = () => {
          begun += 1;
          throw Object.assign(new Error("database is locked"), { code: "ERR_SQLITE_ERROR", errcode: 5 });
        };
        return statement;
      };
      return { exec: (sql) => database.exec(sql), prepare, close: () => database.close() };
    };
    const { writer, close } = openFile(join(directory, "belay.db"), { open });
    const answers = append(writer, batch(SES, 0, [created(SES)]), batch("ses_b", 0, [created("ses_b")]));
    expect(answers).toMatchObject([{ code: "store_locked" }, { code: "store_locked" }]);
    expect(begun).toBe(1);
    close();
  });
});

describe("a full disk", () => {
  it("G28: fails what does not fit as full, writes nothing of it, and recovers when there is space again", {
    meta: { id: "G28/writer-recovers-from-full-disk" },
  }, () => {
    let database: Database | undefined;
    const open = (path: string): Database => {
      database = openDatabase(path);
      return database;
    };
    const { writer, close } = openFile(join(directory, "belay.db"), { open });
    append(writer, batch(SES, 0, [created(SES)]));
    database?.exec("PRAGMA max_page_count = 20");
    const large = batch(SES, 1, [accepted("run_1", { text: "x".repeat(200_000) })]);
    const small = batch("ses_b", 0, [created("ses_b")]);
    expect(append(writer, large, small)).toMatchObject([{ kind: "failed", code: "store_full" }, appended(1)]);
    expect(append(writer, large)).toMatchObject([{ kind: "failed", code: "store_full" }]);
    expect(logged(writer)).toBe(2);
    database?.exec("PRAGMA max_page_count = 1000000");
    expect(append(writer, large)).toEqual([appended(2)]);
    close();
  });

  const mounted = canMount();
  const otherwise = mounted ? "" : " (skipped: may not mount)";

  it.skipIf(!mounted)(`G28: leaves space for the outcomes of live runs, refuses new ones${otherwise}`, () => {
    onSmallDisk((writer, fill) => {
      append(writer, batch(SES, 0, [created(SES), accepted("run_1"), ...started("run_1")]));
      const makeRoom = fill();
      const next = batch(SES, 4, [accepted("run_2", { text: "x".repeat(20_000) })]);
      expect(append(writer, next)).toMatchObject([{ kind: "failed", code: "store_full" }]);
      expect(existsSync(join(directory, "belay.db.reserve"))).toBe(true);
      // Enough runs that their outcomes do not all fit into the remaining space.
      const pieces = Array.from({ length: 20 }, (_, index) => batch(SES, 4 + index, [said("y".repeat(4_000))]));
      expect(append(writer, ...pieces).map((one) => one.kind)).toEqual(pieces.map(() => "appended"));
      expect(append(writer, batch(SES, 24, [settled("run_1")]))).toEqual([appended(25)]);
      expect(append(writer, { ...next, expected: 25 })).toMatchObject([{ kind: "failed", code: "store_full" }]);
      makeRoom();
      expect(append(writer, { ...next, expected: 25 })).toEqual([appended(26)]);
    });
  });

  it.skipIf(!mounted)(`G28: leaves space for ends from which a run follows, refuses new processes${otherwise}`, () => {
    onSmallDisk((writer, fill) => {
      const begun = [accepted("run_1"), ...started("run_1"), processRequested(SES, 1), processRequested(SES, 2)];
      append(writer, batch(SES, 0, [created(SES), ...begun]));
      const makeRoom = fill();
      // More than the remaining space, so that the reserve is spent.
      expect(append(writer, batch(SES, 6, [said("y".repeat(100_000))]))).toEqual([appended(7)]);
      expect(existsSync(join(directory, "belay.db.reserve"))).toBe(false);
      const next = batch(SES, 7, [processRequested(SES, 3)]);
      expect(append(writer, next)).toMatchObject([{ kind: "failed", code: "store_full" }]);
      expect(append(writer, batch(SES, 7, [processSettled(SES, 1, completed)]))).toEqual([appended(8)]);
      expect(append(writer, batch(SES, 8, [settled("run_1"), accepted("run_2")]))).toEqual([appended(10)]);
      const woken = [processSettled(SES, 2, completed), accepted("run_3")];
      expect(append(writer, batch(SES, 10, woken))).toEqual([appended(12)]);
      makeRoom();
      expect(append(writer, { ...next, expected: 12 })).toEqual([appended(13)]);
    });
  });
});

describe("a commit that fails in the middle", () => {
  const first = batch(SES, 0, [created(SES)]);
  const second = batch(SES, 1, [accepted("run_1")]);

  it("G28: is reported as appended if it is found in the file", {
    meta: { id: "G28/failed-commit-found-in-file" },
  }, () => {
    const disk = failingDisk("after");
    const { writer, close } = openFile(join(directory, "belay.db"), { open: disk.open });
    append(writer, first);
    disk.failNext(1);
    expect(append(writer, second, batch("ses_b", 0, [created("ses_b")]))).toEqual([appended(2), appended(1)]);
    expect(logged(writer)).toBe(3);
    expect(append(writer, batch(SES, 2, [accepted("run_2")]))).toEqual([appended(3)]);
    close();
  });

  it("G28: is repeated if it is not, and is in the log once", {
    meta: { id: "G28/failed-commit-retried-once" },
  }, () => {
    const disk = failingDisk("before");
    const { writer, close } = openFile(join(directory, "belay.db"), { open: disk.open });
    append(writer, first);
    disk.failNext(1);
    expect(append(writer, second)).toEqual([appended(2)]);
    expect(logged(writer)).toBe(2);
    close();
  });

  it("G28: is reported as unavailable while the disk keeps failing, and the next append recovers", () => {
    const disk = failingDisk("before");
    const { writer, close } = openFile(join(directory, "belay.db"), { open: disk.open });
    append(writer, first);
    disk.failNext(2);
    expect(append(writer, second)).toMatchObject([{ kind: "failed", code: "unavailable" }]);
    expect(append(writer, second)).toEqual([appended(2)]);
    close();
  });

  it("G28: is reported as unavailable if the file cannot be read, and never written twice", {
    meta: { id: "G28/unverifiable-commit-unavailable" },
  }, () => {
    const disk = failingDisk("after");
    const { writer, close } = openFile(join(directory, "belay.db"), { open: disk.open });
    append(writer, first);
    disk.failNext(1);
    disk.vanishOnce();
    expect(append(writer, second)).toMatchObject([{ kind: "failed", code: "unavailable" }]);
    expect(append(writer, second)).toEqual([{ kind: "moved", head: 2 }]);
    expect(logged(writer)).toBe(2);
    close();
  });
});

describe("a commit that has failed, and may have taken effect", () => {
  const first = batch(SES, 0, [created(SES)]);
  const second = batch(SES, 1, [accepted("run_1")]);
  const question = batch(SES, 2, []);
  const unknown = (): Written => ({
    kind: "failed",
    code: "unavailable",
    message: `It is not known whether the last appends to ${join(directory, "belay.db")} are durable.`,
  });

  it("G28: is looked up by the last append that has events", () => {
    const disk = failingDisk("after");
    const { writer, close } = openFile(join(directory, "belay.db"), { open: disk.open });
    append(writer, first);
    disk.failNext(1);
    const answers = append(writer, second, question, batch(SES, 9, [accepted("run_9")]));
    expect(answers).toEqual([appended(2), appended(2), { kind: "moved", head: 2 }]);
    expect(logged(writer)).toBe(2);
    close();
  });

  it("G28: is repeated if it has no events to look up", () => {
    const disk = failingDisk("before");
    const { writer, close } = openFile(join(directory, "belay.db"), { open: disk.open });
    append(writer, first, second);
    disk.failNext(1);
    const snapshot = fold(SES, [...first.events, ...second.events]);
    expect(append(writer, { ...question, snapshot })).toEqual([appended(2)]);
    expect(writer.with((database) => database.prepare("SELECT seq FROM snapshot").get()?.seq)).toBe(2);
    disk.failNext(1);
    expect(append(writer, second)).toEqual([{ kind: "moved", head: 2 }]);
    close();
  });

  it("G28: is reported as unavailable, for each append of the group, while the checkpoint fails", () => {
    const disk = failingDisk("after");
    let busy = 1;
    const open = prepared(disk.open, "wal_checkpoint", (statement) => {
      statement.get = () => ({ busy });
    });
    const { writer, close } = openFile(join(directory, "belay.db"), { open });
    append(writer, first);
    disk.failNext(1);
    const other = batch("ses_b", 0, [created("ses_b")]);
    expect(append(writer, second, other)).toEqual([unknown(), unknown()]);
    const bad = batch(SES, 2, [settled("run_none")]);
    const third = batch("ses_c", 0, [created("ses_c")]);
    disk.failNext(1);
    expect(append(writer, bad, third)).toEqual([expect.objectContaining({ code: "internal" }), unknown()]);
    busy = 0;
    expect(append(writer, second, other, third)).toEqual([
      { kind: "moved", head: 2 },
      { kind: "moved", head: 1 },
      { kind: "moved", head: 1 },
    ]);
    expect(logged(writer)).toBe(4);
    close();
  });
});

describe("a probe", () => {
  it("resolves while something new can be written, and writes no events", () => {
    const { writer, close } = openFile(join(directory, "belay.db"));
    append(writer, batch(SES, 0, [created(SES)]));
    writer.probe();
    writer.probe();
    expect(logged(writer)).toBe(1);
    close();
  });

  it("G28: fails on a disk without space for something new", () => {
    const file = join(directory, "belay.db");
    let room = true;
    let tight = false;
    const writer = new LogWriter({
      file,
      reserve: { hasRoom: () => room, isTight: () => tight, spend: () => false },
      connect: () => {
        const database = openDatabase(file);
        migrate(database, MIGRATIONS);
        return database;
      },
    });
    const full = { code: "store_full", message: `There is no space left for ${file}.` };
    room = false;
    expect(() => writer.probe()).toThrow(expect.objectContaining(full));
    room = true;
    tight = true;
    expect(() => writer.probe()).toThrow(expect.objectContaining(full));
    writer.close();
  });

  it("G28: fails while the disk fails or is locked, and recovers afterwards", () => {
    let errcode: number | undefined;
    const counted = counting();
    const open = prepared(counted.open, "UPDATE store SET epoch = epoch + 1", (statement) => {
      const run = statement.run.bind(statement);
      statement.run = () => {
        if (errcode !== undefined) throw Object.assign(new Error("as told"), { errcode });
        return run();
      };
    });
    const { writer, close } = openFile(join(directory, "belay.db"), { open });
    errcode = 5;
    expect(() => writer.probe()).toThrow(expect.objectContaining({ code: "store_locked" }));
    errcode = undefined;
    writer.probe();
    expect(counted.connections).toBe(1);
    errcode = 10;
    expect(() => writer.probe()).toThrow(expect.objectContaining({ code: "unavailable" }));
    errcode = undefined;
    writer.probe();
    // A connection that has failed in the middle is not used again; one that found a lock is.
    expect(counted.connections).toBe(2);
    expect(append(writer, batch(SES, 0, [created(SES)]))).toEqual([appended(1)]);
    close();
  });
});

describe("a trim that fails", () => {
  it("removes nothing, throws the reason, and leaves the writer usable", () => {
    let failing = true;
    const counted = counting();
    const open = prepared(counted.open, "DELETE FROM event", (statement) => {
      const run = statement.run.bind(statement);
      statement.run = (...given: readonly unknown[]) => {
        if (failing) throw Object.assign(new Error("database is corrupt"), { errcode: 11 });
        return run(...(given as SQLInputValue[]));
      };
    });
    const { writer, close } = openFile(join(directory, "belay.db"), { open });
    const events = [created(SES), accepted("run_1"), settled("run_1")];
    append(writer, batch(SES, 0, events, { snapshot: fold(SES, events) }));
    expect(() => writer.trim(SES, 4)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
    expect(append(writer, batch(SES, 3, [accepted("run_2")]))).toEqual([appended(4)]);
    expect(counted.connections).toBe(1);
    const kept = (): unknown => writer.with((one) => one.prepare("SELECT kept_from FROM session").get()?.kept_from);
    expect(kept()).toBe(1);
    failing = false;
    expect(writer.trim(SES, 2)).toMatchObject({ kept: 2, removed: 1 });
    expect(kept()).toBe(2);
    // The first append contains the first kept event, and stays.
    expect(logged(writer)).toBe(4);
    expect(writer.trim(SES, 4)).toMatchObject({ kept: 4, removed: 2 });
    expect(logged(writer)).toBe(1);
    close();
  });
});

/** Connections, and their number. */
function counting() {
  const counted = {
    connections: 0,
    open: (path: string): Database => {
      counted.connections += 1;
      return openDatabase(path);
    },
  };
  return counted;
}

/** Connections whose statements that contain `part` are changed. */
function prepared(open: (path: string) => Database, part: string, change: (statement: StatementSync) => void) {
  return (path: string): Database => {
    const database = open(path);
    const prepare: Database["prepare"] = (sql) => {
      const statement = database.prepare(sql);
      if (sql.includes(part)) change(statement);
      return statement;
    };
    return { exec: (sql) => database.exec(sql), prepare, close: () => database.close() };
  };
}

const said = (text: string): Event => ({ type: "turn.extended", runId: "run_1", turnId: "turn_1.1", text });

/** A store on its own disk, which `fill` fills; its result frees space again. Removed afterwards. */
function onSmallDisk(act: (writer: LogWriter, fill: () => () => void) => void): void {
  const filler = join(directory, "filler");
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", directory]);
  try {
    const { writer, close } = openFile(join(directory, "belay.db"));
    try {
      act(writer, () => {
        expect(() => writeFileSync(filler, Buffer.alloc(8_000_000, 1))).toThrow("ENOSPC");
        return () => rmSync(filler);
      });
    } finally {
      close();
    }
  } finally {
    execFileSync("umount", [directory]);
  }
}

/** A disk whose commits fail when told to: before anything was written, or after everything was. */
function failingDisk(when: "before" | "after") {
  let failures = 0;
  let gone = false;
  const fail = (): never => {
    throw Object.assign(new Error("disk I/O error"), { code: "ERR_SQLITE_ERROR", errcode: 10 });
  };
  const open = (path: string): Database => {
    if (gone) {
      gone = false;
      fail();
    }
    const database = openDatabase(path);
    const prepare: Database["prepare"] = (sql) => {
      const statement = database.prepare(sql);
      if (sql !== "COMMIT") return statement;
      const commit = statement.run.bind(statement);
      statement.run = () => {
        if (failures === 0) return commit();
        failures -= 1;
        if (when === "after") commit();
        return fail();
      };
      return statement;
    };
    return { exec: (sql) => database.exec(sql), prepare, close: () => database.close() };
  };
  return {
    open,
    failNext: (count: number) => {
      failures = count;
    },
    /** The next attempt to open the file fails. */
    vanishOnce: () => {
      gone = true;
    },
  };
}

function canMount(): boolean {
  const probe = mkdtempSync(join(tmpdir(), "belay-mount-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", probe], { stdio: "ignore" });
    execFileSync("umount", [probe], { stdio: "ignore" });
    return true;
  } catch {
    // Not permitted here, or no such file system: the caller skips, and says so.
    return false;
  } finally {
    rmSync(probe, { recursive: true, force: true });
  }
}

describe("a session that is deleted", () => {
  it("is removed in steps, and its pages are returned to the file system", () => {
    const file = join(directory, "belay.db");
    const { writer, close } = openFile(file);
    const text = "x".repeat(2_000);
    let head = 0;
    for (let index = 0; index < 600; index += 1) {
      const run = `run_${index}` as const;
      const events = [...(index === 0 ? [created(SES)] : []), accepted(run, { text }), settled(run)];
      append(writer, batch(SES, head, events));
      head += events.length;
    }
    expect(writer.remove(SES)).toBe("busy");
    append(writer, batch(SES, head, [], { snapshot: { ...fold(SES, [created(SES)]), head } }));
    const steps = [];
    do steps.push(writer.remove(SES));
    while (steps.at(-1) === "more");
    // Two full steps of events, one of rows and the rest.
    expect(steps.length).toBeGreaterThan(3);
    expect(steps.at(-1)).toBe("done");
    const size = (): number => statSync(file).size;
    const before = size();
    while (writer.reclaim() > 0);
    expect(size()).toBeLessThan(before / 4);
    expect(append(writer, batch(SES, 0, [created(SES)]))).toEqual([appended(1)]);
    close();
  });
});
