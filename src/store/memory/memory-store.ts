// The reference store: the simplest implementation of the contract, used by tests and the simulator. It persists
// nothing.
//
// Invariants
// 1. An append takes effect, or fails, before `append` returns its promise. So a simulation determines the order of
//    appends by the order of its calls.
// 2. Stores text, not the caller's objects, so that reads return what a database would return.
import { ControlError } from "../../core/errors.ts";
import { PAGE_CHARS_MAX } from "../../core/limits.ts";
import type { Recorded } from "../../core/model/event.ts";
import {
  type CallId,
  type ProcessId,
  type RunId,
  type Seq,
  type SessionId,
  tenantOf,
  type WorkerId,
} from "../../core/model/ids.ts";
import {
  type CallRow,
  type IdsAsked,
  type IdsFound,
  type KeyedRun,
  keysOf,
  type ProcessRow,
  type RunRow,
  rowChange,
  type SessionsAsked,
} from "../../core/model/rows.ts";
import type { StoreTrimmed, Upkeep } from "../../core/model/upkeep.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Appended, Batch, Claim, Loaded, Page, SessionRow, Store } from "../../ports/store.ts";
import { decodeEvents, decodeOutcome, encodeEvents } from "../../wire/event.ts";
import { decodeLane, encodeLane } from "../../wire/lane.ts";
import { Growth } from "../growth.ts";
import { Leases } from "../leases.ts";
import { Memos } from "./memos.ts";
import { Book, Draft, type StoredProcess, type StoredRun } from "./projection.ts";
import { cutOf, forgetRows, forgetSession } from "./removal.ts";

/** One append. */
interface Row {
  readonly first: Seq;
  readonly count: number;
  readonly at: number;
  readonly data: string;
}

interface Log {
  readonly rows: Row[];
  head: Seq;
  /** The first position that is kept. */
  keptFrom: Seq;
  snapshot: { readonly seq: Seq; readonly data: string } | undefined;
}

export class MemoryStore implements Store {
  readonly #book = new Book();
  readonly #logs = new Map<SessionId, Log>();
  readonly #memos: Memos;
  readonly #growth = new Growth();
  readonly #leases: Leases;
  #epoch = 0;
  #closed = false;

  constructor({ clock }: { readonly clock: Clock }) {
    this.#memos = new Memos(clock);
    this.#leases = new Leases(clock);
  }

