// K4: files of every version there was, as texts that nobody edits. Today's code opens them and goes on where they end.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, test, vi } from "vitest";
import { verifyAtRest } from "../../src/core/read/verify.ts";
import { migrate } from "../../src/store/sqlite/file/migrate.ts";
import { MIGRATIONS } from "../../src/store/sqlite/schema.ts";
import { logOf, openTestBelay } from "../fixtures/belay.ts";

// Files are opened and synced, on a machine that may be busy with other tests.
vi.setConfig({ testTimeout: 60_000 });

const folder = mkdtempSync(join(tmpdir(), "belay-old-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fixture = (version: number): string => join(import.meta.dirname, "fixtures", `version-${version}.sql`);
const versions = MIGRATIONS.map((_, index) => index + 1).filter((version) => existsSync(fixture(version)));

/** What a database is made of, in the words it was made with. */
const shapeOf = (database: DatabaseSync): readonly unknown[] =>
  database.prepare("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name").all();

function remade(version: number): string {
  const file = join(folder, `${version}.db`);
  const database = new DatabaseSync(file);
  database.exec(`BEGIN;\n${readFileSync(fixture(version), "utf8")}\nCOMMIT`);
  database.close();
  return file;
}

test("every version but the newest has a file to show for itself", () => {
  expect(versions.slice(0, MIGRATIONS.length - 1)).toEqual(MIGRATIONS.slice(1).map((_, index) => index + 1));
});

describe.each(versions)("a file of version %i", (version) => {
  test("is what that version made: a migration that was released has not been changed since", {
    meta: { id: "G37/released-migrations-unchanged" },
  }, () => {
    const then = new DatabaseSync(":memory:");
    then.exec(readFileSync(fixture(version), "utf8"));
    const now = new DatabaseSync(":memory:");
    migrate(now, MIGRATIONS.slice(0, version));
    expect(shapeOf(now)).toEqual(shapeOf(then));
  });

  test("is brought to what a new file is, with every fact as it was", () => {
    const old = new DatabaseSync(":memory:");
    old.exec(readFileSync(fixture(version), "utf8"));
    const facts = (): readonly unknown[] => old.prepare("SELECT session, seq, count, at, data FROM event").all();
    const before = facts();
    expect(before.length).toBeGreaterThan(100);
    migrate(old, MIGRATIONS);
    const fresh = new DatabaseSync(":memory:");
    migrate(fresh, MIGRATIONS);
    expect(shapeOf(old)).toEqual(shapeOf(fresh));
    expect(facts()).toEqual(before);
    expect(old.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  });

  test("continues: live runs are recovered, queued ones run, outcomes stand, keys are known", {
    meta: { id: "G37/old-file-continues" },
  }, async () => {
    const { belay, begun } = await openTestBelay({}, { store: remade(version) });
    const one = belay.session("ses_one");
    // The live run, then what waited behind it; the steer is taken into the turn that is asked again.
    for (const id of ["run_3", "run_6", "run_4"]) {
      expect(await (await belay.run(id)).outcome).toMatchObject({ kind: "completed" });
    }
    expect(await (await belay.run("run_5")).outcome).toMatchObject({ kind: "cancelled" });
    expect(begun).toEqual(["waits", "queued"]);
    const again = one.prompt("hello", { key: "greeting" });
    expect((await again.accepted).runId).toBe("run_1");
    expect((await one.row()).title).toBe("Ein Titel 😀");
    const texts = (await one.transcript()).map((message) => ("text" in message ? message.text : ""));
    expect(texts).toEqual(expect.arrayContaining(["hello", "Looked: completed.", "and also this", "queued"]));
    expect((await belay.session("ses_many").runs({ limit: 1000 })).length).toBe(60);
    expect(await belay.session("ses_many").prompt("one more").outcome).toEqual({ kind: "completed" });
    await expect(belay.session("ses_closed").prompt("late").accepted).rejects.toMatchObject({ code: "closed" });
    for (const { id } of await belay.sessions({ limit: 100 })) {
      expect(verifyAtRest(await logOf(belay.session(id)))).toEqual([]);
    }
    await belay.close();
  });
});
