// The writer's SQL, prepared once per connection.
import type { StatementSync } from "node:sqlite";
import { ControlError } from "../../core/errors.ts";
import type { RunId, Seq, SessionId } from "../../core/model/ids.ts";
import { type KeyedRun, keysOf } from "../../core/model/rows.ts";
import { requireSum, sumOf } from "./checksum.ts";
import type { Database } from "./database.ts";
import { LOG_END } from "./log-end.ts";
import { MemoTable } from "./memo-table.ts";
import { Removal } from "./removal.ts";
import type { PackedBatch, PackedChange } from "./thread/message.ts";

export class Statements {
  readonly database: Database;
  readonly memos: MemoTable;
  readonly begin: StatementSync;
  readonly commit: StatementSync;
  readonly rollback: StatementSync;
  readonly standing: StatementSync;
  readonly insertEvent: StatementSync;
  readonly putSnapshot: StatementSync;
  readonly eventAt: StatementSync;
  readonly checkpoint: StatementSync;
  readonly touch: StatementSync;
  readonly owner: StatementSync;
  readonly removal: Removal;
  readonly #insertSession: StatementSync;
  readonly #closeSession: StatementSync;
  readonly #insertRun: StatementSync;
  readonly #insertLiveRun: StatementSync;
  readonly #startRun: StatementSync;
  readonly #runByKey: StatementSync;
  readonly #settleRun: StatementSync;
  readonly #insertCall: StatementSync;
  readonly #insertProcess: StatementSync;
  readonly #settleProcess: StatementSync;

