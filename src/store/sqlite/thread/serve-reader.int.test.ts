// The reader's thread, run in this one.
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SQLInputValue } from "node:sqlite";
import { MessageChannel } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ADVICE } from "../../../core/errors.ts";
import type { Batch } from "../../../ports/store.ts";
import { accepted, batch, created, fold, SES } from "../../contract/facts.ts";
import { type Database, openReadOnly } from "../database.ts";
import { type OpenFile, openFile } from "../file/open-file.ts";
import type { ReaderVerbs } from "../log-reader.ts";
import { type Ask, type Cell, packBatch, type Reply, unpackBatches } from "./message.ts";
import { serveReader } from "./serve-reader.ts";

let directory = "";
let file = "";
let opened: OpenFile;
const ends: (() => void)[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "belay-serve-reader-"));
  file = join(directory, "belay.db");
  opened = openFile(file);
});
afterEach(() => {
  for (const end of ends.splice(0)) end();
  opened.close();
  rmSync(directory, { recursive: true, force: true });
});

describe("the reader", () => {
  it("responds from one state of the file, whatever is written between its queries", async () => {
    append(batch(SES, 0, [created(SES)]));
    let meanwhile: (() => void) | undefined = () => {
      const events = [created(SES), accepted("run_1")];
      append(batch(SES, 1, events.slice(1), { snapshot: fold(SES, events) }));
    };
    const { ask } = served((database) => ({
      ...passedOn(database),
      prepare: (sql) => {
        const statement = database.prepare(sql);
        const get = statement.get.bind(statement);
        // After the first query of a load, which finds the head.
        statement.get = (...given: readonly unknown[]) => {
          const found = get(...(given as SQLInputValue[]));
          meanwhile?.();
          meanwhile = undefined;
          return found;
        };
        return statement;
      },
    }));
    expect(await ask("load", SES)).toMatchObject({ answer: { head: 1, snapshot: null, after: 0, rows: [{ seq: 1 }] } });
    expect(await ask("load", SES)).toMatchObject({ answer: { head: 2, after: 2, rows: [] } });
  });

  it("opens the file once, and again after an error, which it reports", async () => {
    append(batch(SES, 0, [created(SES)]));
    let failing = false;
    let closed = 0;
    const { ask, connections } = served((database) => ({
      ...passedOn(database),
      exec: (sql) => {
        if (failing) throw Object.assign(new Error("disk I/O error"), { errcode: 10 });
        database.exec(sql);
      },
      close: () => {
        closed += 1;
        database.close();
        // As a connection on a failing disk may.
        throw new Error("disk I/O error");
      },
    }));
    expect(await ask("head", SES)).toEqual({ id: 1, answer: 1 });
    expect(await ask("head", "ses_none")).toEqual({ id: 2, answer: 0 });
    expect(connections()).toBe(1);
    failing = true;
    const { hint } = ADVICE.unavailable;
    const told = { code: "unavailable", message: `${file} cannot be used: disk I/O error.`, hint };
    expect(await ask("head", SES)).toEqual({ id: 3, ...told });
    expect(await ask("head", SES)).toEqual({ id: 4, ...told });
    expect([connections(), closed]).toEqual([2, 2]);
    failing = false;
    expect(await ask("head", SES)).toEqual({ id: 5, answer: 1 });
    expect(connections()).toBe(3);
  });

  it("reports an unknown request as a bug, and continues", async () => {
    const { ask } = served();
    expect(await ask("dance", null)).toMatchObject({ id: 1, code: "internal" });
    expect(await ask("head", SES)).toEqual({ id: 2, answer: 0 });
  });
});

const passedOn = (database: Database): Database => ({
  exec: (sql) => database.exec(sql),
  prepare: (sql) => database.prepare(sql),
  close: () => database.close(),
});

function append(one: Batch): void {
  const cells: Cell[] = [];
  packBatch(cells, one);
  expect(opened.writer.append(unpackBatches(cells))).toMatchObject([{ kind: "appended" }]);
}

/** A reader behind a channel. */
function served(wrapped: (database: Database) => Database = (database) => database) {
  const connections: Database[] = [];
  const { port1, port2 } = new MessageChannel();
  serveReader(port2, file, (path) => {
    const database = openReadOnly(path);
    connections.push(database);
    return wrapped(database);
  });
  ends.push(() => port1.close());
  let lastId = 0;
  return {
    connections: () => connections.length,
    ask: async (verb: keyof ReaderVerbs | "dance", ask: unknown): Promise<Reply> => {
      lastId += 1;
      port1.postMessage({ id: lastId, verb, ask } satisfies Ask);
      const [[reply]] = await once(port1, "message");
      return reply;
    },
  };
}
