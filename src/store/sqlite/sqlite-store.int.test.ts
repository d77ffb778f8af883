import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, it } from "vitest";
import { MEMO_MS, MEMOS_PER_ACTOR_MAX } from "../../core/limits.ts";
import { keep } from "../../core/model/memo.ts";
import type { Clock } from "../../ports/clock.ts";
import { encodeEvents } from "../../wire/event.ts";
import { storeContract } from "../contract/contract.ts";
import {
  accepted,
  add,
  batch,
  completed,
  created,
  fold,
  headOf,
  processRequested,
  processSettled,
  refusedAs,
  SES,
  settled,
  started,
} from "../contract/facts.ts";
import { openDatabase } from "./database.ts";
import { migrate } from "./file/migrate.ts";
import { EPOCH_BLOCK } from "./limits.ts";
import { MIGRATIONS } from "./schema.ts";
import { openSqliteStore } from "./sqlite-store.ts";
import { Thread } from "./thread/thread.ts";

const directory = mkdtempSync(join(tmpdir(), "belay-store-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
let files = 0;
const freshFile = (): string => {
  files += 1;
  return join(directory, `${files}.db`);
};

const stopped: Clock = { now: () => 0, elapsed: () => 0, after: () => () => undefined };

storeContract("the SQLite store", async () => {
  let time = 0;
  const clock: Clock = { ...stopped, elapsed: () => time };
  const store = await openSqliteStore({ file: freshFile(), clock });
  const pass = (ms: number): void => {
    time += ms;
  };
  return { store, pass };
});

describe("opening a file again", () => {
  it("expires memos by the time that it was closed", async () => {
    const file = freshFile();
    const memo = (key: string) => keep({ kind: "prompt", key, actor: "ann", reason: { kind: "user" } });
    const full = Array.from({ length: MEMOS_PER_ACTOR_MAX }, (_, index) => memo(`k${index}`));
    const openings: readonly [number, readonly ReturnType<typeof memo>[], string][] = [
      [1_000, full, "appended"],
      [999 + MEMO_MS, [memo("more")], "crowded"],
      [1_000 + MEMO_MS, [memo("more")], "appended"],
    ];
    for (const [at, memos, kind] of openings) {
      const store = await openSqliteStore({ file, clock: stopped });
      expect(await store.append({ ...batch(SES, 0, [], { memos }), at })).toMatchObject({ kind });
      await store.close();
    }
  });

  it("G1: everything that was appended is there", async () => {
    const file = freshFile();
    const first = await openSqliteStore({ file });
    await add(first, SES, 0, [created(SES, "Title"), accepted("run_1", { key: "k" }), ...started("run_1")]);
    await add(first, "ses_b", 0, [created("ses_b"), accepted("run_2"), settled("run_2")]);
    const log = await first.read(SES, { after: 0, limit: 10 });
    await first.close();
    const again = await openSqliteStore({ file });
    expect(await again.read(SES, { after: 0, limit: 10 })).toStrictEqual(log);
    expect(await again.run({ session: SES, key: "k" })).toMatchObject({ id: "run_1", phase: "live" });
    expect(await again.run("run_2")).toMatchObject({ outcome: completed });
    await add(again, SES, 4, [settled("run_1")]);
    await again.close();
  });

  it("G1: a file from before working directories keeps its sessions, and accepts new ones", async () => {
    for (const version of [1, 2]) {
      const file = freshFile();
      const older = openDatabase(file);
      migrate(older, MIGRATIONS.slice(0, version));
      expect(() => older.exec("SELECT cwd FROM session")).toThrow("no such column");
      // As that version wrote it: a log, and a lane without directories.
      const lane = fold(SES, [created(SES, "Old"), accepted("run_1")]);
      const { cwd: _, ...known } = lane;
      older.exec(`INSERT INTO session (id, created_at, title) VALUES ('${SES}', 7, 'Old');
        INSERT INTO event VALUES (1, 1, 2, 7, '${encodeEvents([created(SES, "Old"), accepted("run_1")])}');
        INSERT INTO run (id, session, accepted_at) VALUES ('run_1', 1, 2);
        INSERT INTO snapshot VALUES (1, 2, '${JSON.stringify({ v: 1, lane: known })}')`);
      older.close();
      const store = await openSqliteStore({ file });
      const row = { head: 2, createdAt: 7, updatedAt: 7, title: "Old", cwd: undefined, phase: "open" };
      expect(await store.session(SES)).toStrictEqual({ id: SES, ...row });
      expect((await store.load(SES))?.snapshot).toStrictEqual(lane);
      await add(store, "ses_b", 0, [created("ses_b", undefined, "/srv/shop")]);
      expect((await store.sessions({ after: undefined, limit: 9 })).map(({ cwd }) => cwd)).toEqual([
        ...[undefined, "/srv/shop"],
      ]);
      await store.close();
    }
  });

  it("G24: a running process is known, and its session unattended although no run is open", async () => {
    const file = freshFile();
    const first = await openSqliteStore({ file });
    await add(first, SES, 0, [created(SES), processRequested(SES, 1), processRequested(SES, 2)]);
    await add(first, SES, 3, [processSettled(SES, 1, completed)]);
    await first.claim(SES, "wrk_a", 60_000);
    const rows = await first.processes(SES, { before: 100, limit: 10 });
    await first.close();
    const again = await openSqliteStore({ file });
    expect(await again.processes(SES, { before: 100, limit: 10 })).toStrictEqual(rows);
    expect(await again.process("proc_a.1")).toMatchObject({ requestedAt: 2, settledAt: 4, outcome: completed });
    expect(await again.unattended(10)).toEqual([SES]);
    await add(again, SES, 4, [processSettled(SES, 2, { kind: "lost" })]);
    expect(await again.unattended(10)).toEqual([]);
    await again.close();
  });

  it("G24: no lease survives, so that open runs are unattended at once, and old epochs are fenced", {
    meta: { id: "G24/no-lease-after-restart" },
  }, async () => {
    const file = freshFile();
    const first = await openSqliteStore({ file });
    await add(first, SES, 0, [created(SES), accepted("run_1")]);
    const old = await first.claim(SES, "wrk_a", 60_000);
    await first.close();
    const again = await openSqliteStore({ file });
    expect(await again.unattended(10)).toEqual([SES]);
    const claim = await again.claim(SES, "wrk_b", 60_000);
    if (old.kind !== "claimed" || claim.kind !== "claimed") throw new Error("not claimed");
    expect(claim.epoch).toBeGreaterThan(old.epoch);
    expect(await again.append(batch(SES, 2, started("run_1"), { epoch: old.epoch }))).toEqual({ kind: "fenced" });
    await again.close();
  });
});

describe("a server that runs for a long time", () => {
  it("G26: continues with higher epochs when its block of them is used up", async () => {
    const file = freshFile();
    const store = await openSqliteStore({ file, clock: stopped });
    let last = 0;
    for (let count = 0; count < EPOCH_BLOCK + 2; count += 1) {
      // A lease of 0 ms expires at once.
      const claim = await store.claim(SES, count % 2 === 0 ? "wrk_a" : "wrk_b", 0);
      const epoch = claim.kind === "claimed" ? claim.epoch : 0;
      if (epoch <= last) throw new Error(`${epoch} after ${last}`);
      last = epoch;
    }
    expect(last).toBeGreaterThan(EPOCH_BLOCK);
    expect(last).toBeLessThan(2 * EPOCH_BLOCK);
    await store.close();
    const again = await openSqliteStore({ file, clock: stopped });
    expect(await again.claim(SES, "wrk_c", 1)).toEqual({ kind: "claimed", epoch: 2 * EPOCH_BLOCK + 1 });
    await again.close();
  }, 60_000);
});

describe("a second server", () => {
  it("is refused while the first is open, and the error says that this process has it open", {
    meta: { id: "G26/second-server-refused" },
  }, async () => {
    const file = freshFile();
    const store = await openSqliteStore({ file });
    const refusal = openSqliteStore({ file });
    await refusedAs("store_locked", refusal);
    const message = await refusal.catch((error: Error) => error.message);
    expect(message).toContain(`${file} is open already in this process (${process.pid})`);
    await add(store, SES, 0, [created(SES)]);
    await store.close();
    await (await openSqliteStore({ file })).close();
  });

  it("is refused even if it uses another path to the file", async () => {
    const file = freshFile();
    const store = await openSqliteStore({ file });
    symlinkSync(file, `${file}.link`);
    await refusedAs("store_locked", openSqliteStore({ file: `${file}.link` }));
    await store.close();
  });

  it("is refused from another process, and accepted as soon as the first was killed", {
    meta: { id: "G26/lock-freed-by-kill" },
  }, async () => {
    const file = freshFile();
    const child = run(`await openSqliteStore({ file }); say("open"); setInterval(() => {}, 1_000);`, file);
    expect((await said(child).next()).value).toBe("open");
    await refusedAs("store_locked", openSqliteStore({ file }));
    await expect(openSqliteStore({ file })).rejects.toThrow(`by process ${child.pid} since `);
    child.kill("SIGKILL");
    await once(child, "exit");
    await (await openSqliteStore({ file })).close();
  });
});

describe("a crash", () => {
  it("G1: kill -9 loses nothing that was acknowledged", {
    timeout: 60_000,
    meta: { id: "G1/kill-loses-no-append" },
  }, async () => {
    const file = freshFile();
    for (let round = 0; round < 10; round += 1) {
      const child = run(APPENDER, file);
      const exited = once(child, "exit");
      let acked = 0;
      for await (const line of said(child)) {
        acked = Number(line);
        if (acked >= 20 + round * 7) child.kill("SIGKILL");
      }
      await exited;
      const store = await openSqliteStore({ file });
      const session = `ses_${child.pid}` as const;
      const head = await headOf(store, session);
      expect(head).toBeGreaterThanOrEqual(acked);
      const { events } = await store.read(session, { after: 0, limit: 1_000_000 });
      expect(events.map((event) => event.seq)).toEqual(Array.from({ length: head }, (_, index) => index + 1));
      expect((await store.runs(session, { before: head + 1, limit: 1_000_000 })).length).toBe(head - 1);
      await store.close();
    }
  });

  it("a program that does not close the store ends, after its appends were written", async () => {
    const file = freshFile();
    const child = run(`(await openSqliteStore({ file })).append(create("ses_a"));`, file);
    expect(await once(child, "exit")).toEqual([0, null]);
    const store = await openSqliteStore({ file });
    expect(await headOf(store, "ses_a")).toBe(1);
    await store.close();
  });

  it("of a thread rejects its requests as unavailable, and the next one starts another", async () => {
    const thread = new Thread<{ open: { ask: null; answer: number } }>("writer", undefined);
    await refusedAs("unavailable", thread.request("open", null));
    expect(thread.started).toBe(false);
    await refusedAs("unavailable", thread.request("open", null));
  });

  it("of the writer releases the file, so that the next request can open it again", async () => {
    const broken = { ask: null, answer: null };
    const thread = new Thread<{ open: typeof broken; append: typeof broken }>("writer", { file: freshFile() });
    await thread.request("open", null);
    const asked = [thread.request("append", null), thread.request("open", null)];
    await Promise.all(asked.map((one) => refusedAs("unavailable", one)));
    await thread.request("open", null);
    await thread.end();
  });
});

describe("another program that locks the file", () => {
  it("G28: makes appends fail as locked while reads work, and all is well once it has gone", {
    timeout: 20_000,
    meta: { id: "G28/locked-file-fails-appends" },
  }, async () => {
    const file = freshFile();
    const store = await openSqliteStore({ file });
    await add(store, SES, 0, [created(SES)]);
    const other = new DatabaseSync(file);
    other.exec("BEGIN IMMEDIATE");
    const appends = [batch(SES, 1, [accepted("run_1")]), batch("ses_b", 0, [created("ses_b")])];
    await Promise.all(appends.map((one) => refusedAs("store_locked", store.append(one))));
    expect(await headOf(store, SES)).toBe(1);
    other.exec("ROLLBACK");
    other.close();
    await add(store, SES, 1, [accepted("run_1")]);
    await store.close();
  });
});

describe("the database itself", () => {
  it("G4, G14: cannot store two live runs of a session, nor change an outcome, nor settle without one", {
    meta: { id: "G14/database-guards-outcomes" },
  }, async () => {
    const file = freshFile();
    const store = await openSqliteStore({ file });
    await add(store, SES, 0, [created(SES), accepted("run_1"), accepted("run_2"), accepted("run_3"), settled("run_1")]);
    await add(store, SES, 5, started("run_2"));
    await store.close();
    const database = new DatabaseSync(file);
    const refuses = (sql: string, why: string): void => expect(() => database.exec(sql)).toThrow(why);
    refuses("UPDATE run SET phase = 'live' WHERE id = 'run_3'", "UNIQUE");
    refuses("UPDATE run SET outcome = '{}' WHERE id = 'run_1'", "has an outcome already");
    refuses("UPDATE run SET phase = 'waiting', outcome = NULL, settled_at = NULL WHERE id = 'run_1'", "already");
    refuses("UPDATE run SET phase = 'settled' WHERE id = 'run_3'", "CHECK");
    refuses("UPDATE run SET outcome = '{}' WHERE id = 'run_3'", "CHECK");
    refuses("INSERT INTO event (session, seq, count, at, data) VALUES (99, 1, 1, 1, '[1]')", "FOREIGN KEY");
    database.close();
  });

  it("cannot change the outcome of a process, nor settle one without an outcome", async () => {
    const file = freshFile();
    const store = await openSqliteStore({ file });
    const requested = [processRequested(SES, 1), processRequested(SES, 2)];
    await add(store, SES, 0, [created(SES), ...requested, processSettled(SES, 1, completed)]);
    await store.close();
    const database = new DatabaseSync(file);
    const refuses = (sql: string, why: string): void => expect(() => database.exec(sql)).toThrow(why);
    refuses("UPDATE process SET outcome = '{}' WHERE id = 'proc_a.1'", "has an outcome already");
    refuses("UPDATE process SET outcome = NULL, settled_at = NULL WHERE id = 'proc_a.1'", "has an outcome already");
    refuses("UPDATE process SET settled_at = 9 WHERE id = 'proc_a.2'", "CHECK");
    refuses("UPDATE process SET outcome = '{}' WHERE id = 'proc_a.2'", "CHECK");
    refuses("INSERT INTO process (id, session, requested_at) VALUES ('proc_a.1', 1, 9)", "UNIQUE");
    refuses("INSERT INTO process (id, session, requested_at) VALUES ('proc_a.3', 1, 2)", "UNIQUE");
    refuses("INSERT INTO process (id, session, requested_at) VALUES ('proc_z.1', 99, 2)", "FOREIGN KEY");
    database.close();
  });
});

const APPENDER = `
  const store = await openSqliteStore({ file });
  const session = "ses_" + process.pid;
  await store.append(create(session));
  for (let head = 1; ; head += 1) {
    const runId = "run_" + process.pid + "_" + head;
    const events = [{ type: "run.accepted", runId, prompt: { text: "x" }, delivery: "queue" }];
    await store.append({ session, expected: head, at: 1, events });
    say(head + 1);
  }`;

/** Runs a program with an open store in its own process. */
function run(program: string, file: string): ChildProcess {
  const prelude = `
    import { writeSync } from "node:fs";
    import { openSqliteStore } from ${JSON.stringify(new URL("./sqlite-store.ts", import.meta.url).href)};
    const file = ${JSON.stringify(file)};
    const say = (line) => writeSync(1, line + "\\n");
    const created = (sessionId) => [{ type: "session.created", sessionId }];
    const create = (session) => ({ session, expected: 0, at: 1, events: created(session) });`;
  const stdio = ["ignore", "pipe", "inherit"] as const;
  return spawn(process.execPath, ["--input-type=module", "--eval", prelude + program], { stdio: [...stdio] });
}

async function* said(child: ChildProcess): AsyncGenerator<string> {
  if (child.stdout === null) throw new Error("the child has no output");
  for await (const line of createInterface({ input: child.stdout })) yield line;
}
