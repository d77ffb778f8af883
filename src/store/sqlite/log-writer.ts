// The only writer of a file. Everything here is synchronous, in the writer's thread.
//
// Invariants
// 1. A group of appends is one transaction. If one of them fails, the group is rolled back and each is retried alone,
//    so that only the bad one fails.
// 2. Results are true. When a commit fails in the middle, the connection is dropped and the file is read to find out.
// 3. No append is reported as written unless the file is still at its path, under one name, and owned by this
//    program.
// 4. Cached heads are those of committed appends; those of the current transaction are kept apart.
import { ControlError } from "../../core/errors.ts";
import type { Seq, SessionId } from "../../core/model/ids.ts";
import type { StoreTrimmed } from "../../core/model/upkeep.ts";
import { sumOf } from "./checksum.ts";
import { autoVacuum, type Database, INCREMENTAL, orClosed, pagesOf } from "./database.ts";
import type { LogEndMark } from "./file/log-end-mark.ts";
import { type Ownership, TakenOver } from "./file/ownership.ts";
import type { Reserve } from "./file/reserve.ts";
import { HEADS_MAX, RECLAIM_PAGES } from "./limits.ts";
import { RecentEntries } from "./recent-entries.ts";
import { errorKindOf, fullError, storeError } from "./sqlite-errors.ts";
import { Statements } from "./statements.ts";
import type { PackedBatch, PackedChange, Written } from "./thread/message.ts";

interface Standing {
  readonly number: number;
  readonly head: Seq;
}

export interface LogWriterOptions {
  readonly file: string;
  readonly reserve: Pick<Reserve, "hasRoom" | "isTight" | "spend">;
  /** Opens a connection. Called again after an error. */
  readonly connect: () => Database;
  /** Receives one session of each commit, once that is durable. */
  readonly mark?: Pick<LogEndMark, "note" | "forget">;
  /** Checked before, in and after each transaction. */
  readonly ownership?: Pick<Ownership, "require" | "requireOwner">;
}

