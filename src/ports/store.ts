// The port for stores: a durable log per session, the rows derived from it, and leases. Types only.
import type { Event, Recorded } from "../core/model/event.ts";
import type { CallId, ProcessId, RunId, Seq, SessionId, WorkerId } from "../core/model/ids.ts";
import type { Lane } from "../core/model/lane.ts";
import type { Memo, MemoBatch } from "../core/model/memo.ts";
import type { CallRow, IdsAsked, IdsFound, ProcessRow, RunRow, SessionsAsked, StoreKnows } from "../core/model/rows.ts";
import type { StoreTrimmed, Upkeep } from "../core/model/upkeep.ts";

/**
 * A durable log per session, its rows, and leases. A store must pass `store/contract/contract.ts`, and holds no policy.
 * It fails with a ControlError: after `store_full`, `store_locked` and `store_corrupt` nothing was written.
 */
export interface Store {
  /** `one`: no other worker can write while it is open, so leases need no renewal or takeover. */
  readonly workers?: "one" | "many";

  /** Adds a batch to one log, atomically. It is durable when this resolves. Concurrent batches share one commit. */
  append(batch: Batch): Promise<Appended>;

  /** The state of a lane: its last snapshot, the events since, its head, its memos. Undefined: there is none. */
  load(session: SessionId): Promise<Loaded | undefined>;

  /** Events after `after`, oldest first: at most `limit`, fewer if they are large. Only an empty page means the end. */
  read(session: SessionId, page: { readonly after: Seq; readonly limit: number }): Promise<Page>;

  /**
   * Resolves once the log is longer than `after`, or `signal` aborts. It may resolve early, but must not miss growth.
   */
  grown(session: SessionId, after: Seq, signal: AbortSignal): Promise<void>;

  /** One run in any phase; by id, or by the key it was accepted with. */
  run(by: RunId | { readonly session: SessionId; readonly key: string }): Promise<RunRow | undefined>;

  /** A call that has settled. */
  call(id: CallId): Promise<CallRow | undefined>;

  /** One process in any phase. */
  process(id: ProcessId): Promise<ProcessRow | undefined>;

  /** Processes of a session, newest first, requested before `before`. */
  processes(session: SessionId, page: { readonly before: Seq; readonly limit: number }): Promise<readonly ProcessRow[]>;

  /** Runs of a session, newest first, accepted before `before`. */
  runs(session: SessionId, page: { readonly before: Seq; readonly limit: number }): Promise<readonly RunRow[]>;

  /** One session. */
  session(id: SessionId): Promise<SessionRow | undefined>;

  /** Sessions in order of creation, or newest first; of one tenant, or of all. */
  sessions(page: SessionsAsked): Promise<readonly SessionRow[]>;

  /** Ids of sessions, runs, settled calls and processes that begin with `prefix`, sorted: an exact match is first. */
  ids(asked: IdsAsked): Promise<IdsFound>;

  /** Sessions with runs or processes that have no outcome, and without a valid lease. */
  unattended(limit: number): Promise<readonly SessionId[]>;

  /** Takes the lease of a lane for `ttlMs`. Claiming a lease that the worker holds renews it. */
  claim(session: SessionId, worker: WorkerId, ttlMs: number): Promise<Claim>;

  /** Renews all leases of a worker. Returns the lost ones: others may drive those sessions, so it must stop them. */
  renew(worker: WorkerId, ttlMs: number): Promise<readonly SessionId[]>;

  /** Releases a lease. */
  release(session: SessionId, worker: WorkerId): Promise<void>;

  /**
   * Removes events before `before`, but never those of runs or processes without an outcome, and never part of a run.
   * Readers get a gap. Does a bounded amount of work: call it again while it returns `more`.
   */
  trim(session: SessionId, before: Seq): Promise<StoreTrimmed>;

  /** Removes data permanently. Without it no session can be deleted, and there is no retention. */
  readonly upkeep?: Upkeep | undefined;

  /** Resolves if a write would succeed now; rejects as an append would. Default: only an append shows it. */
  ready?(): Promise<void>;

  /**
   * Rejects if the stored data was removed or belongs to another program now. Writes nothing; called every few seconds.
   */
  readonly inPlace?: (() => Promise<void>) | undefined;

  /** Rejects if recorded data could not be kept. All resources are released in any case. */
  close(): Promise<void>;
}

export interface Batch extends MemoBatch {
  readonly session: SessionId;
  /** The head at which the decision was made. If the log has more events, nothing is added. */
  readonly expected: Seq;
  readonly events: readonly Event[];
  readonly at: number;
  /** Given by the worker that drives the lane; omitted for other requests. */
  readonly epoch?: number;
  /** The lane after these events, included at intervals: `load` starts from it. */
  readonly snapshot?: Lane;
}

export type Appended =
  | { readonly kind: "appended"; readonly head: Seq }
  /** Another writer was faster. Read the events after the expected head, and decide again. */
  | { readonly kind: "moved"; readonly head: Seq }
  /** This worker no longer holds the lease. */
  | { readonly kind: "fenced" }
  | StoreKnows;

export interface Loaded {
  readonly snapshot: Lane | undefined;
  /** Everything after the snapshot, or all events if there is none. */
  readonly events: readonly Recorded[];
  readonly head: Seq;
  readonly memos: readonly Memo[];
}

export interface Page {
  readonly events: readonly Recorded[];
  /** The last position that retention has removed, if the page starts after it. */
  readonly gapTo?: Seq;
}

export interface SessionRow {
  readonly id: SessionId;
  readonly head: Seq;
  readonly createdAt: number;
  /** When its last event was recorded; if the log has none, when the session was created. */
  readonly updatedAt: number;
  readonly title: string | undefined;
  /** The real path of its working directory; undefined: the workspace. */
  readonly cwd: string | undefined;
  readonly phase: "open" | "closed";
}

export type Claim =
  | { readonly kind: "claimed"; readonly epoch: number }
  | { readonly kind: "held"; readonly by: WorkerId; readonly forMs: number };
