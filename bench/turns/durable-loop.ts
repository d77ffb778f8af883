// The floor with durability: the loop by hand, and the rows we would write, into one table, FULL, group-committed.
//
// No cancel, no follower, no queue, no recovery: what a program pays the disk and SQLite, and nobody else.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { open as openBareLoop } from "./bare-loop.ts";
import type { Kind, Side } from "./side.ts";

/** What our side appends for one run: the sizes of its batches, in bytes, as its log has them. */
const BATCHES: Readonly<Record<Kind, readonly number[]>> = { text: [420, 330], tool: [420, 420, 330, 340] };

export async function open(): Promise<Side> {
  const folder = await mkdtemp(join(tmpdir(), "belay-floor-"));
  const log = new Log(join(folder, "floor.db"));
  const loop = await openBareLoop();
  let runs = 0;
  return {
    name: "durableLoop",
    async run(kind) {
      const session = `ses_${++runs}`;
      const [first, ...rest] = BATCHES[kind];
      await log.append(session, 1, first ?? 0);
      const text = await loop.run(kind);
      for (const [index, bytes] of rest.entries()) await log.append(session, index + 2, bytes);
      return text;
    },
    async close() {
      log.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Appends of one round of the event loop share a commit. */
class Log {
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  #waiting: { readonly row: readonly [string, number, string]; readonly done: () => void }[] = [];

  constructor(file: string) {
    this.#database = new DatabaseSync(file);
    this.#database.exec(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE row " +
        "(session TEXT, seq INTEGER, data TEXT, PRIMARY KEY (session, seq)) WITHOUT ROWID",
    );
    this.#insert = this.#database.prepare("INSERT INTO row VALUES (?, ?, ?)");
  }

  append(session: string, seq: number, bytes: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#commit());
      this.#waiting.push({ row: [session, seq, "x".repeat(bytes)], done: resolve });
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
