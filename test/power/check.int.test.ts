// The checker of the power suite, shown files that are not what was told.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SeededChooser } from "../../sim/chooser.ts";
import { openFile } from "../../src/store/sqlite/file/open-file.ts";
import { appendNext } from "../damage/specimen.ts";
import { check } from "./check.ts";
import { type Known, type Sent, Told } from "./told.ts";
import { Workload } from "./workload.ts";

let folder = "";
let database: DatabaseSync;
let told: Told;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belay-check-"));
  const file = join(folder, "belay.db");
  told = new Told();
  const opened = openFile(file);
  const workload = new Workload(new SeededChooser(2));
  for (let left = 60; left > 0; ) if (appendNext(opened, workload, told)) left -= 1;
  opened.close();
  database = new DatabaseSync(file);
});
afterEach(() => {
  database.close();
  rmSync(folder, { recursive: true, force: true });
});

const kinds = (): readonly string[] => check(database, told).map(({ kind }) => kind);

/** The session with the longest log. */
function busiest(): Known {
  const [first] = [...told.sessions.values()].sort((a, b) => b.sent.length - a.sent.length);
  if (first === undefined) throw new Error("nobody was busy");
  return first;
}

/** The last append of the busiest session, as if nobody had been answered. */
function unanswered(): Sent {
  const known = busiest();
  const sent = known.sent.at(-1);
  if (sent === undefined) throw new Error("nothing was sent");
  const fresh = new Told();
  const all = [...told.sessions.values()].flatMap((one) => one.sent);
  for (const one of all) if (one !== sent) fresh.confirm(one);
  told = fresh;
  return sent;
}

test("finds nothing where all is as it was told", () => {
  expect(check(database, told)).toEqual([]);
});

describe("finds lost", () => {
  test("an append that was answered and is not there", () => {
    const { lane } = busiest();
    database.exec(`DELETE FROM event WHERE session = (SELECT number FROM session WHERE id = '${lane.id}')
      AND seq = (SELECT MAX(seq) FROM event WHERE session = (SELECT number FROM session WHERE id = '${lane.id}'))`);
    expect(kinds()).toContain("lost");
  });

  test("a past that was not to be forgotten", () => {
    busiest().keptFrom = 5;
    expect(kinds()).toContain("lost");
  });
});

describe("finds torn", () => {
  test("an append that is not what was sent", () => {
    database.exec("UPDATE event SET at = at + 1, sum = NULL WHERE rowid = 3");
    expect(kinds()).toEqual(["torn"]);
  });

  test("something that was never sent", () => {
    const { lane } = busiest();
    database.exec(`INSERT INTO event (session, seq, count, at, data)
      SELECT number, ${lane.head + 1}, 1, 1, '[1]' FROM session WHERE id = '${lane.id}'`);
    expect(kinds()).toEqual(["torn"]);
  });

  test("half of a group", () => {
    const sent = unanswered();
    told.doubts = [sent, { ...sent, batch: { ...sent.batch, session: "ses_z" }, packed: { ...sent.packed, at: -1 } }];
    expect(kinds()).toEqual(["torn"]);
  });

  test("what was found missing once, and is there later", () => {
    const sent = unanswered();
    told.refused.push({ sent, because: "it was not there" });
    expect(check(database, told)[0]?.message).toContain("although it was not there");
  });

  test.each([
    "DELETE FROM call WHERE rowid = 1",
    "UPDATE run SET content = 'another' WHERE phase <> 'settled'",
    "UPDATE session SET phase = 'closed'",
    "UPDATE snapshot SET seq = seq - 1, sum = NULL",
    "INSERT INTO process (id, session, requested_at) VALUES ('proc_a.99', 1, 999)",
  ])("rows that do not follow from the log: %s", (sql) => {
    expect(database.prepare(sql).run().changes).toBeGreaterThan(0);
    expect(kinds()).toContain("torn");
  });
});

test("what was not answered counts as told once it has been read", () => {
  const sent = unanswered();
  const before = told.known(sent.batch.session).sent.length;
  told.doubts = [sent];
  expect(check(database, told)).toEqual([]);
  expect(told.doubts).toEqual([]);
  expect(told.known(sent.batch.session).sent.length).toBe(before + 1);
});
