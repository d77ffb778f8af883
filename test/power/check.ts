// Holds what is in a file against what was told.
import type { Seq, SessionId } from "../../src/core/model/ids.ts";
import { verify } from "../../src/core/read/verify.ts";
import type { Database } from "../../src/store/sqlite/database.ts";
import { eventsOf } from "../../src/store/sqlite/decode.ts";
import { type EventRow, queries } from "../../src/store/sqlite/log-reader.ts";
import type { Sent, Told } from "./told.ts";

export interface Finding {
  /**
   * `lost`: what was answered as recorded is not there. `torn`: half of something is there, or rows that do not follow
   * from the log. `corrupt`: the file cannot be used. `wrong`: anything else that may not be.
   */
  readonly kind: "lost" | "torn" | "corrupt" | "wrong";
  readonly message: string;
}

const PAGE_EVENTS = 500;
const END = 1_000_000_000;

/** What is wrong. If nothing is, everything that was in doubt is decided by what was found, and counts as told. */
export function check(database: Database, told: Told): readonly Finding[] {
  const read = queries(database).read;
  const logs = new Map<SessionId, Log>();
  for (const session of new Set([...told.sessions.keys(), ...told.doubts.map(({ batch }) => batch.session)])) {
    logs.set(session, logOf(read, session));
  }
  const findings = [...logs].flatMap(([session, log]) => checkLog(session, log, told));
  if (findings.length > 0) return findings;
  const present = told.doubts.filter((sent) => isThere(logs.get(sent.batch.session), sent));
  findings.push(...halfGroups(told.doubts, present));
  for (const sent of present) told.confirm(sent);
  for (const sent of told.doubts) {
    if (!present.includes(sent)) told.refused.push({ sent, because: "it was not there after an earlier cut" });
  }
  told.doubts = [];
  settleTrim(told, logs);
  if (findings.length > 0) return findings;
  return [...checkRows(database, told), ...strangers(database, told)];
}

interface Log {
  readonly keptFrom: Seq;
  readonly rows: readonly EventRow[];
}

function logOf(read: ReturnType<typeof queries>["read"], session: SessionId): Log {
  const rows: EventRow[] = [];
  let keptFrom = 1;
  let after = 0;
  for (;;) {
    const page = read({ session, after, limit: PAGE_EVENTS });
    if (page === null) return { keptFrom, rows };
    keptFrom = page.keptFrom;
    const fresh = page.rows.filter(({ seq }) => rows.length === 0 || seq > (rows.at(-1)?.seq ?? 0));
    const last = fresh.at(-1);
    if (last === undefined) return { keptFrom, rows };
    rows.push(...fresh);
    after = last.seq + last.count - 1;
  }
}

function checkLog(session: SessionId, { keptFrom, rows }: Log, told: Told): Finding[] {
  const known = told.known(session);
  const trimmed = told.trimDoubt?.session === session && keptFrom > known.keptFrom && keptFrom <= told.trimDoubt.before;
  if (keptFrom !== known.keptFrom && !trimmed) {
    return [{ kind: "lost", message: `${session} is kept from ${keptFrom}, not from ${known.keptFrom}` }];
  }
  const doubts = told.doubts.filter(({ batch }) => batch.session === session);
  const expected = known.sent.filter(({ packed }) => packed.expected + packed.count >= keptFrom && packed.count > 0);
  const found: Finding[] = [];
  for (const [index, { packed }] of expected.entries()) {
    const row = rows[index];
    if (row === undefined) {
      const missing = expected.length - index;
      found.push({ kind: "lost", message: `${session} has lost ${missing} appends from ${packed.expected + 1} on` });
      return found;
    }
    if (!isSame(row, packed)) found.push({ kind: "torn", message: `${session} has another append at ${row.seq}` });
  }
  for (const [index, row] of rows.slice(expected.length).entries()) {
    const sent = doubts[index];
    if (sent === undefined || !isSame(row, sent.packed)) {
      const refused = told.refused.find((one) => one.sent.batch.session === session && isSame(row, one.sent.packed));
      const what = refused === undefined ? "that nobody sent there" : `although ${refused.because}`;
      found.push({ kind: "torn", message: `${session} has something at ${row.seq} ${what}` });
    }
  }
  if (found.length > 0) return found;
  const first = rows[0]?.seq ?? 1;
  const broken = verify(eventsOf(rows, Math.max(keptFrom, first) - 1, END));
  return broken.map(({ guarantee, seq, message }) => ({
    kind: "torn",
    message: `${guarantee} ${session} at ${seq}: ${message}`,
  }));
}