export class LogWriter {
  readonly #options: LogWriterOptions;
  readonly #heads = new RecentEntries<SessionId, Standing>(HEADS_MAX);
  readonly #staged = new Map<SessionId, Standing>();
  #statements: Statements | undefined;

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#connected();
  }

  /** Writes a group, and returns the result of each append. Never throws. */
  append(batches: readonly PackedBatch[]): readonly Written[] {
    try {
      return this.#write(batches);
    } catch (error) {
      if (error instanceof TakenOver) return batches.map(() => ({ kind: "fenced" }));
      if (isFinal(error)) return batches.map(() => this.#failed(error));
      return batches.map((batch) => (batches.length === 1 ? this.#retry(batch, error) : this.#writeAlone(batch)));
    }
  }

  /** Removes old events, a limited number of rows. */
  trim(session: SessionId, before: Seq): StoreTrimmed {
    return this.#transaction(({ removal }) => removal.trim(session, before));
  }

  /** One step of deleting a session. */
  remove(session: SessionId): "more" | "done" | "absent" | "busy" {
    // Its mark would claim that the store lost the deleted events. If the file was removed, the mark must stay.
    this.#options.ownership?.require("any");
    this.#options.mark?.forget(session);
    const step = this.#transaction(({ removal }) => removal.remove(session));
    if (step === "done") this.#heads.delete(session);
    return step;
  }

  /** Returns unused pages to the file system, a limited number. Returns how many bytes are left. */
  reclaim(): number {
    this.#transaction(({ database }) => database.exec(`PRAGMA incremental_vacuum(${RECLAIM_PAGES})`));
    try {
      const { database } = this.#connected();
      if (autoVacuum(database) !== INCREMENTAL) return 0;
      const { pageBytes, freePages } = pagesOf(database);
      if (freePages === 0) database.exec("PRAGMA wal_checkpoint(PASSIVE)");
      return freePages * pageBytes;
    } catch (error) {
      throw storeError(error, this.#options.file);
    }
  }

  #transaction<A>(act: (statements: Statements) => A): A {
    const statements = this.#connected();
    try {
      this.#begin(statements);
      const answer = act(statements);
      statements.commit.run();
      return answer;
    } catch (error) {
      this.#rollBack();
      throw storeError(error, this.#options.file);
    }
  }

  /** Writes a page to check that writing works. Throws the error that an append would return. */
  probe(): void {
    const { reserve, file, ownership } = this.#options;
    ownership?.require("new");
    if (!reserve.hasRoom() || reserve.isTight()) throw fullError(file);
    const statements = this.#connected();
    try {
      this.#begin(statements);
      statements.touch.run();
      statements.commit.run();
    } catch (error) {
      this.#rollBack();
      if (errorKindOf(error) === "unclear") this.#drop();
      throw storeError(error, file);
    }
  }

  /** For the few writes that are not appends. */
  with<A>(act: (database: Database) => A): A {
    return act(this.#connected().database);
  }

  close(): void {
    this.#drop();
  }

  #writeAlone(batch: PackedBatch): Written {
    try {
      return this.#writeOne(batch);
    } catch (error) {
      return this.#retry(batch, error);
    }
  }

  /** Retries an append that failed, if something can be done about the cause. */
  #retry(batch: PackedBatch, error: unknown): Written {
    const trouble = errorKindOf(error);
    const again = trouble === "unclear" || (trouble === "full" && !isNew(batch) && this.#options.reserve.spend());
    if (isFinal(error) || !again) return this.#failed(error);
    try {
      return this.#writeOne(batch);
    } catch (last) {
      return this.#failed(last);
    }
  }

  #writeOne(batch: PackedBatch): Written {
    const [written] = this.#write([batch]);
    return written ?? this.#failed(new ControlError("internal", "An append has no answer."));
  }

  #write(batches: readonly PackedBatch[]): readonly Written[] {
    const statements = this.#connected();
    let answers: readonly Written[] | undefined;
    try {
      this.#begin(statements);
      answers = batches.map((batch) => this.#stage(statements, batch));
      statements.commit.run(); // @fault commit-not-heard
    } catch (error) {
      this.#rollBack();
      if (errorKindOf(error) !== "unclear" || error instanceof ControlError) throw error;
      this.#drop();
      if (answers === undefined || !this.#tookEffect(batches, answers)) throw error;
    }
    this.#requireKept();
    this.#keepHeads();
    return answers;
  }

  /** Begins a transaction, after checking that the file is at its path and owned by this program. */
  #begin(statements: Statements): void {
    const { ownership } = this.#options;
    ownership?.require("any");
    statements.begin.run();
    ownership?.requireOwner(statements.owner.get()?.since);
  }

  /** If the file was removed meanwhile, the appends are in it, and it is unknown whether it will be read again. */
  #requireKept(): void {
    try {
      this.#options.ownership?.require("any");
    } catch {
      this.#staged.clear();
      this.#heads.clear();
      throw unknown(this.#options.file);
    }
  }

  #stage(statements: Statements, batch: PackedBatch): Written {
    const { session, expected, count } = batch;
    const standing = this.#standing(statements, session);
    if ((standing?.head ?? 0) !== expected) return { kind: "moved", head: standing?.head ?? 0 };
    const taken = standing === undefined ? [] : statements.takenKeys(standing.number, batch);
    if (taken.length > 0) return { kind: "taken", runs: taken };
    const recalled = statements.memos.recalled(batch);
    if (recalled.length > 0) return { kind: "recalled", memos: recalled };
    const crowded = statements.memos.crowded(batch);
    if (crowded.length > 0) return { kind: "crowded", actors: crowded };
    if (isNew(batch)) this.#requireRoom();
    statements.memos.write(batch);
    // Memos alone, of a session that does not exist.
    if (standing === undefined && count === 0) return { kind: "appended", head: 0 };
    const number = statements.project(standing?.number, batch);
    if (count > 0) {
      const sum = sumOf([session, expected + 1, count, batch.at], batch.data);
      statements.insertEvent.run(number, expected + 1, count, batch.at, batch.data, sum);
    }
    if (batch.snapshot !== null) {
      const sum = sumOf([session, expected + count], batch.snapshot);
      statements.putSnapshot.run(number, expected + count, batch.snapshot, sum);
    }
    this.#staged.set(session, { number, head: expected + count }); // @fault marked-too-early
    return { kind: "appended", head: expected + count };
  }

  #requireRoom(): void {
    const { reserve, file, ownership } = this.#options;
    ownership?.require("new");
    if (!reserve.hasRoom()) throw fullError(file);
  }

  #standing(statements: Statements, session: SessionId): Standing | undefined {
    const known = this.#staged.get(session) ?? this.#heads.get(session);
    if (known !== undefined) return known;
    const found = statements.standing.get(session);
    return found === undefined ? undefined : { number: Number(found.number), head: Number(found.head) };
  }

  /**
   * Whether a commit that failed has taken effect after all. One of its appends decides for all: they were one
   * transaction. Recovered appends are moved into the database itself, because a sync that failed once may not be
   * trusted again.
   */
  #tookEffect(batches: readonly PackedBatch[], answers: readonly Written[]): boolean {
    const index = answers.findLastIndex((answer, at) => answer.kind === "appended" && (batches[at]?.count ?? 0) > 0);
    const batch = batches[index];
    if (batch === undefined) return false;
    try {
      const statements = this.#connected();
      const row = statements.eventAt.get(batch.session, batch.expected + 1);
      if (row?.data !== batch.data || row.at !== batch.at) return false;
      if (statements.checkpoint.get()?.busy === 0) return true;
    } catch {
      // The disk cannot even be read.
    }
    throw unknown(this.#options.file);
  }

  #keepHeads(): void {
    let last: readonly [SessionId, Standing] | undefined;
    for (last of this.#staged) this.#heads.set(...last);
    if (last !== undefined) this.#options.mark?.note(last[0], last[1].head); // @fault marked-too-early:note
    this.#staged.clear();
  }

  #connected(): Statements {
    if (this.#statements === undefined) {
      // Connecting to a missing file would create an empty one.
      this.#options.ownership?.require("any");
      this.#statements = orClosed(this.#options.connect(), (database) => new Statements(database));
    }
    return this.#statements;
  }

  #rollBack(): void {
    this.#staged.clear();
    try {
      this.#statements?.rollback.run();
    } catch {
      // SQLite has rolled back by itself, as it does when the disk is full.
    }
  }

  /** Drops the connection and everything cached from it. */
  #drop(): void {
    const statements = this.#statements;
    this.#statements = undefined;
    this.#heads.clear();
    try {
      statements?.database.close();
    } catch {
      // A failed connection may fail to close, too. It is dropped either way.
    }
  }

  #failed(error: unknown): Written {
    const { code, message } = storeError(error, this.#options.file);
    return { kind: "failed", code, message };
  }
}

/** Errors that an immediate retry cannot fix: it would only wait again, or write twice. */
function isFinal(error: unknown): boolean {
  const trouble = errorKindOf(error);
  return trouble === "locked" || trouble === "corrupt" || (trouble === "unclear" && error instanceof ControlError);
}

const unknown = (file: string): ControlError =>
  new ControlError("unavailable", `It is not known whether the last appends to ${file} are durable.`);

/**
 * Whether a batch starts something new. A batch that ends something does not, even if a run follows from it, as from
 * the result of a process: the end must be recorded even when the disk is full.
 */
const isNew = ({ changes }: PackedBatch): boolean =>
  changes.some(({ type }) => BEGINNINGS.has(type)) && !changes.some(({ type }) => ENDS.has(type));

const BEGINNINGS: ReadonlySet<PackedChange["type"]> = new Set(["create-session", "insert-run", "insert-process"]);
const ENDS: ReadonlySet<PackedChange["type"]> = new Set(["settle-run", "settle-process"]);
