// The floor with durability: the loop by hand, and the rows we would write, into one table, FULL, group-committed.
//
// No cancel, no follower, no queue, no recovery: what a program pays the disk and SQLite, and nobody else.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { open as openBareLoop } from "./bare-loop.ts";
import { openOurs } from "./our-side.ts";
import type { Kind, Side } from "./side.ts";

export async function open(): Promise<Side> {
  const folder = await mkdtemp(join(tmpdir(), "belay-floor-"));
  const batches: Readonly<Record<Kind, readonly string[]>> = {
    text: await batchesOf("text", join(folder, "text.db")),
    tool: await batchesOf("tool", join(folder, "tool.db")),
  };
  const log = new Log(join(folder, "floor.db"));
  const loop = await openBareLoop();
  let runs = 0;
  return {
    name: "durableLoop",
    async run(kind) {
      const session = `ses_${++runs}`;
      const [first = "", ...rest] = batches[kind];
      await log.append([session, 1, first]);
      const text = await loop.run(kind);
      for (const [index, data] of rest.entries()) await log.append([session, index + 2, data]);
      return text;
    },
    async close() {
      log.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** What our own side appends for one run, row for row, read back from its file. */
async function batchesOf(kind: Kind, file: string): Promise<readonly string[]> {
  const ours = await openOurs("ours", () => file, [kind]);
  await ours.run(kind);
  await ours.close();
  const database = new DatabaseSync(file, { readOnly: true });
  const rows = database.prepare("SELECT data FROM event ORDER BY seq").all();
  database.close();
  return rows.map(({ data }) => String(data));
}

type Row = readonly [session: string, seq: number, data: string];

/** Appends of one round of the event loop share a commit. */
class Log {
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  #waiting: { readonly row: Row; readonly done: () => void }[] = [];

  constructor(file: string) {
    this.#database = new DatabaseSync(file);
    this.#database.exec(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE row " +
        "(session TEXT, seq INTEGER, data TEXT, PRIMARY KEY (session, seq)) WITHOUT ROWID",
    );
    this.#insert = this.#database.prepare("INSERT INTO row VALUES (?, ?, ?)");
  }

  append(row: Row): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#commit());
      this.#waiting.push({ row, done: resolve });
    });
  }

  close(): void {
    this.#database.close();
  }

  #commit(): void {
    const group = this.#waiting;
    this.#waiting = [];
    this.#database.exec("BEGIN IMMEDIATE");
    for (const { row } of group) this.#insert.run(...row);
    this.#database.exec("COMMIT");
    for (const { done } of group) done();
  }
}
