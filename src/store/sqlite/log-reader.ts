// The queries, each on one consistent state of the file. They run in the reader's thread, so a large page delays no
// commit.

import type { StatementSync } from "node:sqlite";
import { PAGE_CHARS_MAX } from "../../core/limits.ts";
import type { CallId, ProcessId, RunId, Seq, SessionId } from "../../core/model/ids.ts";
import type { Memo } from "../../core/model/memo.ts";
import type { IdsAsked, IdsFound, SessionsAsked } from "../../core/model/rows.ts";
import { damaged, requireSum, sumOf } from "./checksum.ts";
import type { Database } from "./database.ts";
import { idQueries } from "./id-reader.ts";
import { LOG_END, UPDATED_AT } from "./log-end.ts";
import { memoQuery } from "./memo-table.ts";
import { type UpkeepVerbs, upkeepQueries } from "./upkeep-reader.ts";

/** One append. The main thread decodes it, because text is transferred between threads faster than objects. */
export interface EventRow {
  readonly seq: Seq;
  readonly count: number;
  readonly at: number;
  readonly data: string;
}

export interface StoredRun {
  readonly id: RunId;
  readonly session: SessionId;
  readonly phase: "waiting" | "live" | "settled";
  readonly acceptedAt: Seq;
  readonly settledAt: Seq | null;
  readonly key: string | null;
  readonly content: string | null;
  readonly outcome: string | null;
}

export interface StoredCall {
  readonly id: CallId;
  readonly session: SessionId;
  readonly settledAt: Seq;
  readonly outcome: string;
}

export interface StoredProcess {
  readonly id: ProcessId;
  readonly session: SessionId;
  readonly requestedAt: Seq;
  readonly settledAt: Seq | null;
  readonly outcome: string | null;
}

export interface StoredSession {
  readonly id: SessionId;
  readonly head: Seq;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly title: string | null;
  readonly cwd: string | null;
  readonly phase: "open" | "closed";
}

/** The requests to the reader, and its responses. */
export interface ReaderVerbs extends UpkeepVerbs {
  load: {
    readonly ask: SessionId;
    readonly answer: {
      readonly head: Seq;
      readonly snapshot: string | null;
      readonly after: Seq;
      readonly rows: readonly EventRow[];
      readonly memos: readonly Memo[];
    } | null;
  };
  read: {
    readonly ask: { readonly session: SessionId; readonly after: Seq; readonly limit: number };
    readonly answer: { readonly keptFrom: Seq; readonly rows: readonly EventRow[] } | null;
  };
  head: { readonly ask: SessionId; readonly answer: Seq };
  run: { readonly ask: RunId; readonly answer: StoredRun | null };
  key: { readonly ask: { readonly session: SessionId; readonly key: string }; readonly answer: StoredRun | null };
  call: { readonly ask: CallId; readonly answer: StoredCall | null };
  process: { readonly ask: ProcessId; readonly answer: StoredProcess | null };
  processes: {
    readonly ask: { readonly session: SessionId; readonly before: Seq; readonly limit: number };
    readonly answer: readonly StoredProcess[];
  };
  runs: {
    readonly ask: { readonly session: SessionId; readonly before: Seq; readonly limit: number };
    readonly answer: readonly StoredRun[];
  };
  session: { readonly ask: SessionId; readonly answer: StoredSession | null };
  sessions: {
    readonly ask: SessionsAsked;
    readonly answer: readonly StoredSession[];
  };
  ids: { readonly ask: IdsAsked; readonly answer: IdsFound };
  /** Sessions with runs or processes that have no outcome, by number, for paging. */
  open: {
    readonly ask: { readonly after: number; readonly limit: number };
    readonly answer: readonly { readonly number: number; readonly id: SessionId }[];
  };
}

type Answers = { readonly [V in keyof ReaderVerbs]: (ask: ReaderVerbs[V]["ask"]) => ReaderVerbs[V]["answer"] };

