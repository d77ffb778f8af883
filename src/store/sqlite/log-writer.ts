// The only writer of a file. Everything in here is synchronous, in the writer's thread.
//
// Invariants
// 1. A group of appends is one transaction. If one of them cannot be, the group is taken back and each is tried alone:
//    only the bad one fails.
// 2. What is answered is true. When a commit fails in the middle, the connection is thrown away and the file is asked.
// 3. Heads in memory are those of committed appends; those of the transaction that is going on stand aside.
import { ControlError } from "../../core/control-error.ts";
import type { Seq, SessionId } from "../../core/ids.ts";
import { sumOf } from "./checksum.ts";
import { type Database, orClosed } from "./database.ts";
import { HEADS_MAX } from "./limits.ts";
import type { Mark } from "./mark.ts";
import type { PackedBatch, PackedChange, Written } from "./message.ts";
import { Recent } from "./recent.ts";
import type { Reserve } from "./reserve.ts";
import { Statements } from "./statements.ts";
import { fullError, troubleError, troubleOf } from "./trouble.ts";

interface Standing {
  readonly number: number;
  readonly head: Seq;
}

export interface LogWriterOptions {
  readonly file: string;
  readonly reserve: Pick<Reserve, "hasRoom" | "isTight" | "spend">;
  /** A connection that is ready for use. Asked for again after trouble. */
  readonly connect: () => Database;
  /** Hears of one session of each commit, once that is durable. */
  readonly mark?: Pick<Mark, "note">;
}

export class LogWriter {
  readonly #options: LogWriterOptions;
  readonly #heads = new Recent<SessionId, Standing>(HEADS_MAX);
  readonly #staged = new Map<SessionId, Standing>();
  #statements: Statements | undefined;

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#connected();
  }

  /** Writes a group, and says of each append what became of it. Never throws. */
  append(batches: readonly PackedBatch[]): readonly Written[] {
    try {
      return this.#write(batches);
    } catch (error) {
      if (isFinal(error)) return batches.map(() => this.#failed(error));
      return batches.map((batch) => (batches.length === 1 ? this.#second(batch, error) : this.#alone(batch)));
    }
  }

  /** The first position that is kept from now on. */
  trim(session: SessionId, before: Seq): Seq {
    const statements = this.#connected();
    statements.begin.run();
    try {
      const kept = statements.trim(session, before);
      statements.commit.run();
      return kept;
    } catch (error) {
      this.#rollBack();
      throw troubleError(error, this.#options.file);
    }
  }

  /** Writes a page, to see whether that can be done. Throws what an append would be told. */
  probe(): void {
    const { reserve, file } = this.#options;
    if (!reserve.hasRoom() || reserve.isTight()) throw fullError(file);
    const statements = this.#connected();
    try {
      statements.begin.run();
      statements.touch.run();
      statements.commit.run();
    } catch (error) {
      this.#rollBack();
      if (troubleOf(error) === "unclear") this.#drop();
      throw troubleError(error, file);
    }
  }

  /** For the few writes that are not appends. */
  with<A>(act: (database: Database) => A): A {
    return act(this.#connected().database);
  }

  close(): void {
    this.#drop();
  }

  #alone(batch: PackedBatch): Written {
    try {
      return this.#one(batch);
    } catch (error) {
      return this.#second(batch, error);
    }
  }

  /** An append that failed gets another chance where something can be done about the cause. */
  #second(batch: PackedBatch, error: unknown): Written {
    const trouble = troubleOf(error);
    const again = trouble === "unclear" || (trouble === "full" && !isNew(batch) && this.#options.reserve.spend());
    if (isFinal(error) || !again) return this.#failed(error);
    try {
      return this.#one(batch);
    } catch (last) {
      return this.#failed(last);
    }
  }

  #one(batch: PackedBatch): Written {
    const [written] = this.#write([batch]);
    return written ?? this.#failed(new ControlError("internal", "An append has no answer."));
  }

  #write(batches: readonly PackedBatch[]): readonly Written[] {
    const statements = this.#connected();
    let answers: readonly Written[] | undefined;
    try {
      statements.begin.run();
      answers = batches.map((batch) => this.#stage(statements, batch));
      statements.commit.run(); // @fault commit-not-heard
    } catch (error) {
      this.#rollBack();
      if (troubleOf(error) !== "unclear" || error instanceof ControlError) throw error;
      this.#drop();
      if (answers === undefined || !this.#landed(batches, answers)) throw error;
    }
    this.#keepHeads();
    return answers;
  }

  #stage(statements: Statements, batch: PackedBatch): Written {
    const { session, expected, count } = batch;
    const standing = this.#standing(statements, session);
    if ((standing?.head ?? 0) !== expected) return { kind: "moved", head: standing?.head ?? 0 };
    const taken = standing === undefined ? [] : statements.takenKeys(standing.number, batch);
    if (taken.length > 0) return { kind: "taken", runs: taken };
    if (isNew(batch) && !this.#options.reserve.hasRoom()) throw fullError(this.#options.file);
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

  #standing(statements: Statements, session: SessionId): Standing | undefined {
    const known = this.#staged.get(session) ?? this.#heads.get(session);
    if (known !== undefined) return known;
    const found = statements.standing.get(session);
    return found === undefined ? undefined : { number: Number(found.number), head: Number(found.head) };
  }

  /**
   * Whether a commit that failed has happened after all. One append of it tells for all: they were one transaction.
   * What is found is moved into the database itself, because a sync that has failed once may not be trusted again.
   */
  #landed(batches: readonly PackedBatch[], answers: readonly Written[]): boolean {
    const index = answers.findLastIndex((answer, at) => answer.kind === "appended" && (batches[at]?.count ?? 0) > 0);
    const batch = batches[index];
    if (batch === undefined) return false;
    try {
      const statements = this.#connected();
      const row = statements.eventAt.get(batch.session, batch.expected + 1);
      if (row?.data !== batch.data || row.at !== batch.at) return false;
      if (statements.checkpoint.get()?.busy === 0) return true;
    } catch {
      // The disk does not even let us look.
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

  /** Forgets the connection and everything that was learnt through it. */
  #drop(): void {
    const statements = this.#statements;
    this.#statements = undefined;
    this.#heads.clear();
    try {
      statements?.database.close();
    } catch {
      // A connection that failed may fail at this too. It is gone either way.
    }
  }

  #failed(error: unknown): Written {
    const { code, message } = troubleError(error, this.#options.file);
    return { kind: "failed", code, message };
  }
}

/** Trouble that trying again at once cannot help: it would only wait once more, or write a second time. */
function isFinal(error: unknown): boolean {
  const trouble = troubleOf(error);
  return trouble === "locked" || trouble === "corrupt" || (trouble === "unclear" && error instanceof ControlError);
}

const unknown = (file: string): ControlError =>
  new ControlError("unavailable", `It is not known whether the last appends to ${file} are durable.`);

/**
 * Whether a batch begins something, rather than carrying on with what has begun. What ends something does not, also if
 * a run follows from it, as from the result of a process: the end must find its place when the disk is full.
 */
const isNew = ({ changes }: PackedBatch): boolean =>
  changes.some(({ type }) => BEGINNINGS.has(type)) && !changes.some(({ type }) => ENDS.has(type));

const BEGINNINGS: ReadonlySet<PackedChange["type"]> = new Set(["create-session", "insert-run", "insert-process"]);
const ENDS: ReadonlySet<PackedChange["type"]> = new Set(["settle-run", "settle-process"]);
