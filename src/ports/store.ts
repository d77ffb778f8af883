// The port for stores: a durable log per session, the rows derived from it, and leases. Types only.
import type { Event, Recorded } from "../core/model/event.ts";
import type { CallId, ProcessId, RunId, Seq, SessionId, WorkerId } from "../core/model/ids.ts";
import type { Lane } from "../core/model/lane.ts";
import type { Memo, MemoBatch } from "../core/model/memo.ts";
import type { CallRow, IdsAsked, IdsFound, ProcessRow, RunRow, SessionsAsked, StoreKnows } from "../core/model/rows.ts";
import type { StoreTrimmed, Upkeep } from "../core/model/upkeep.ts";

/**
 * A durable log per session, its rows, and the right to drive it. A store must pass `store/contract/contract.ts`, and
 * holds no policy. Trouble is a ControlError: after `store_full`, `store_locked` and `store_corrupt` nothing was
 * written.
 */
export interface Store {
  /** `one`: no other worker can write here while it is open, so there are no leases to renew or to take over. */
  readonly workers?: "one" | "many";

  /** Adds a batch to one log, all or none, durable when it resolves. Concurrent batches share one commit. */
  append(batch: Batch): Promise<Appended>;

  /** Where a lane stands: its last snapshot, the events since, its head, its memos. Undefined: there is nothing. */
  load(session: SessionId): Promise<Loaded | undefined>;

  /** Events after `after`, oldest first, at most `limit`, fewer if they are large. Only an empty page is the end. */
  read(session: SessionId, page: { readonly after: Seq; readonly limit: number }): Promise<Page>;

  /** Resolves once the log reaches past `after`, or `signal` aborts. Early is allowed; never is not. */
  grown(session: SessionId, after: Seq, signal: AbortSignal): Promise<void>;

  /** One run, wherever it is in its life; by id, or by the key it was accepted under. */
  run(by: RunId | { readonly session: SessionId; readonly key: string }): Promise<RunRow | undefined>;

  /** A call that has settled. */
  call(id: CallId): Promise<CallRow | undefined>;

  /** One process, wherever it is in its life. */
  process(id: ProcessId): Promise<ProcessRow | undefined>;

  /** Processes of a session, newest first, requested before `before`. */
  processes(session: SessionId, page: { readonly before: Seq; readonly limit: number }): Promise<readonly ProcessRow[]>;

  /** Runs of a session, newest first, accepted before `before`. */
  runs(session: SessionId, page: { readonly before: Seq; readonly limit: number }): Promise<readonly RunRow[]>;

  /** One session. */
  session(id: SessionId): Promise<SessionRow | undefined>;

  /** Sessions in order of creation, or newest first; of one tenant, or of all. */
  sessions(page: SessionsAsked): Promise<readonly SessionRow[]>;

  /** Ids of sessions, runs, settled calls and processes that begin with `prefix`, in order: an exact match is first. */
  ids(asked: IdsAsked): Promise<IdsFound>;

  /** Sessions with runs or processes that have no outcome, and no worker that holds a valid lease on them. */
  unattended(limit: number): Promise<readonly SessionId[]>;

  /** Takes the right to drive a lane for `ttlMs`. Taking what one holds renews it. */
  claim(session: SessionId, worker: WorkerId, ttlMs: number): Promise<Claim>;

  /** Prolongs all leases of a worker. Answers those that are gone: another worker may be driving, stop at once. */
  renew(worker: WorkerId, ttlMs: number): Promise<readonly SessionId[]>;

  /** Gives a lease up. */
  release(session: SessionId, worker: WorkerId): Promise<void>;

  /**
   * Forgets events before `before`: never those of runs or processes without outcome, and no run in part. Readers are
   * told of the gap. A bounded amount of work: call it again while it answers `more`.
   */
  trim(session: SessionId, before: Seq): Promise<StoreTrimmed>;

  /** What keeps it small. Without it no session can be deleted, and there is no retention. */
  readonly upkeep?: Upkeep | undefined;

  /** Resolves if something new could be written now; rejects as an append would. Default: only an append shows it. */
  ready?(): Promise<void>;

  /** Rejects if what it had recorded was removed or is another's now. Writes nothing; called every few seconds. */
  readonly inPlace?: (() => Promise<void>) | undefined;

  /** Rejects if what was recorded is not kept. All that it held is released either way. */
  close(): Promise<void>;
}

export interface Batch extends MemoBatch {
  readonly session: SessionId;
  /** The head on which the decision was made. If the log has moved on, nothing is added. */
  readonly expected: Seq;
  readonly events: readonly Event[];
  readonly at: number;
  /** Given by whoever drives the lane; omitted by whoever only asks. */
  readonly epoch?: number;
  /** The lane after these events, now and then: what `load` starts from. */
  readonly snapshot?: Lane;
}

export type Appended =
  | { readonly kind: "appended"; readonly head: Seq }
  /** Somebody was faster. Read on from where you were, decide again. */
  | { readonly kind: "moved"; readonly head: Seq }
  /** You are no longer the driver. */
  | { readonly kind: "fenced" }
  | StoreKnows;

export interface Loaded {
  readonly snapshot: Lane | undefined;
  /** Everything after the snapshot, or after the beginning. */
  readonly events: readonly Recorded[];
  readonly head: Seq;
  readonly memos: readonly Memo[];
}

export interface Page {
  readonly events: readonly Recorded[];
  /** The last position that retention has removed, if the page had to start behind it. */
  readonly gapTo?: Seq;
}

export interface SessionRow {
  readonly id: SessionId;
  readonly head: Seq;
  readonly createdAt: number;
  /** When its last event was recorded; when it was made, if the log has none any more. */
  readonly updatedAt: number;
  readonly title: string | undefined;
  /** The real path of the directory it works in; undefined: the workspace. */
  readonly cwd: string | undefined;
  readonly phase: "open" | "closed";
}

export type Claim =
  | { readonly kind: "claimed"; readonly epoch: number }
  | { readonly kind: "held"; readonly by: WorkerId; readonly forMs: number };
