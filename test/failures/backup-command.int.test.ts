// `belay backup`: a copy of a store that is in use, complete and verified, from which a server goes on.
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test, vi } from "vitest";
import { backUp } from "../../src/cli/commands/backup/backup.ts";
import { verifyAtRest } from "../../src/core/read/verify.ts";
import { logOf, openTestBelay } from "../fixtures/belay.ts";

vi.setConfig({ testTimeout: 60_000 });
const folder = mkdtempSync(join(tmpdir(), "belay-backup-command-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const options = (file: string, name: string) => ({ file, directory: join(folder, name), json: true });

test("G37: a backup that is taken while prompts are accepted is verified, and a server starts from it", async () => {
  const file = join(folder, "belay.db");
  const house = await openTestBelay({}, { store: file });
  const session = await house.belay.createSession();
  const before: string[] = [];
  for (let count = 0; count < 20; count += 1) {
    const run = session.prompt(`before ${count}`);
    await run.outcome;
    before.push(run.id);
  }
  const pending = Array.from({ length: 20 }, (_, count) => session.prompt(`meanwhile ${count}`).outcome);
  expect(backUp(options(file, "copy"))).toBe(0);
  await Promise.all(pending);
  await house.belay.close();
  // Restored: the directory is put in the place of the old one, and opened.
  const restored = join(folder, "copy", "belay.db");
  expect(existsSync(`${restored}.mark`)).toBe(false);
  const next = await openTestBelay({}, { store: restored });
  const again = next.belay.session(session.id);
  for (const id of before) expect(await (await next.belay.run(id)).outcome).toEqual({ kind: "completed" });
  expect(await again.prompt("after").outcome).toEqual({ kind: "completed" });
  expect(verifyAtRest(await logOf(again))).toEqual([]);
  await next.belay.close();
});

test("a backup is refused where something is already, and leaves nothing when the store cannot be read", async () => {
  const file = join(folder, "torn.db");
  const house = await openTestBelay({}, { store: file });
  await (await house.belay.createSession()).prompt("hello").outcome;
  await house.belay.close();
  expect(backUp(options(file, "once"))).toBe(0);
  expect(() => backUp(options(file, "once"))).toThrow(/exists already/);
  writeFileSync(file, readFileSync(file).subarray(0, 5_000));
  expect(() => backUp(options(file, "torn"))).toThrow();
  expect(existsSync(join(folder, "torn"))).toBe(false);
  expect(existsSync(join(folder, "torn.incomplete"))).toBe(false);
});

test("G37: a store of a newer version is refused by a backup and by a start, and is not touched", async () => {
  const file = join(folder, "newer.db");
  const house = await openTestBelay({}, { store: file });
  await house.belay.close();
  const database = new DatabaseSync(file);
  database.exec("PRAGMA user_version = 999");
  database.close();
  const before = readFileSync(file);
  const code = expect.objectContaining({ code: "store_newer" });
  expect(() => backUp(options(file, "newer"))).toThrow(code);
  await expect(openTestBelay({}, { store: file })).rejects.toThrow(code);
  expect(readFileSync(file)).toEqual(before);
});

test("a file of a version that could not shrink can shrink once opened, and so can its backup", async () => {
  const file = join(folder, "old.db");
  const house = await openTestBelay({}, { store: file });
  const session = await house.belay.createSession();
  for (let count = 0; count < 40; count += 1) await session.prompt(`x${"y".repeat(20_000)}${count}`).outcome;
  await house.belay.close();
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM");
  expect(database.prepare("PRAGMA auto_vacuum").get()).toEqual({ auto_vacuum: 0 });
  database.close();
  expect(backUp(options(file, "old"))).toBe(0);
  const copy = new DatabaseSync(join(folder, "old", "old.db"), { readOnly: true });
  expect(copy.prepare("PRAGMA auto_vacuum").get()).toEqual({ auto_vacuum: 2 });
  copy.close();
  const size = statSync(file).size;
  expect(size).toBeGreaterThan(800_000);
  const limits = { overall: { sessions: 1 } };
  const next = await openTestBelay({}, { store: file, retention: limits });
  await next.belay.session(session.id).delete();
  await next.belay.createSession();
  await vi.waitFor(async () => expect((await next.belay.size)?.freeBytes ?? 0).toBe(0), { timeout: 20_000 });
  await vi.waitFor(() => expect(statSync(file).size).toBeLessThan(size / 4), { timeout: 20_000, interval: 250 });
  await next.belay.close();
});