/** The queries on one connection. */
export function queries(database: Database, file = ""): Answers {
  const sql = (text: string): StatementSync => database.prepare(text);
  const run = `SELECT run.id, session.id AS session, run.phase, accepted_at AS acceptedAt, settled_at AS settledAt,
    key, content, outcome, run.sum, outcome_sum AS outcomeSum FROM run JOIN session ON session.number = run.session`;
  const process = `SELECT process.id, session.id AS session, requested_at AS requestedAt, settled_at AS settledAt,
    outcome, outcome_sum AS outcomeSum FROM process JOIN session ON session.number = process.session`;
  const standing = sql(`SELECT number, kept_from AS keptFrom, ${LOG_END} AS head FROM session WHERE id = ?`);
  const snapshot = sql("SELECT seq, data, sum FROM snapshot WHERE session = ?");
  const rows = sql(`SELECT seq, count, at, data, sum FROM event WHERE session = $session
    AND seq >= COALESCE((SELECT MAX(seq) FROM event WHERE session = $session AND seq <= $from), 0) ORDER BY seq`);
  const memosOf = memoQuery(database);
  const runById = sql(`${run} WHERE run.id = ?`);
  const runByKey = sql(`${run} WHERE session.id = ? AND key = ?`);
  const call = sql(`SELECT call.id, session.id AS session, settled_at AS settledAt, outcome,
    outcome_sum AS outcomeSum FROM call JOIN session ON session.number = call.session WHERE call.id = ?`);
  const processById = sql(`${process} WHERE process.id = ?`);
  const processes = sql(`${process} WHERE process.session = (SELECT number FROM session WHERE id = ?)
    AND requested_at < ? ORDER BY requested_at DESC LIMIT ?`);
  const runs = sql(`${run} WHERE run.session = (SELECT number FROM session WHERE id = ?) AND accepted_at < ?
    ORDER BY accepted_at DESC LIMIT ?`);
  // Both halves are read in index order and merged: no more rows are read than the page needs.
  const open = sql(`SELECT open.number, session.id FROM (
      SELECT session AS number FROM run WHERE phase <> 'settled' AND session > $after
      UNION SELECT session FROM process WHERE outcome IS NULL AND session > $after
      ORDER BY number LIMIT $limit
    ) AS open JOIN session ON session.number = open.number ORDER BY open.number`);

  return {
    load: (session) => {
      const found = standing.get(session);
      const memos = memosOf(session);
      if (found === undefined)
        return memos.length === 0 ? null : { head: 0, snapshot: null, after: 0, rows: [], memos };
      const log = { session, number: Number(found.number), rows };
      const kept = snapshot.get(log.number);
      const after = kept === undefined ? 0 : Number(kept.seq);
      const head = Number(found.head);
      const lane = kept === undefined ? null : String(kept.data);
      if (lane !== null) requireSum(checksumIn(kept), sumOf([session, after], lane), `the snapshot of ${session}`);
      return { head, snapshot: lane, after, rows: allRows(log, after, head), memos };
    },
    read: ({ session, after, limit }) => {
      const found = standing.get(session);
      if (found === undefined) return null;
      const keptFrom = Number(found.keptFrom);
      const log = { session, number: Number(found.number), rows };
      return { keptFrom, rows: pageOf(log, { after: Math.max(after, keptFrom - 1), limit }) };
    },
    head: (session) => Number(standing.get(session)?.head ?? 0),
    run: (id) => orNull(runById.get(id), storedRun),
    key: ({ session, key }) => orNull(runByKey.get(session, key), storedRun),
    call: (id) => orNull(call.get(id), storedEnd<StoredCall>),
    process: (id) => orNull(processById.get(id), storedEnd<StoredProcess>),
    processes: ({ session, before, limit }) =>
      processes.all(session, before, limit).map((found) => storedEnd<StoredProcess>(found)),
    runs: ({ session, before, limit }) => runs.all(session, before, limit).map(storedRun),
    ...sessionQueries(sql),
    ids: idQueries(database),
    ...upkeepQueries(database, file),
    open: ({ after, limit }) => open.all({ after, limit }) as unknown as { number: number; id: SessionId }[],
  };
}

