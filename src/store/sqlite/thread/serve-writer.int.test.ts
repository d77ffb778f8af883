// The writer's thread, run in this one.
import { once } from "node:events";
import fs, { mkdtempSync, rmSync, type StatsFs } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MessageChannel } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ADVICE } from "../../../core/errors.ts";
import type { Batch } from "../../../ports/store.ts";
import { accepted, batch, created, fold, SES, settled } from "../../contract/facts.ts";
import { type Database, openDatabase } from "../database.ts";
import { type OpenFile, openFile } from "../file/open-file.ts";
import { EPOCH_BLOCK, GROUP_BATCHES_MAX } from "../limits.ts";
import { type Ask, type Cell, packBatch, type Reply, unpackWritten, type WriterVerbs } from "./message.ts";
import { serveWriter } from "./serve-writer.ts";

let directory = "";
let file = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "belay-serve-writer-"));
  file = join(directory, "belay.db");
});
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
  rmSync(directory, { recursive: true, force: true });
});

describe("queued appends", () => {
  it("are written with one commit, and each message gets its own results", async () => {
    const { ask, commits } = served();
    await ask(["open", null]);
    const before = commits();
    const replies = await ask(
      ["append", packed(batch(SES, 0, [created(SES)]), batch(SES, 1, [accepted("run_1")]))],
      ["append", packed(batch("ses_b", 0, [created("ses_b")]))],
      ["append", packed(batch(SES, 1, [accepted("run_2")]), batch(SES, 2, [accepted("run_2")]))],
    );
    expect(commits() - before).toBe(1);
    expect(replies.map(writtenIn)).toEqual([["appended 1", "appended 2"], ["appended 1"], ["moved 2", "appended 3"]]);
  });

  it("are written in the order of the requests, including others in between", async () => {
    const { ask, commits } = served();
    const events = [created(SES), accepted("run_1"), settled("run_1")];
    const snapshot = fold(SES, events);
    const replies = await ask(
      ["append", packed(batch(SES, 0, events, { snapshot }))],
      ["trim", { session: SES, before: 2 }],
      ["append", packed(batch(SES, 3, [accepted("run_2")]))],
      ["append", packed(batch(SES, 4, [accepted("run_3")]))],
      ["trim", { session: SES, before: 9 }],
      ["ready", null],
    );
    expect(replies.map((reply) => reply.id)).toEqual([1, 2, 3, 4, 5, 6]);
    expect([0, 2, 3].map((index) => writtenIn(replies[index]))).toEqual([
      ["appended 3"],
      ["appended 4"],
      ["appended 5"],
    ]);
    expect(replies[1]).toMatchObject({ id: 2, answer: { kept: 2 } });
    expect(replies[4]).toMatchObject({ id: 5, answer: { kept: 4, limit: "snapshot" } });
    expect(replies[5]).toEqual({ id: 6, answer: null });
    // Two groups, two trims, and the probe.
    expect(commits()).toBe(5);
  });

  it("share a commit up to a limit, so that the first does not wait for all of them", async () => {
    const { ask, commits } = served();
    await ask(["append", packed(batch(SES, 0, [created(SES)]))]);
    const before = commits();
    const half = packed(...Array.from({ length: GROUP_BATCHES_MAX / 2 }, () => batch(SES, 1, [])));
    const replies = await ask(["append", half], ["append", half], ["append", half], ["append", half], ["append", half]);
    expect(commits() - before).toBe(3);
    expect(replies.map((reply) => writtenIn(reply).length)).toEqual(Array(5).fill(GROUP_BATCHES_MAX / 2));
  });
});

describe("a file that cannot be opened", () => {
  it("is opened again by every request, each of which gets the reason if that fails", async () => {
    let trouble: unknown = Object.assign(new Error("no such disk"), { errcode: 14 });
    const { ask } = served((path) => {
      if (trouble !== undefined) throw trouble;
      return openFile(path);
    });
    const { hint } = ADVICE.unavailable;
    const told = { code: "unavailable", message: `${file} cannot be used: no such disk.`, hint };
    expect(await ask(["open", null], ["ready", null], ["trim", { session: SES, before: 1 }])).toEqual([
      { id: 1, ...told },
      { id: 2, ...told },
      { id: 3, ...told },
    ]);
    const lost = packed(batch(SES, 0, [created(SES)]));
    expect(await ask(["append", lost], ["append", lost])).toEqual([
      { id: 4, ...told },
      { id: 5, ...told },
    ]);
    trouble = undefined;
    expect((await ask(["append", lost])).map(writtenIn)).toEqual([["appended 1"]]);
  });
});

