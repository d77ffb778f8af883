// A file beside the database that records the last append. A database that has lost its write-ahead log, or was
// replaced by an older copy, looks intact; the mark shows that it is older than what was acknowledged.
//
// Invariants
// 1. It never claims more than is durable: it is written after the commit.
// 2. It is not flushed, and may be outdated, torn or empty. An unreadable mark is ignored.
// 3. A cleanly closed database has none: a copy put in its place is intentional.
// 4. If it was removed together with an open database, it is written again: the next start must not take the absence
//    of both for a new store.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { ControlError } from "../../../core/errors.ts";
import type { Seq, SessionId } from "../../../core/model/ids.ts";
import { type Database, userVersion } from "../database.ts";
import { LOG_END } from "../log-end.ts";

interface MarkedEnd {
  readonly session: SessionId;
  readonly head: Seq;
}

export class LogEndMark {
  readonly #file: string;
  readonly #path: string;
  readonly #everyMs: number;
  #at = Number.NEGATIVE_INFINITY;
  #last: MarkedEnd | undefined;

  /** `everyMs`: how outdated it may become while commits continue. */
  constructor(file: string, everyMs: number) {
    this.#file = file;
    this.#path = markPath(file);
    this.#everyMs = everyMs;
  }

  /** Remembers the last append of the opened database, for `restore`. Writes nothing. */
  begin(database: Database): void {
    const last = database.prepare(`SELECT id, ${LOG_END} AS head FROM session ORDER BY number DESC LIMIT 1`).get();
    if (last !== undefined) this.#last = { session: String(last.id) as SessionId, head: Number(last.head) };
  }

  /** Records that this session is durable up to `head`. */
  note(session: SessionId, head: Seq): void {
    const now = performance.now();
    if (now - this.#at < this.#everyMs) return;
    this.#at = now;
    this.#write({ session, head });
  }

  /** Writes the mark again, after the database was removed, if it is missing or unreadable. */
  restore(): void {
    if (this.#last !== undefined && readMark(this.#file) === undefined) this.#write(this.#last);
  }

  #write(end: MarkedEnd): void {
    try {
      writeFileSync(this.#path, `${end.head} ${end.session}\n`);
      this.#last = end;
    } catch {
      // The disk is full or the directory is missing. The previous mark is still true.
    }
  }

  /** Called before this session is deleted: a mark that names it would become false. The next commit writes another. */
  forget(session: SessionId): void {
    if (this.#last?.session !== session) return;
    this.remove();
    this.#last = undefined;
    this.#at = Number.NEGATIVE_INFINITY;
  }

  remove(): void {
    try {
      rmSync(this.#path, { force: true });
    } catch {
      // The mark stays, and is still true: the next start finds the append in the database.
    }
  }
}

/** Refuses a database that lacks what its mark records. Called before anything is written to it. */
export function requireNewest(database: Database, file: string): void {
  const mark = readMark(file);
  if (mark !== undefined && headOf(database, mark.session) < mark.head) throw older(file);
}

/** Refuses to create a database in place of one that was not closed cleanly. */
export function requireThere(file: string): void {
  if (!existsSync(file) && readMark(file) !== undefined) throw older(file);
}

function readMark(file: string): { readonly session: string; readonly head: number } | undefined {
  try {
    const [, head, session] = /^(\d{1,15}) (\S+)\n$/.exec(readFileSync(markPath(file), "utf8")) ?? [];
    return session === undefined ? undefined : { session, head: Number(head) };
  } catch {
    return undefined;
  }
}

function headOf(database: Database, session: string): number {
  // A new database has no tables yet.
  if (userVersion(database) === 0) return 0;
  return Number(database.prepare(`SELECT ${LOG_END} AS head FROM session WHERE id = ?`).get(session)?.head ?? 0);
}

const markPath = (file: string): string => `${file}.mark`;

const older = (file: string): ControlError =>
  new ControlError(
    "store_corrupt",
    `${file} is older than what was recorded in it: its write-ahead log, ${file}-wal, was taken away, or an older ` +
      "copy was put in its place. It was not touched.",
    {
      hint:
        "Put back what belongs there. If that is lost, or the older one is meant, " +
        `remove ${markPath(file)}: what was recorded later is gone then.`,
    },
  );