  constructor(database: Database) {
    this.database = database;
    this.memos = new MemoTable(database);
    const sql = (text: string): StatementSync => database.prepare(text);
    this.begin = sql("BEGIN IMMEDIATE"); // @fault no-transaction:begin
    this.commit = sql("COMMIT"); // @fault no-transaction:commit
    this.rollback = sql("ROLLBACK");
    this.standing = sql(`SELECT number, ${LOG_END} AS head FROM session WHERE id = ?`);
    this.insertEvent = sql("INSERT INTO event (session, seq, count, at, data, sum) VALUES (?, ?, ?, ?, ?, ?)");
    this.putSnapshot = sql(
      `INSERT INTO snapshot (session, seq, data, sum) VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET seq = excluded.seq, data = excluded.data, sum = excluded.sum`,
    );
    this.eventAt = sql(
      "SELECT at, data FROM event WHERE session = (SELECT number FROM session WHERE id = ?) AND seq = ?",
    );
    this.checkpoint = sql("PRAGMA wal_checkpoint(TRUNCATE)");
    // Increments instead of setting: SQLite writes no page whose contents are unchanged. Epochs only have to rise.
    this.touch = sql("UPDATE store SET epoch = epoch + 1 WHERE id = 1");
    this.owner = sql("SELECT owner_since AS since FROM store WHERE id = 1");
    this.removal = new Removal(database);
    this.#insertSession = sql("INSERT INTO session (id, created_at, title, cwd, sum) VALUES (?, ?, ?, ?, ?)");
    this.#closeSession = sql("UPDATE session SET phase = 'closed' WHERE number = ?");
    this.#insertRun = sql("INSERT INTO run (id, session, accepted_at, key, content, sum) VALUES (?, ?, ?, ?, ?, ?)");
    // Most runs start in the batch that accepts them: their row is written once instead of twice.
    this.#insertLiveRun = sql(
      "INSERT INTO run (id, session, phase, accepted_at, key, content, sum) VALUES (?, ?, 'live', ?, ?, ?, ?)",
    );
    this.#runByKey = sql("SELECT id, accepted_at AS acceptedAt, content, sum FROM run WHERE session = ? AND key = ?");
    this.#startRun = sql("UPDATE run SET phase = 'live' WHERE id = ? AND session = ? AND phase = 'waiting'");
    this.#settleRun = sql(
      "UPDATE run SET phase = 'settled', settled_at = ?, outcome = ?, outcome_sum = ? WHERE id = ? AND session = ?",
    );
    this.#insertCall = sql("INSERT INTO call (id, session, settled_at, outcome, outcome_sum) VALUES (?, ?, ?, ?, ?)");
    this.#insertProcess = sql("INSERT INTO process (id, session, requested_at) VALUES (?, ?, ?)");
    this.#settleProcess = sql(
      "UPDATE process SET settled_at = ?, outcome = ?, outcome_sum = ? WHERE id = ? AND session = ?",
    );
  }

  /** Changes the rows that follow from a batch. Returns the number of its session. */
  project(number: number | undefined, batch: PackedBatch): number {
    let session = number;
    for (const [index, change] of batch.changes.entries()) {
      if (change.type === "create-session") {
        const { first, second } = change;
        const sum = sumOf([batch.session, batch.at, first, second]);
        session = Number(this.#insertSession.run(batch.session, batch.at, first, second, sum).lastInsertRowid);
      } else if (change.type === "insert-run" && isStart(batch.changes[index + 1], change.id)) {
        const { id, at, first, second } = change;
        const sum = sumOf([id, at, first, second]);
        this.#insertLiveRun.run(id, required(session, batch.session), at, first, second, sum);
      } else if (!(isStart(change, change.id) && isInsert(batch.changes[index - 1], change.id))) {
        this.#change(required(session, batch.session), change);
      }
    }
    return required(session, batch.session);
  }

  /**
   * The keys of this batch that already have a run. Checked in its transaction, so that no other batch of the group
   * fails.
   */
  takenKeys(session: number, { changes, memos }: PackedBatch): readonly KeyedRun[] {
    const accepted = changes.flatMap(({ type, first }) => (type === "insert-run" && first !== null ? first : []));
    const runs: KeyedRun[] = [];
    for (const key of [...accepted, ...keysOf([], memos)]) {
      const found = this.#runByKey.get(session, key);
      if (found === undefined) continue;
      const run = found as {
        readonly id: RunId;
        readonly acceptedAt: Seq;
        readonly content: string | null;
        sum: number;
      };
      requireSum(run.sum, sumOf([run.id, run.acceptedAt, key, run.content]), run.id);
      runs.push({ key, runId: run.id, acceptedAt: run.acceptedAt, content: run.content ?? undefined });
    }
    return runs;
  }

  #change(session: number, { type, id, at, first, second }: PackedChange): void {
    switch (type) {
      case "create-session":
        return;
      case "close-session":
        this.#closeSession.run(session);
        return;
      case "insert-run":
        this.#insertRun.run(id, session, at, first, second, sumOf([id, at, first, second]));
        return;
      case "start-run":
        requireChanged(this.#startRun.run(id, session).changes, id);
        return;
      case "settle-run":
        requireChanged(this.#settleRun.run(at, first, sumOf([id, at], first), id, session).changes, id);
        return;
      case "insert-call":
        this.#insertCall.run(id, session, at, first, sumOf([id, at], first));
        return;
      case "insert-process":
        this.#insertProcess.run(id, session, at);
        return;
      case "settle-process":
        requireChanged(this.#settleProcess.run(at, first, sumOf([id, at], first), id, session).changes, id);
        return;
    }
  }
}

const isStart = (change: PackedChange | undefined, id: string | null): boolean =>
  change?.type === "start-run" && change.id === id;
const isInsert = (change: PackedChange | undefined, id: string | null): boolean =>
  change?.type === "insert-run" && change.id === id;

function required(number: number | undefined, session: SessionId): number {
  if (number !== undefined) return number;
  throw new ControlError("internal", `Session ${session} does not exist. Nothing was recorded.`);
}

function requireChanged(changes: number | bigint, id: string | null): void {
  if (Number(changes) === 1) return;
  throw new ControlError(
    "internal",
    `There is no ${id} in this session to which this could happen. Nothing was recorded.`,
  );
}
