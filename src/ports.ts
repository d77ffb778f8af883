// The sockets in the wall. Everything the engine needs from outside, and nothing else. Types only.
import type { CancelReason, Outcome } from "./core/cancel.ts";
import type { Event, Next, Recorded, Usage } from "./core/event.ts";
import type { CallId, RunId, Seq, SessionId, TurnId, WorkerId } from "./core/ids.ts";
import type { Lane } from "./core/lane.ts";
import type { Json, Prompt } from "./core/prompt.ts";
import type { CallRow, RunRow } from "./core/rows.ts";
import type { Message } from "./core/transcript.ts";

/**
 * A durable log per session, the rows derived from it, and the right to drive it.
 *
 * What a store promises is written as tests in `store/contract.ts`. It holds no policy: swap `decide`, and none
 * changes. Trouble is thrown as a ControlError: `store_full`, `store_locked`, `store_corrupt` mean that nothing was
 * written; `unavailable` means that nobody knows, so the caller reads before it writes again.
 */
export interface Store {
  /**
   * `one`: nobody else can write here while it is open, so there are no leases to renew and nobody to take over from.
   */
  readonly workers?: "one" | "many";

  /** Adds a batch to one log, all or none, durable when it resolves. Concurrent batches share one commit. */
  append(batch: Batch): Promise<Appended>;

  /** Where a lane stands: its last snapshot, the events since, and its head. Undefined: no such session. */
  load(session: SessionId): Promise<Loaded | undefined>;

  /**
   * Events after `after`, oldest first, at most `limit`, fewer if they are large; and what of them is not kept any
   * more. Only an empty page is the end.
   */
  read(session: SessionId, page: { readonly after: Seq; readonly limit: number }): Promise<Page>;

  /** Resolves once the log reaches past `after`, or `signal` aborts. Early is allowed; never is not. */
  grown(session: SessionId, after: Seq, signal: AbortSignal): Promise<void>;

  /** One run, wherever it is in its life; by id, or by the key it was accepted under. */
  run(by: RunId | { readonly session: SessionId; readonly key: string }): Promise<RunRow | undefined>;

  /** A call that has settled. */
  call(id: CallId): Promise<CallRow | undefined>;

  /** Runs of a session, newest first, accepted before `before`. */
  runs(session: SessionId, page: { readonly before: Seq; readonly limit: number }): Promise<readonly RunRow[]>;

  /** Sessions in order of creation, after `after`. */
  sessions(page: { readonly after: SessionId | undefined; readonly limit: number }): Promise<readonly SessionRow[]>;

  /** Sessions with runs that have no outcome, and no worker that holds a valid lease on them. */
  unattended(limit: number): Promise<readonly SessionId[]>;

  /** Takes the right to drive a lane for `ttlMs`. Taking what one holds renews it. */
  claim(session: SessionId, worker: WorkerId, ttlMs: number): Promise<Claim>;

  /** Prolongs all leases of a worker; answers those that are gone: somebody else may be driving, stop at once. */
  renew(worker: WorkerId, ttlMs: number): Promise<readonly SessionId[]>;

  /** Gives a lease up. */
  release(session: SessionId, worker: WorkerId): Promise<void>;

  /** Forgets events before `before`, never those of runs without an outcome. Readers below are told of the gap. */
  trim(session: SessionId, before: Seq): Promise<{ readonly kept: Seq }>;

  close(): Promise<void>;
}

export interface Batch {
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
  | { readonly kind: "fenced" };

export interface Loaded {
  readonly snapshot: Lane | undefined;
  /** Everything after the snapshot, or after the beginning. */
  readonly events: readonly Recorded[];
  readonly head: Seq;
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
  readonly title: string | undefined;
  readonly phase: "open" | "closed";
}

export type Claim =
  | { readonly kind: "claimed"; readonly epoch: number }
  | { readonly kind: "held"; readonly by: WorkerId; readonly forMs: number };

/** Time. `now` is the wall clock, for people; `elapsed` never jumps, for durations. */
export interface Clock {
  now(): number;
  elapsed(): number;
  /** Calls once, after `ms`. The answer takes it back. An `idle` timer does not keep a program alive that has ended. */
  after(ms: number, call: () => void, kind?: "idle"): () => void;
}

/** Ids and digests: the only randomness there is. */
export interface Ids {
  make(prefix: "ses_" | "run_" | "wrk_"): string;
  digest(text: string): string;
}

/** What carries out the turns of a run. One function, whether it is a user's own or the loop over a model. */
export type Agent = (
  turn: Turn,
) => Promise<TurnResult | string | undefined | void> | TurnResult | string | undefined | void;

export interface TurnResult {
  /** `turn`: ask again once the calls have settled. Default `end`. */
  readonly next?: Next;
  /** Replaces what was emitted, if given. */
  readonly text?: string;
  readonly usage?: Usage;
}

/** Everything a turn may know and do. */
export interface Turn {
  readonly sessionId: SessionId;
  readonly runId: RunId;
  readonly turnId: TurnId;
  readonly prompt: Prompt;
  /** 1, unless earlier workers vanished while they drove this run. */
  readonly attempt: number;
  /** Aborts when the run is cancelled. Its reason is the cancel's. */
  readonly signal: AbortSignal;
  /** The conversation so far, valid for providers, this run's prompt included. Read when asked for. */
  transcript(): Promise<readonly Message[]>;
  /** Streams a piece of the answer. It is kept, also if the run is cancelled or the worker dies. */
  emit(text: string): void;
  /** Runs one tool. Anyone can cancel it alone; it never throws for a cancel, it answers with what happened. */
  call(name: string, input: Json, execute: Execute, options?: CallOptions): Promise<CallResult>;
  /** Takes in what people sent for this run since the last look, oldest first; at first, what came with the turn. */
  takeSteers(): Promise<readonly Prompt[]>;
}

export type Execute = (call: LiveCall) => Promise<Json | undefined | void> | Json | undefined | void;

export interface LiveCall {
  readonly callId: CallId;
  readonly input: Json;
  readonly signal: AbortSignal;
  /** Puts aside what there is so far: kept if the call is stopped. */
  partial(result: Json): void;
}

export interface CallOptions {
  /** May be begun again if a crash left its end unknown. */
  readonly idempotent?: boolean;
  readonly timeoutMs?: number;
  /**
   * After a crash the turn is asked again. `recorded` (default): a call that ended before the crash, with the same name
   * and input, is answered from the log instead of being repeated. `begin`: always a call of its own.
   */
  readonly again?: "recorded" | "begin";
}

export type CallResult =
  | { readonly kind: "completed"; readonly callId: CallId; readonly value: Json | undefined }
  | { readonly kind: "failed"; readonly callId: CallId; readonly message: string }
  | {
      readonly kind: "cancelled";
      readonly callId: CallId;
      readonly reason: CancelReason;
      readonly partial: Json | undefined;
      /** It did not stop when it was asked to: it may still be going on. */
      readonly abandoned: boolean;
    }
  /** It ran under a worker that vanished. Whether it did its work is not known. */
  | { readonly kind: "lost"; readonly callId: CallId };

/** Something worth telling the operator, never the user: a late result, a hook that threw, a store in trouble. */
export type Notice =
  | { readonly type: "late"; readonly runId: RunId; readonly work: string; readonly outcome: Outcome["kind"] }
  | { readonly type: "store"; readonly session: SessionId; readonly code: string; readonly message: string }
  | { readonly type: "bug"; readonly session: SessionId; readonly error: unknown };

export type Notify = (notice: Notice) => void;