const isSame = (row: EventRow, { expected, count, at, data }: Sent["packed"]): boolean =>
  row.seq === expected + 1 && row.count === count && row.at === at && row.data === data;

const isThere = (log: Log | undefined, { packed }: Sent): boolean =>
  log?.rows.some((row) => isSame(row, packed)) === true;

/** Those of one group are one transaction: all of them, or none. */
function halfGroups(doubts: readonly Sent[], present: readonly Sent[]): readonly Finding[] {
  const groups = new Set(present.map(({ group }) => group));
  const half = doubts.filter((sent) => groups.has(sent.group) && !present.includes(sent));
  return half.map(({ batch }) => ({
    kind: "torn",
    message: `${batch.session}: of one group some is there, and not the append at ${batch.expected + 1}`,
  }));
}

function settleTrim(told: Told, logs: ReadonlyMap<SessionId, Log>): void {
  if (told.trimDoubt === undefined) return;
  const { session } = told.trimDoubt;
  told.known(session).keptFrom = logs.get(session)?.keptFrom ?? 1;
  told.trimDoubt = undefined;
}

/** The rows that follow from the log: no more, no fewer, and as the log has them. */
function checkRows(database: Database, told: Told): readonly Finding[] {
  const { book } = told;
  const expected = {
    session: [...book.sessions].map(([id, { createdAt, title, cwd, phase }]) => ({ id, createdAt, title, cwd, phase })),
    run: [...book.runs.values()].map((run) => ({ ...run })),
    call: [...book.calls.values()].map((call) => ({ ...call })),
    process: [...book.processes.values()].map((one) => ({ ...one })),
    snapshot: [...book.sessions.keys()].flatMap((session) => {
      const snapshot = told.snapshot(session);
      return snapshot === undefined ? [] : [{ id: session, ...snapshot }];
    }),
  };
  return Object.entries(expected).flatMap(([table, rows]): readonly Finding[] => {
    const stored = database.prepare(ROWS[table] ?? "").all();
    const [is, should] = [canonical(stored), canonical(rows)];
    if (is === should) return [];
    return [{ kind: "torn", message: `the rows of ${table} do not follow from the log: ${is} is not ${should}` }];
  });
}

const JOIN = "JOIN session ON session.number =";
const ROWS: Readonly<Record<string, string>> = {
  session: "SELECT id, created_at AS createdAt, title, cwd, phase FROM session",
  run: `SELECT run.id, session.id AS session, run.phase, accepted_at AS acceptedAt, settled_at AS settledAt, key,
    content, outcome FROM run ${JOIN} run.session`,
  call: `SELECT call.id, session.id AS session, settled_at AS settledAt, outcome FROM call ${JOIN} call.session`,
  process: `SELECT process.id, session.id AS session, requested_at AS requestedAt, settled_at AS settledAt, outcome
    FROM process ${JOIN} process.session`,
  snapshot: `SELECT session.id, seq, data FROM snapshot ${JOIN} snapshot.session`,
};

/** The same text for the same rows, in whatever order they and their columns come. */
function canonical(rows: readonly object[]): string {
  const lines = rows.map((row) =>
    JSON.stringify(
      Object.entries(row)
        .filter(([, value]) => value !== null && value !== undefined)
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    ),
  );
  return lines.sort().join("\n");
}

/** Appends of sessions that nobody has heard of. */
function strangers(database: Database, told: Told): readonly Finding[] {
  const stored = Number(database.prepare("SELECT COUNT(*) AS n FROM event").get()?.n);
  let expected = 0;
  for (const { sent, keptFrom } of told.sessions.values()) {
    expected += sent.filter(({ packed }) => packed.expected + packed.count >= keptFrom && packed.count > 0).length;
  }
  if (stored === expected) return [];
  return [{ kind: "torn", message: `there are ${stored} appends in all, and not ${expected}` }];
}
