// Damage that SQLite does not detect: a changed value, a missing append.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  accepted,
  batch,
  callSettled,
  completed,
  created,
  fold,
  processRequested,
  processSettled,
  SES,
  settled,
} from "../contract/facts.ts";
import { type Database, openDatabase } from "./database.ts";
import { openFile } from "./file/open-file.ts";
import { queries } from "./log-reader.ts";
import { type Cell, packBatch, unpackBatches } from "./thread/message.ts";

let directory = "";
let database: Database;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "belay-sums-"));
  const file = join(directory, "belay.db");
  const { writer, close } = openFile(file);
  const events = [created(SES, "A title", "/srv"), accepted("run_1", { key: "k" }), processRequested(SES, 1)];
  const ends = [
    settled("run_1"),
    callSettled("run_1", 1, { kind: "lost" }),
    processSettled(SES, 1, completed),
    accepted("run_2"),
  ];
  const cells: Cell[] = [];
  packBatch(cells, batch(SES, 0, events, { snapshot: fold(SES, events) }));
  packBatch(cells, batch(SES, 3, ends));
  packBatch(cells, batch(SES, 7, [accepted("run_3")]));
  expect(writer.append(unpackBatches(cells)).map(({ kind }) => kind)).toEqual(["appended", "appended", "appended"]);
  close();
  database = openDatabase(file);
  database.exec("DROP TRIGGER one_outcome_per_run; DROP TRIGGER one_outcome_per_process");
});
afterEach(() => {
  database.close();
  rmSync(directory, { recursive: true, force: true });
});

type Queries = ReturnType<typeof queries>;
const whole = { after: 0, limit: 100 };
const asked = {
  session: ({ session }) => session(SES),
  sessions: ({ sessions }) => sessions({ after: undefined, limit: 9 }),
  run: ({ run }) => run("run_1"),
  key: ({ key }) => key({ session: SES, key: "k" }),
  runs: ({ runs }) => runs({ session: SES, before: 99, limit: 9 }),
  call: ({ call }) => call("call_1.1"),
  process: ({ process }) => process("proc_a.1"),
  processes: ({ processes }) => processes({ session: SES, before: 99, limit: 9 }),
  load: ({ load }) => load(SES),
  read: ({ read }) => read({ session: SES, ...whole }),
} satisfies Partial<Record<keyof Queries, (queries: Queries) => unknown>>;

const changed: readonly (readonly [keyof typeof asked, string, string])[] = [
  ["session", "UPDATE session SET title = 'Another'", "ses_a is not what was written"],
  ["session", "UPDATE session SET cwd = '/tmp'", "ses_a is not what was written"],
  ["sessions", "UPDATE session SET created_at = 7", "ses_a is not what was written"],
  ["run", "UPDATE run SET content = 'another' WHERE id = 'run_1'", "run_1 is not what was written"],
  ["runs", "UPDATE run SET accepted_at = 1 WHERE id = 'run_2'", "run_2 is not what was written"],
  ["runs", "UPDATE run SET key = 'other' WHERE id = 'run_1'", "run_1 is not what was written"],
  ["key", "UPDATE run SET outcome = '{}' WHERE id = 'run_1'", "the outcome of run_1 is not what was written"],
  ["run", "UPDATE run SET settled_at = 9 WHERE id = 'run_1'", "the outcome of run_1 is not what was written"],
  ["call", "UPDATE call SET outcome = '{}'", "the outcome of call_1.1 is not what was written"],
  ["call", "UPDATE call SET settled_at = 9", "the outcome of call_1.1 is not what was written"],
  ["process", "UPDATE process SET outcome = '{}'", "the outcome of proc_a.1 is not what was written"],
  ["processes", "UPDATE process SET settled_at = 9", "the outcome of proc_a.1 is not what was written"],
  ["load", "UPDATE snapshot SET data = replace(data, 'ses_', 'sez_')", "the snapshot of ses_a is not what was written"],
  ["load", "UPDATE snapshot SET seq = 2", "the snapshot of ses_a is not what was written"],
  ["load", "UPDATE event SET data = '[]' WHERE seq = 4", "ses_a at 4 is not what was written"],
  ["read", "UPDATE event SET data = '[]' WHERE seq = 1", "ses_a at 1 is not what was written"],
  ["read", "UPDATE event SET at = 7 WHERE seq = 4", "ses_a at 4 is not what was written"],
  ["read", "UPDATE event SET count = 3 WHERE seq = 4", "ses_a at 4 is not what was written"],
  ["read", "DELETE FROM event WHERE seq = 4", "ses_a has nothing between 3 and 8"],
  ["read", "DELETE FROM event WHERE seq = 1", "ses_a has nothing between 0 and 4"],
  ["load", "DELETE FROM event WHERE seq = 4", "ses_a has nothing between 3 and 8"],
];

describe("damage that SQLite does not detect", () => {
  it.each(changed)("D5: is refused by %s after %s", (verb, sql, message) => {
    asked[verb](queries(database));
    expect(database.prepare(sql).run().changes).toBe(1);
    expect(() => asked[verb](queries(database))).toThrow(
      expect.objectContaining({ code: "store_corrupt", message: `The file is damaged: ${message}.` }),
    );
  });
});

describe("a part of a log", () => {
  const seqs = (rows: readonly { readonly seq: number }[] = []): readonly number[] => rows.map(({ seq }) => seq);

  it.each([
    [0, 3, [1]],
    [0, 4, [1, 4]],
    [2, 1, [1]],
    [3, 1, [4]],
    [4, 2, [4]],
    [4, 4, [4, 8]],
    [7, 9, [8]],
    [8, 9, [8]],
  ])("after %d, at most %d, is read without the appends around it", (after, limit, found) => {
    expect(seqs(queries(database).read({ session: SES, after, limit })?.rows)).toEqual(found);
  });

  it("after a snapshot is all that is loaded", () => {
    expect(seqs(queries(database).load(SES)?.rows)).toEqual([4, 8]);
  });
});

describe("rows from versions without checksums", () => {
  it("are read unchanged", () => {
    const before = Object.values(asked).map((ask) => ask(queries(database)));
    database.exec(`UPDATE session SET sum = NULL; UPDATE event SET sum = NULL; UPDATE snapshot SET sum = NULL;
      UPDATE run SET sum = NULL, outcome_sum = NULL; UPDATE call SET outcome_sum = NULL;
      UPDATE process SET outcome_sum = NULL`);
    expect(Object.values(asked).map((ask) => ask(queries(database)))).toStrictEqual(before);
    expect(JSON.stringify(before)).not.toContain('"sum"');
    expect(JSON.stringify(before)).not.toContain('"outcomeSum"');
  });
});