/** Sessions, by id and in pages. */
function sessionQueries(sql: (text: string) => StatementSync): Pick<Answers, "session" | "sessions"> {
  const times = `created_at AS createdAt, ${UPDATED_AT} AS updatedAt`;
  const session = `SELECT id, ${LOG_END} AS head, ${times}, title, cwd, phase, sum FROM session`;
  const afterOne = "number > CASE WHEN $from IS NULL THEN 0 ELSE (SELECT number FROM session WHERE id = $from) END";
  const beforeOne = `number < CASE WHEN $from IS NULL THEN ${Number.MAX_SAFE_INTEGER}
    ELSE (SELECT number FROM session WHERE id = $from) END`;
  const sessionById = sql(`${session} WHERE id = ?`);
  const oldest = {
    all: sql(`${session} WHERE ${afterOne} ORDER BY number LIMIT $limit`),
    tenant: sql(`${session} WHERE tenant = $tenant AND ${afterOne} ORDER BY number LIMIT $limit`),
  };
  const newest = {
    all: sql(`${session} WHERE ${beforeOne} ORDER BY number DESC LIMIT $limit`),
    tenant: sql(`${session} WHERE tenant = $tenant AND ${beforeOne} ORDER BY number DESC LIMIT $limit`),
  };
  return {
    session: (id) => orNull(sessionById.get(id), storedSession),
    sessions: (query) => {
      const { limit, tenant } = query;
      const [ordered, cursor] = query.order === "newest" ? [newest, query.before] : [oldest, query.after];
      const from = cursor ?? null;
      const page = { from, limit };
      const found = tenant === undefined ? ordered.all.all(page) : ordered.tenant.all({ ...page, tenant });
      return found.map(storedSession);
    },
  };
}

const orNull = <A>(found: unknown, stored: (found: unknown) => A): A | null =>
  found === undefined ? null : stored(found);

const checksumIn = (found: unknown): number | null => (found as { readonly sum: number | null }).sum;

/** A row without its checksums, after they were verified. */
function storedRun(found: unknown): StoredRun {
  const { sum, ...run } = found as StoredRun & { readonly sum: number | null };
  requireSum(sum, sumOf([run.id, run.acceptedAt, run.key, run.content]), run.id);
  return storedEnd<StoredRun>(run);
}

function storedEnd<R extends StoredRun | StoredCall | StoredProcess>(found: unknown): R {
  const { outcomeSum, ...row } = found as R & { readonly outcomeSum: number | null };
  requireSum(outcomeSum, sumOf([row.id, row.settledAt], row.outcome), `the outcome of ${row.id}`);
  return row as unknown as R;
}

function storedSession(found: unknown): StoredSession {
  const { sum, ...session } = found as StoredSession & { readonly sum: number | null };
  requireSum(sum, sumOf([session.id, session.createdAt, session.title, session.cwd]), session.id);
  return session;
}

/** The appends of one session, by position. */
interface Log {
  readonly session: SessionId;
  readonly number: number;
  readonly rows: StatementSync;
}

/**
 * Appends from a position on, until there are enough events or enough text. Each must start where the previous one
 * ends.
 */
function pageOf(log: Log, { after, limit }: { after: Seq; limit: number }): EventRow[] {
  const found: EventRow[] = [];
  let last = after;
  let characters = 0;
  for (const row of log.rows.iterate({ session: log.number, from: after + 1 })) {
    const { sum, ...one } = row as unknown as EventRow & { readonly sum: number | null };
    if (last >= after + limit || characters > PAGE_CHARS_MAX) break;
    if (found.length === 0 ? one.seq > after + 1 : one.seq !== last + 1) {
      throw damaged(`${log.session} has nothing between ${last} and ${one.seq}`);
    }
    const actual = sumOf([log.session, one.seq, one.count, one.at], one.data);
    requireSum(sum, actual, `${log.session} at ${one.seq}`);
    found.push(one);
    characters += one.data.length;
    last = one.seq + one.count - 1;
  }
  return found;
}

/** Everything from a position to the head. Snapshots limit how much a load folds. */
function allRows(log: Log, after: Seq, head: Seq): EventRow[] {
  const found: EventRow[] = [];
  for (let last = after; last < head; ) {
    const page = pageOf(log, { after: last, limit: head - last });
    const end = page.at(-1);
    if (end === undefined) break;
    found.push(...page);
    last = end.seq + end.count - 1;
  }
  return found;
}
