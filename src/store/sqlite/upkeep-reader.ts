// The queries of retention: age and size of sessions, a limited number of rows at a time.
import { statSync } from "node:fs";
import type { StatementSync } from "node:sqlite";
import type { Seq, SessionId } from "../../core/model/ids.ts";
import type { StoreUsage, Surveyed } from "../../core/model/upkeep.ts";
import { type Database, pagesOf } from "./database.ts";
import { LOG_END } from "./log-end.ts";

export interface UpkeepVerbs {
  survey: {
    readonly ask: { readonly after: number; readonly limit: number };
    readonly answer: readonly Surveyed[];
  };
  within: {
    readonly ask: { readonly session: SessionId; readonly at?: number; readonly bytes?: number };
    readonly answer: Seq;
  };
  usage: { readonly ask: null; readonly answer: StoreUsage };
}

type Answers = { readonly [V in keyof UpkeepVerbs]: (ask: UpkeepVerbs[V]["ask"]) => UpkeepVerbs[V]["answer"] };

interface Row {
  readonly seq: Seq;
  readonly count: number;
  readonly at: number;
  readonly bytes: number;
}

export function upkeepQueries(database: Database, file: string): Answers {
  const sql = (text: string): StatementSync => database.prepare(text);
  const survey = sql(`SELECT id, number AS cursor, kept_from AS kept, ${LOG_END} AS head, COALESCE(
      (SELECT at FROM event WHERE event.session = session.number ORDER BY seq DESC LIMIT 1), created_at) AS at,
      COALESCE((SELECT at FROM event WHERE event.session = session.number AND seq + count > kept_from
        ORDER BY seq LIMIT 1), created_at) AS since
    FROM session WHERE number > ? ORDER BY number LIMIT ?`);
  const standing = sql(`SELECT number, kept_from AS kept, ${LOG_END} AS head FROM session WHERE id = ?`);
  const rows = (order: "ASC" | "DESC"): StatementSync =>
    sql(`SELECT seq, count, at, octet_length(data) AS bytes FROM event
      WHERE session = ? AND seq + count > ? ORDER BY seq ${order}`);
  const oldest = rows("ASC");
  const newest = rows("DESC");

  const young = (number: number, kept: Seq, head: Seq, at: number): Seq => {
    for (const row of oldest.iterate(number, kept) as Iterable<unknown> as Iterable<Row>) {
      if (row.at >= at) return Math.max(kept, row.seq);
    }
    return head + 1;
  };
  const small = (number: number, kept: Seq, head: Seq, bytes: number): Seq => {
    let [sum, from] = [0, head + 1];
    for (const row of newest.iterate(number, kept) as Iterable<unknown> as Iterable<Row>) {
      sum += row.bytes;
      if (sum > bytes) return from;
      from = Math.max(kept, row.seq);
    }
    return kept;
  };

  return {
    survey: ({ after, limit }) => survey.all(after, limit) as unknown as Surveyed[],
    within: ({ session, at, bytes }) => {
      const found = standing.get(session);
      if (found === undefined) return 1;
      const [number, kept, head] = [Number(found.number), Number(found.kept), Number(found.head)];
      const byAge = at === undefined ? kept : young(number, kept, head, at);
      return bytes === undefined ? byAge : Math.max(byAge, small(number, kept, head, bytes));
    },
    usage: () => {
      const { pageBytes, pages, freePages } = pagesOf(database);
      const log = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
      return { bytes: pages * pageBytes + log, freeBytes: freePages * pageBytes };
    },
  };
}
