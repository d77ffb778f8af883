// What was recorded last, in a file of its own beside the database. A database whose write-ahead log was taken away, or
// in whose place an older copy was put, looks whole: by the mark it is known to be older than what was acknowledged.
//
// Invariants
// 1. It never says more than is durable: it is written after the commit that it speaks of.
// 2. It is not flushed, and may be behind, torn or empty. One that cannot be read says nothing.
// 3. A database that was closed in order has none: whoever puts a copy in its place then means it.
// 4. If it was removed together with an open database, it is written again: the next start must not take the absence
//    of both for a beginning.
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

  /** `everyMs`: how old it may become while commits go on. */
  constructor(file: string, everyMs: number) {
    this.#file = file;
    this.#path = markPath(file);
    this.#everyMs = everyMs;
  }

  /** What the database holds when it is opened. Nothing is written: it is for `restore`. */
  begin(database: Database): void {
    const last = database.prepare(`SELECT id, ${LOG_END} AS head FROM session ORDER BY number DESC LIMIT 1`).get();
    if (last !== undefined) this.#last = { session: String(last.id) as SessionId, head: Number(last.head) };
  }

  /** So much of this session is durable. */
  note(session: SessionId, head: Seq): void {
    const now = performance.now();
    if (now - this.#at < this.#everyMs) return;
    this.#at = now;
    this.#write({ session, head });
  }

  /** The database was removed: writes the mark again if there is none, or one that says nothing. */
  restore(): void {
    if (this.#last !== undefined && readMark(this.#file) === undefined) this.#write(this.#last);
  }

  #write(end: MarkedEnd): void {
    try {
      writeFileSync(this.#path, `${end.head} ${end.session}\n`);
      this.#last = end;
    } catch {
      // A disk that is full, or a directory that is gone. What it said before is still true.
    }
  }

  /** This session is about to be deleted: a mark that names it would be false. The next commit writes another. */
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
      // Then it says what is so: the next one finds it in the database.
    }
  }
}

/** Refuses a database that has less than its mark says. To be asked before anything is written to it. */
export function requireNewest(database: Database, file: string): void {
  const mark = readMark(file);
  if (mark !== undefined && headOf(database, mark.session) < mark.head) throw older(file);
}

/** Refuses to make a database anew where one was, and was not closed in order. */
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
  // A new one has no tables yet.
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
