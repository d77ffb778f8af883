// A database that is older than what was recorded in it, detected by the mark beside it.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Batch } from "../../../ports/store.ts";
import { accepted, batch, created, fold, SES, settled } from "../../contract/facts.ts";
import { openSqliteStore } from "../sqlite-store.ts";
import { type Cell, packBatch, unpackBatches } from "../thread/message.ts";
import { LogEndMark } from "./log-end-mark.ts";
import { type OpenFile, openFile } from "./open-file.ts";

let directory = "";
let file = "";
const left: OpenFile[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "belay-mark-"));
  file = join(directory, "belay.db");
});
afterEach(() => {
  for (const one of left.splice(0)) one.close();
  rmSync(directory, { recursive: true, force: true });
});

const mark = (): string => `${file}.mark`;

function append({ writer }: OpenFile, ...batches: readonly Batch[]): void {
  const cells: Cell[] = [];
  for (const one of batches) packBatch(cells, one);
  expect(writer.append(unpackBatches(cells))).toMatchObject(batches.map(() => ({ kind: "appended" })));
}

/** A copy of the disk's contents at the time when a server is killed. */
function killed(files: (name: string) => boolean = () => true): string {
  const place = mkdtempSync(join(directory, "killed-"));
  for (const name of readdirSync(directory)) {
    if (name.startsWith("belay.db") && files(name)) copyFileSync(join(directory, name), join(place, name));
  }
  return join(place, "belay.db");
}

/** A file with some data, and more in its write-ahead log. */
function busy(): OpenFile {
  const first = openFile(file);
  append(first, batch(SES, 0, [created(SES)]));
  first.close();
  const second = openFile(file, { markEveryMs: 0 });
  left.push(second);
  append(second, batch(SES, 1, [accepted("run_1")]), batch("ses_b", 0, [created("ses_b")]));
  append(second, batch(SES, 2, [accepted("run_2")]));
  return second;
}

const REFUSAL = {
  code: "store_corrupt",
  message: expect.stringMatching(/is older than what was recorded in it: .*-wal, was taken away,/),
  hint: expect.stringMatching(/If that is lost, .* remove .*belay\.db\.mark: what was recorded later is gone then\./),
};
const OLDER = expect.objectContaining(REFUSAL);

describe("a file", () => {
  it("D6: without its write-ahead log is refused, and not touched; with it, it is opened", {
    meta: { id: "store/file-without-wal-refused" },
  }, async () => {
    busy();
    const whole = killed();
    const bare = killed((name) => !name.endsWith("-wal"));
    const before = readFileSync(bare);
    expect(() => openFile(bare)).toThrow(OLDER);
    expect(() => openFile(bare)).toThrow(OLDER);
    await expect(openSqliteStore({ file: bare })).rejects.toMatchObject(REFUSAL);
    expect(readFileSync(bare)).toEqual(before);
    openFile(whole).close();
  });

  it("D6: whose write-ahead log another program has moved into it is complete, and opened", () => {
    busy();
    const place = killed();
    const tool = new DatabaseSync(place);
    tool.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    tool.close();
    expect(existsSync(`${place}-wal`)).toBe(false);
    const opened = openFile(place);
    append(opened, batch(SES, 3, [accepted("run_3")]));
    opened.close();
  });

  it("D6: that is missing is not created again", {
    meta: { id: "store/missing-file-not-recreated" },
  }, () => {
    busy();
    const gone = killed((name) => name.endsWith(".mark"));
    expect(() => openFile(gone)).toThrow(OLDER);
    expect(existsSync(gone)).toBe(false);
    // Empty, as another tool leaves it when it opens it.
    writeFileSync(gone, "");
    expect(() => openFile(gone)).toThrow(OLDER);
  });

  it("D6: that is older on purpose is opened once the mark is removed, as the error says", () => {
    busy();
    const bare = killed((name) => !name.endsWith("-wal"));
    rmSync(`${bare}.mark`);
    const opened = openFile(bare);
    append(opened, batch(SES, 1, [accepted("run_other")]));
    opened.close();
  });

  it("that was closed cleanly has no mark, and a copy may be put in its place", () => {
    const early = join(directory, "early.db");
    const first = openFile(file);
    append(first, batch(SES, 0, [created(SES)]));
    expect(existsSync(mark())).toBe(true);
    first.close();
    expect(existsSync(mark())).toBe(false);
    copyFileSync(file, early);
    const second = openFile(file);
    append(second, batch(SES, 1, [accepted("run_1")]));
    second.close();
    copyFileSync(early, file);
    openFile(file).close();
  });

  it("whose last recorded session was deleted is not older", () => {
    const opened = openFile(file, { markEveryMs: 0 });
    left.push(opened);
    const events = [created(SES), accepted("run_1"), settled("run_1")];
    append(opened, batch(SES, 0, events, { snapshot: fold(SES, events) }));
    expect(opened.writer.remove(SES)).toBe("done");
    openFile(killed()).close();
  });

  it("that was trimmed is not older", () => {
    const opened = openFile(file, { markEveryMs: 0 });
    left.push(opened);
    const events = [created(SES), accepted("run_1"), settled("run_1")];
    append(opened, batch(SES, 0, events, { snapshot: fold(SES, events) }));
    opened.writer.trim(SES, 3);
    openFile(killed()).close();
  });

  it.each([
    ["empty", ""],
    ["torn", `9 ${SES}`],
    ["without a session", "9 \n"],
    ["of something else", `x9 ${SES}\n`],
    ["with more than one line", `9 ${SES}\n9 ${SES}\n`],
  ])("is opened if its mark is %s, and so unreadable", (_, text) => {
    openFile(file).close();
    writeFileSync(mark(), text);
    openFile(file).close();
  });

  it.each([
    ["more of a session", `10 ${SES}\n`],
    ["as much as there can be", `${Number.MAX_SAFE_INTEGER.toString().slice(0, 15)} ${SES}\n`],
    ["a session that it does not have", "1 ses_other\n"],
  ])("D6: is refused if its mark names %s", (_, text) => {
    const first = openFile(file);
    append(first, batch(SES, 0, [created(SES)]));
    first.close();
    writeFileSync(mark(), text);
    expect(() => openFile(file)).toThrow(OLDER);
  });

  it("is opened if its mark cannot be read, and closed if it cannot be removed", () => {
    openFile(file).close();
    mkdirSync(join(mark(), "within"), { recursive: true });
    const opened = openFile(file);
    append(opened, batch(SES, 0, [created(SES)]));
    opened.close();
    expect(existsSync(mark())).toBe(true);
  });
});

describe("a mark", () => {
  it("is written at once, and again when it is outdated", () => {
    const often = new LogEndMark(file, 0);
    often.note(SES, 1);
    expect(readFileSync(mark(), "utf8")).toBe(`1 ${SES}\n`);
    often.note("ses_b", 12);
    expect(readFileSync(mark(), "utf8")).toBe("12 ses_b\n");
    const seldom = new LogEndMark(file, 1_000_000);
    seldom.note(SES, 13);
    seldom.note(SES, 14);
    expect(readFileSync(mark(), "utf8")).toBe(`13 ${SES}\n`);
  });

  it("has the last append, and never one that was refused", () => {
    const opened = busy();
    expect(readFileSync(mark(), "utf8")).toBe(`3 ${SES}\n`);
    const cells: Cell[] = [];
    packBatch(cells, batch(SES, 7, [accepted("run_7")]));
    expect(opened.writer.append(unpackBatches(cells))).toMatchObject([{ kind: "moved" }]);
    expect(readFileSync(mark(), "utf8")).toBe(`3 ${SES}\n`);
  });
});
