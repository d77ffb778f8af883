// Removes old events, rows and whole sessions, in small steps, each in a transaction of its caller.
//
// Invariants
// 1. A log is cut between runs, never within one.
// 2. Events are removed before the rows derived from them, then the memos, and the session itself last.
import type { StatementSync } from "node:sqlite";
import { REMOVE_ROWS_MAX, RUN_ROWS_KEPT } from "../../core/limits.ts";
import type { Seq, SessionId } from "../../core/model/ids.ts";
import type { StoreTrimmed } from "../../core/model/upkeep.ts";
import type { Database } from "./database.ts";
import { LOG_END } from "./log-end.ts";

interface Standing {
  readonly number: number;
  readonly kept: Seq;
  readonly head: Seq;
  readonly snapshot: Seq;
  readonly run: Seq | null;
  readonly process: Seq | null;
}

type Bound = readonly [Seq, StoreTrimmed["limit"]];

export class Removal {
  readonly #standing: StatementSync;
  readonly #divided: StatementSync;
  readonly #keepFrom: StatementSync;
  readonly #rowsFrom: StatementSync;
  readonly #events: StatementSync;
  readonly #rows: readonly StatementSync[];
  readonly #memos: StatementSync;
  readonly #last: readonly StatementSync[];

  constructor(database: Database) {
    const sql = (text: string): StatementSync => database.prepare(text);
    this.#standing = sql(`
      SELECT number, kept_from AS kept, ${LOG_END} AS head,
        COALESCE((SELECT seq FROM snapshot WHERE session = number), 0) + 1 AS snapshot,
        (SELECT MIN(accepted_at) FROM run WHERE session = number AND phase <> 'settled') AS run,
        (SELECT MIN(requested_at) FROM process WHERE session = number AND outcome IS NULL) AS process
      FROM session WHERE id = ?`);
    this.#divided = sql(`SELECT MIN(accepted_at) AS first FROM run
      WHERE session = $session AND accepted_at >= $kept AND accepted_at < $cut AND settled_at >= $cut`);
    this.#keepFrom = sql("UPDATE session SET kept_from = ? WHERE number = ?");
    this.#rowsFrom = sql(
      `SELECT accepted_at AS first FROM run WHERE session = ?
        ORDER BY accepted_at DESC LIMIT 1 OFFSET ${RUN_ROWS_KEPT - 1}`,
    );
    const some = (table: string, where: string): StatementSync =>
      sql(`DELETE FROM ${table} WHERE rowid IN
        (SELECT rowid FROM ${table} WHERE session = $session AND ${where} LIMIT ${REMOVE_ROWS_MAX})`);
    this.#events = some("event", "seq < $before AND seq + count <= $before");
    this.#rows = [
      some("call", "settled_at < $before"),
      some("run", "accepted_at < $before AND settled_at < $before"),
      some("process", "requested_at < $before AND settled_at < $before"),
    ];
    this.#memos = sql(`DELETE FROM memo WHERE rowid IN
      (SELECT rowid FROM memo WHERE session = ? LIMIT ${REMOVE_ROWS_MAX})`);
    this.#last = [sql("DELETE FROM snapshot WHERE session = ?"), sql("DELETE FROM session WHERE number = ?")];
  }

  trim(session: SessionId, before: Seq): StoreTrimmed {
    const found = this.#found(session);
    if (found === undefined) return { kept: 1, removed: 0, more: false };
    const [cut, limit] = this.#cut(found, Math.min(before, found.head + 1));
    const kept = Math.max(found.kept, cut);
    const removed = kept - found.kept;
    if (removed > 0) this.#keepFrom.run(kept, found.number);
    const more = this.#forget(found.number, kept, Math.min(kept, this.#oldestRow(found.number)));
    return { kept, removed, ...(limit === undefined || kept >= before ? {} : { limit }), more };
  }

  remove(session: SessionId): "more" | "done" | "absent" | "busy" {
    const found = this.#found(session);
    if (found === undefined) return "absent";
    const { number, head } = found;
    if (found.run !== null || found.process !== null) return "busy";
    // Without its snapshot, a log that has lost its beginning could not be loaded if this deletion is interrupted.
    if (found.snapshot <= head) return "busy";
    if (found.kept <= head) this.#keepFrom.run(head + 1, number);
    if (this.#forget(number, head + 1, head + 1)) return "more";
    // Memos are stored under the session's id, and would count for the next session with that id.
    if (Number(this.#memos.run(session).changes) === REMOVE_ROWS_MAX) return "more";
    for (const statement of this.#last) statement.run(number);
    return "done";
  }

  /** The latest position up to `before` at which the log may be cut, and what prevents a later one. */
  #cut({ number, kept, ...found }: Standing, before: Seq): Bound {
    let [cut, limit]: Bound = [before, undefined];
    const bounds: readonly (readonly [Seq | null, StoreTrimmed["limit"]])[] = [
      [found.snapshot, "snapshot"],
      [found.run, "run"],
      [found.process, "process"],
    ];
    for (const [at, name] of bounds) if (at !== null && at < cut) [cut, limit] = [at, name];
    for (;;) {
      const first = this.#divided.get({ session: number, kept, cut })?.first ?? null;
      if (first === null) return [cut, limit];
      [cut, limit] = [Number(first), "run"];
    }
  }

  /** Removes the next rows that nothing refers to. True: there may be more. */
  #forget(number: number, kept: Seq, rowsFrom: Seq): boolean {
    if (Number(this.#events.run({ session: number, before: kept }).changes) === REMOVE_ROWS_MAX) return true;
    return this.#rows.some(
      (rows) => Number(rows.run({ session: number, before: rowsFrom }).changes) === REMOVE_ROWS_MAX,
    );
  }

  /** The position of the oldest run whose row is kept. */
  #oldestRow(number: number): Seq {
    return Number(this.#rowsFrom.get(number)?.first ?? 0);
  }

  #found(session: SessionId): Standing | undefined {
    return this.#standing.get(session) as unknown as Standing | undefined;
  }
}