  async append(batch: Batch): Promise<Appended> {
    this.#requireOpen();
    const { session, expected, events, at, snapshot } = batch;
    if (this.#leases.fences(session, batch.epoch)) return { kind: "fenced" };
    const log = this.#logs.get(session);
    const head = log?.head ?? 0;
    if (head !== expected) return { kind: "moved", head };
    const taken = this.#taken(batch);
    if (taken.length > 0) return { kind: "taken", runs: taken };
    const recalled = this.#memos.named(session, batch.unless ?? []);
    if (recalled.length > 0) return { kind: "recalled", memos: recalled };
    const crowded = this.#memos.crowded(batch);
    if (crowded.length > 0) return { kind: "crowded", actors: crowded };

    const data = encodeEvents(events);
    const lane = snapshot === undefined ? undefined : encodeLane(snapshot, head + events.length);
    const draft = new Draft(this.#book, session);
    events.forEach((event, index) => {
      const change = rowChange(event, head + index + 1);
      if (change !== undefined) draft.apply(change, at);
    });
    this.#memos.write(batch);
    if (log === undefined && events.length === 0) return { kind: "appended", head };
    draft.keep();
    this.#write(log ?? this.#begin(session), { first: head + 1, count: events.length, at, data }, lane);
    this.#growth.note(session, head + events.length);
    return { kind: "appended", head: head + events.length };
  }

  #taken({ session, events, memos }: Batch): readonly KeyedRun[] {
    const keys = this.#book.sessions.get(session)?.keys;
    return keysOf(events, memos).flatMap((key): readonly KeyedRun[] => {
      const id = keys?.get(key);
      const run = id === undefined ? undefined : this.#book.runs.get(id);
      if (run === undefined) return [];
      return [{ key, runId: run.id, acceptedAt: run.acceptedAt, content: run.content }];
    });
  }

  async load(session: SessionId): Promise<Loaded | undefined> {
    this.#requireOpen();
    const log = this.#logs.get(session);
    const memos = this.#memos.of(session);
    if (log === undefined) return memos.length === 0 ? undefined : { snapshot: undefined, events: [], head: 0, memos };
    const snapshot = log.snapshot === undefined ? undefined : decodeLane(log.snapshot.data);
    return { snapshot, events: eventsAfter(log, log.snapshot?.seq ?? 0, EVERYTHING), head: log.head, memos };
  }

  async read(session: SessionId, { after, limit }: { readonly after: Seq; readonly limit: number }): Promise<Page> {
    this.#requireOpen();
    const log = this.#logs.get(session);
    if (log === undefined) return { events: [] };
    const gapTo = log.keptFrom - 1;
    const bounds = { events: limit, chars: PAGE_CHARS_MAX };
    if (after >= gapTo) return { events: eventsAfter(log, after, bounds) };
    return { events: eventsAfter(log, gapTo, bounds), gapTo };
  }

  async grown(session: SessionId, after: Seq, signal: AbortSignal): Promise<void> {
    this.#requireOpen();
    if ((this.#logs.get(session)?.head ?? 0) > after) return;
    await this.#growth.wait(session, after, signal);
  }

  async run(by: RunId | { readonly session: SessionId; readonly key: string }): Promise<RunRow | undefined> {
    this.#requireOpen();
    const id = typeof by === "string" ? by : this.#book.sessions.get(by.session)?.keys.get(by.key);
    const run = id === undefined ? undefined : this.#book.runs.get(id);
    return run === undefined ? undefined : runRow(run);
  }

  async call(id: CallId): Promise<CallRow | undefined> {
    this.#requireOpen();
    const call = this.#book.calls.get(id);
    return call === undefined ? undefined : { ...call, outcome: decodeOutcome(call.outcome) };
  }

  async process(id: ProcessId): Promise<ProcessRow | undefined> {
    this.#requireOpen();
    const found = this.#book.processes.get(id);
    return found === undefined ? undefined : processRow(found);
  }

  async processes(
    session: SessionId,
    { before, limit }: { readonly before: Seq; readonly limit: number },
  ): Promise<readonly ProcessRow[]> {
    this.#requireOpen();
    const found: ProcessRow[] = [];
    const ids = this.#book.sessions.get(session)?.processes ?? [];
    for (let index = ids.length - 1; index >= 0 && found.length < limit; index -= 1) {
      const one = this.#book.processes.get(ids[index] ?? "proc_");
      if (one !== undefined && one.requestedAt < before) found.push(processRow(one));
    }
    return found;
  }

  async runs(
    session: SessionId,
    { before, limit }: { readonly before: Seq; readonly limit: number },
  ): Promise<readonly RunRow[]> {
    this.#requireOpen();
    const found: RunRow[] = [];
    const ids = this.#book.sessions.get(session)?.runs ?? [];
    for (let index = ids.length - 1; index >= 0 && found.length < limit; index -= 1) {
      const run = this.#book.runs.get(ids[index] ?? "run_");
      if (run !== undefined && run.acceptedAt < before) found.push(runRow(run));
    }
    return found;
  }

  async session(id: SessionId): Promise<SessionRow | undefined> {
    this.#requireOpen();
    return this.#sessionRow(id);
  }

  async sessions(query: SessionsAsked): Promise<readonly SessionRow[]> {
    this.#requireOpen();
    const newest = query.order === "newest";
    const ids = newest ? [...this.#book.sessions.keys()].reverse() : this.#book.sessions.keys();
    const cursor = newest ? query.before : query.after;
    const found: SessionRow[] = [];
    let passed = cursor === undefined;
    for (const id of ids) {
      if (found.length >= query.limit) break;
      const row = passed && isWithin(id, query.tenant) ? this.#sessionRow(id) : undefined;
      if (row !== undefined) found.push(row);
      passed ||= id === cursor;
    }
    return found;
  }

  async ids({ prefix, limit, tenant }: IdsAsked): Promise<IdsFound> {
    this.#requireOpen();
    const { sessions, runs, calls, processes } = this.#book;
    const found: string[] = [];
    for (const id of sessions.keys()) if (id.startsWith(prefix) && isWithin(id, tenant)) found.push(id);
    for (const rows of [runs, calls, processes])
      for (const { id, session } of rows.values())
        if (id.startsWith(prefix) && isWithin(session, tenant)) found.push(id);
    return { ids: found.sort().slice(0, limit), complete: found.length <= limit };
  }

  #sessionRow(id: SessionId): SessionRow | undefined {
    const part = this.#book.sessions.get(id);
    if (part === undefined) return undefined;
    const { createdAt, title, cwd, phase } = part;
    const { head = 0, rows = [] } = this.#logs.get(id) ?? {};
    return { id, head, createdAt, updatedAt: rows.at(-1)?.at ?? createdAt, title, cwd, phase };
  }

  async unattended(limit: number): Promise<readonly SessionId[]> {
    this.#requireOpen();
    const found: SessionId[] = [];
    for (const [id, { open, openProcesses }] of this.#book.sessions) {
      if (found.length >= limit) break;
      if (open.size + openProcesses.size > 0 && !this.#leases.attended(id)) found.push(id);
    }
    return found;
  }

  async claim(session: SessionId, worker: WorkerId, ttlMs: number): Promise<Claim> {
    this.#requireOpen();
    return this.#leases.claim(session, worker, ttlMs, () => {
      this.#epoch += 1;
      return this.#epoch;
    });
  }

  async renew(worker: WorkerId, ttlMs: number): Promise<readonly SessionId[]> {
    this.#requireOpen();
    return this.#leases.renew(worker, ttlMs);
  }

  async release(session: SessionId, worker: WorkerId): Promise<void> {
    this.#requireOpen();
    this.#leases.release(session, worker);
  }

  async trim(session: SessionId, before: Seq): Promise<StoreTrimmed> {
    this.#requireOpen();
    const log = this.#logs.get(session);
    const part = this.#book.sessions.get(session);
    if (log === undefined || part === undefined) return { kept: 1, removed: 0, more: false };
    const [cut, limit] = cutOf(this.#book, part, log, Math.min(before, log.head + 1));
    const kept = Math.max(log.keptFrom, cut);
    const removed = kept - log.keptFrom;
    log.keptFrom = kept;
    log.rows.splice(0, rowAfter(log.rows, kept - 1));
    forgetRows(this.#book, part, kept);
    return { kept, removed, ...(limit === undefined || kept >= before ? {} : { limit }), more: false };
  }

  readonly upkeep: Upkeep = {
    remove: async (session) => {
      this.#requireOpen();
      const log = this.#logs.get(session);
      const part = this.#book.sessions.get(session);
      if (log === undefined || part === undefined) return "absent";
      if (part.open.size + part.openProcesses.size > 0 || log.snapshot?.seq !== log.head) return "busy";
      forgetSession(this.#book, session);
      this.#logs.delete(session);
      this.#memos.forgetAll(session);
      this.#growth.note(session, Number.POSITIVE_INFINITY);
      return "done";
    },
    survey: async ({ after, limit }) => {
      this.#requireOpen();
      const all = [...this.#book.sessions].slice(after, after + limit);
      return all.map(([id, { createdAt }], index) => {
        const { keptFrom: kept = 1, head = 0, rows = [] } = this.#logs.get(id) ?? {};
        const [since, at] = [rows[0]?.at ?? createdAt, rows.at(-1)?.at ?? createdAt];
        return { id, cursor: after + index + 1, kept, head, since, at };
      });
    },
    within: async (session, limits) => {
      this.#requireOpen();
      const log = this.#logs.get(session);
      return log === undefined ? 1 : withinOf(log, limits);
    },
    usage: async () => {
      this.#requireOpen();
      let bytes = 0;
      for (const { rows, snapshot } of this.#logs.values()) {
        bytes += snapshot?.data.length ?? 0;
        for (const { data } of rows) bytes += data.length;
      }
      return { bytes, freeBytes: 0 };
    },
    reclaim: async () => 0,
  };

  async close(): Promise<void> {
    this.#closed = true;
    this.#growth.end();
  }

  #begin(session: SessionId): Log {
    const log: Log = { rows: [], head: 0, keptFrom: 1, snapshot: undefined };
    this.#logs.set(session, log);
    return log;
  }

  #write(log: Log, row: Row, lane: string | undefined): void {
    if (row.count > 0) log.rows.push(row);
    log.head += row.count;
    if (lane !== undefined) log.snapshot = { seq: log.head, data: lane };
  }

  #requireOpen(): void {
    if (this.#closed) throw new ControlError("unavailable", "The store is closed.");
  }
}

/** The first position from which all events are recent enough, and together small enough. */
function withinOf(
  { rows, keptFrom, head }: Log,
  { at, bytes }: { readonly at?: number; readonly bytes?: number },
): Seq {
  const young = at === undefined ? keptFrom : (rows.find((row) => row.at >= at)?.first ?? head + 1);
  let from = head + 1;
  for (let [index, left] = [rows.length - 1, bytes ?? Number.POSITIVE_INFINITY]; index >= 0; index -= 1) {
    const row = rows[index];
    left -= row?.data.length ?? 0;
    if (left < 0) break;
    from = row?.first ?? from;
  }
  return Math.max(young, bytes === undefined ? keptFrom : from, keptFrom);
}

interface Bounds {
  readonly events: number;
  readonly chars: number;
}

const isWithin = (session: SessionId, tenant: string | undefined): boolean =>
  tenant === undefined || tenantOf(session) === tenant;

const EVERYTHING: Bounds = { events: Number.POSITIVE_INFINITY, chars: Number.POSITIVE_INFINITY };

/** Decodes only the rows in the requested range, until there are enough events or enough text. */
function eventsAfter(log: Log, after: Seq, bounds: Bounds): readonly Recorded[] {
  const found: Recorded[] = [];
  let chars = 0;
  for (let index = rowAfter(log.rows, after); index < log.rows.length; index += 1) {
    const row = log.rows[index];
    if (row === undefined || found.length >= bounds.events || chars > bounds.chars) break;
    chars += row.data.length;
    for (const event of decodeEvents(row.data, row.first, row.at)) {
      if (event.seq > after && found.length < bounds.events) found.push(event);
    }
  }
  return found;
}

/** The index of the first row that ends after `after`, by binary search. */
function rowAfter(rows: readonly Row[], after: Seq): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const row = rows[middle];
    if (row !== undefined && row.first + row.count - 1 <= after) low = middle + 1;
    else high = middle;
  }
  return low;
}

const processRow = (kept: StoredProcess): ProcessRow => ({
  ...kept,
  outcome: kept.outcome === undefined ? undefined : decodeOutcome(kept.outcome),
});

const runRow = (run: StoredRun): RunRow => ({
  ...run,
  outcome: run.outcome === undefined ? undefined : decodeOutcome(run.outcome),
});