describe("the writer", () => {
  it("D1: reports a full disk where SQLite only reports a failure, and only then", async () => {
    const real = fs.statfsSync;
    const disk = (room: Partial<StatsFs>): void => {
      Object.assign(fs, { statfsSync: (path: string) => ({ ...real(path), ...room }) });
      syncBuiltinESMExports();
    };
    ends.push(() => disk({}));
    let says = new Error("disk I/O error");
    const { ask } = served(() => {
      throw says;
    });
    disk({ bavail: 1 });
    const full = { code: "store_full", message: `There is no space left for ${file}.` };
    expect(await ask(["open", null])).toMatchObject([{ id: 1, ...full }]);
    says = Object.assign(new Error("database is locked"), { errcode: 5 });
    expect(await ask(["open", null])).toMatchObject([{ id: 2, code: "store_locked" }]);
    disk({ bavail: 1_000_000 });
    says = new Error("disk I/O error");
    const failed = { code: "unavailable", message: `${file} cannot be used: disk I/O error.` };
    expect(await ask(["open", null])).toMatchObject([{ id: 3, ...failed }]);
  });

  it("reserves blocks of epochs that increase", async () => {
    const { ask } = served();
    expect(await ask(["open", null], ["epochs", null])).toEqual([
      { id: 1, answer: 0 },
      { id: 2, answer: EPOCH_BLOCK },
    ]);
  });

  it("releases the file when it is closed, even twice, and opens it again for the next request", async () => {
    const { ask } = served();
    expect(await ask(["close", null])).toEqual([{ id: 1, answer: null }]);
    await ask(["open", null]);
    expect(() => openFile(file)).toThrow(expect.objectContaining({ code: "store_locked" }));
    expect(await ask(["close", null], ["close", null])).toEqual([
      { id: 3, answer: null },
      { id: 4, answer: null },
    ]);
    openFile(file).close();
    expect(await ask(["epochs", null])).toEqual([{ id: 5, answer: EPOCH_BLOCK }]);
  });

  it("reports an unknown request as a bug, and continues", async () => {
    const { ask } = served();
    const [unknown, next] = await ask(["dance", null], ["open", null]);
    expect(unknown).toMatchObject({ id: 1, code: "internal" });
    expect(next).toEqual({ id: 2, answer: 0 });
  });
});

/** A writer behind a channel: all requests given to `ask` are queued before the first is handled. */
function served(open?: (path: string) => OpenFile) {
  let begun = 0;
  const counting = (path: string): Database => {
    const database = openDatabase(path);
    const prepare: Database["prepare"] = (sql) => {
      const statement = database.prepare(sql);
      if (sql !== "COMMIT") return statement;
      const commit = statement.run.bind(statement);
      statement.run = () => {
        begun += 1;
        return commit();
      };
      return statement;
    };
    return { exec: (sql) => database.exec(sql), prepare, close: () => database.close() };
  };
  const opened = new Set<OpenFile>();
  const { port1, port2 } = new MessageChannel();
  serveWriter(port2, file, (path) => {
    const one = open === undefined ? openFile(path, { open: counting }) : open(path);
    opened.add(one);
    const close = (): void => {
      opened.delete(one);
      one.close();
    };
    return { ...one, close };
  });
  ends.push(() => {
    port1.close();
    for (const one of opened) one.close();
  });
  let lastId = 0;
  return {
    commits: () => begun,
    ask: async (...asks: readonly (readonly [keyof WriterVerbs | "dance", unknown])[]): Promise<readonly Reply[]> => {
      for (const [verb, ask] of asks) {
        lastId += 1;
        port1.postMessage({ id: lastId, verb, ask } satisfies Ask);
      }
      const replies: Reply[] = [];
      while (replies.length < asks.length) replies.push(...(await once(port1, "message"))[0]);
      return replies;
    },
  };
}

function packed(...batches: readonly Batch[]): readonly Cell[] {
  const cells: Cell[] = [];
  for (const one of batches) packBatch(cells, one);
  return cells;
}

function writtenIn(reply: Reply | undefined): readonly string[] {
  if (reply === undefined || !("answer" in reply)) return [];
  const cells = reply.answer as readonly Cell[];
  return Array.from({ length: cells.length / 3 }, (_, index) => {
    const written = unpackWritten(cells, index);
    if (written.kind === "taken") return `taken ${written.runs.map(({ runId }) => runId).join(" ")}`;
    if (written.kind === "failed") return written.code;
    return "head" in written ? `${written.kind} ${written.head}` : written.kind;
  });
}
