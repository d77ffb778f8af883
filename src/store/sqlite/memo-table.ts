// The memos of all sessions, in the writer's transactions.
//
// Invariants
// 1. While the store is open, memos age by a monotonic clock: setting the wall clock forward expires nothing. Between
//    two openings there is only the wall clock.
import type { StatementSync } from "node:sqlite";
import { MEMO_MS, MEMOS_PER_ACTOR_MAX } from "../../core/limits.ts";
import { type SessionId, tenantOf } from "../../core/model/ids.ts";
import { type Memo, memoName } from "../../core/model/memo.ts";
import { requireSum, sumOf } from "./checksum.ts";
import type { Database } from "./database.ts";
import type { PackedBatch } from "./thread/message.ts";

interface Row {
  readonly rowid: number;
  readonly name: string;
  readonly at: number;
  readonly data: string;
  readonly sum: number;
}

const COLUMNS = "SELECT rowid, name, at, data, sum FROM memo WHERE session = ?";

export class MemoTable {
  readonly #named: StatementSync;
  readonly #count: StatementSync;
  readonly #keep: StatementSync;
  readonly #drop: StatementSync;
  readonly #expire: StatementSync;
  readonly #newest: StatementSync;
  /** Added to the monotonic clock: the wall clock at the first use, and never before the newest memo. */
  #offset: number | undefined;

  constructor(database: Database) {
    const sql = (text: string): StatementSync => database.prepare(text);
    this.#named = sql(`${COLUMNS} AND name = ? AND at > ?`);
    this.#count = sql("SELECT COUNT(*) AS count FROM memo WHERE actor = ? AND at > ?");
    this.#keep = sql(
      `INSERT INTO memo (session, name, actor, at, data, sum) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET at = excluded.at, data = excluded.data, sum = excluded.sum`,
    );
    this.#drop = sql("DELETE FROM memo WHERE session = ? AND name = ?");
    this.#expire = sql("DELETE FROM memo WHERE at <= ?");
    this.#newest = sql("SELECT MAX(at) AS at FROM memo");
  }

  /** The memos that the batch's decision did not know of. */
  recalled({ session, unless, ...sent }: PackedBatch): readonly Memo[] {
    if (unless.length === 0) return [];
    const expired = this.#time(sent) - MEMO_MS;
    return unless.flatMap((name) => {
      const found = this.#named.get(session, name, expired);
      return found === undefined ? [] : [memoOf(session, found)];
    });
  }

  /** The users who would exceed their limit of prompt memos. */
  crowded({ session, memos, ...sent }: PackedBatch): readonly string[] {
    if (memos.length === 0) return [];
    const expired = this.#time(sent) - MEMO_MS;
    const added = new Map<string, number>();
    for (const change of memos) {
      if (change.type !== "keep" || change.memo.kind !== "prompt") continue;
      if (this.#named.get(session, memoName(change.memo), expired) !== undefined) continue;
      added.set(change.memo.actor, (added.get(change.memo.actor) ?? 0) + 1);
    }
    if (added.size === 0) return [];
    return [...added].flatMap(([actor, more]) =>
      Number(this.#count.get(userOf(session, actor), expired)?.count) + more > MEMOS_PER_ACTOR_MAX ? [actor] : [],
    );
  }

  write({ session, memos, ...sent }: PackedBatch): void {
    if (memos.length === 0) return;
    const at = this.#time(sent);
    for (const change of memos) {
      if (change.type === "drop") {
        this.#drop.run(session, change.name);
        continue;
      }
      const { memo } = change;
      const [name, data] = [memoName(memo), JSON.stringify(memo)];
      const actor = memo.kind === "prompt" ? userOf(session, memo.actor) : null;
      this.#keep.run(session, name, actor, at, data, sumOf([session, name, at], data));
    }
    this.#expire.run(at - MEMO_MS);
  }

  #time({ at, elapsed }: Pick<PackedBatch, "at" | "elapsed">): number {
    this.#offset ??= Math.max(Number(this.#newest.get()?.at ?? 0), at) - elapsed;
    return Math.trunc(this.#offset + elapsed);
  }
}

/** Users of two tenants may have the same name. */
const userOf = (session: SessionId, actor: string): string => JSON.stringify([tenantOf(session) ?? null, actor]);

/** All memos of a session, oldest first. */
export function memoQuery(database: Database): (session: SessionId) => readonly Memo[] {
  const all = database.prepare(COLUMNS);
  return (session) => {
    const rows = all.all(session) as unknown as Row[];
    return rows.sort((one, other) => one.rowid - other.rowid).map((row) => memoOf(session, row));
  };
}

function memoOf(session: SessionId, found: unknown): Memo {
  const { name, at, data, sum } = found as Row;
  requireSum(sum, sumOf([session, name, at], data), `a memo of ${session}`);
  return JSON.parse(data) as Memo;
}
