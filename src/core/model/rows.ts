// The rows that a store derives from events, in the same transaction: what must be found without reading a log, and
// what the database itself must enforce. Defined here once, so that stores hold no policy.
import type { Outcome } from "./cancel.ts";
import type { Event } from "./event.ts";
import type { CallId, ProcessId, RunId, Seq, SessionId } from "./ids.ts";
import type { Memo, MemoChange } from "./memo.ts";

export interface RunRow {
  readonly id: RunId;
  readonly session: SessionId;
  /** As stored: `live` stands for running, ending and stopping, of which a session has at most one. */
  readonly phase: "waiting" | "live" | "settled";
  readonly acceptedAt: Seq;
  readonly settledAt: Seq | undefined;
  readonly key: string | undefined;
  readonly content: string | undefined;
  readonly outcome: Outcome | undefined;
}

/** The run that was accepted under an idempotency key. */
export interface KeyedRun {
  readonly key: string;
  readonly runId: RunId;
  readonly acceptedAt: Seq;
  readonly content: string | undefined;
}

/** Why the store added nothing of a batch. */
export type StoreKnows =
  /** These keys have a run already: all taken keys, including those of memos of prompts, in the batch's order. */
  | { readonly kind: "taken"; readonly runs: readonly KeyedRun[] }
  /** The batch was decided without these memos. */
  | { readonly kind: "recalled"; readonly memos: readonly Memo[] }
  /** These users would exceed MEMOS_PER_ACTOR_MAX memos of prompts. */
  | { readonly kind: "crowded"; readonly actors: readonly string[] };

/** The idempotency keys of prompts in a batch: of accepted prompts, and of prompts that it keeps memos for. */
export function keysOf(events: readonly Event[], memos: readonly MemoChange[] = []): readonly string[] {
  const accepted = events.flatMap((event) => (event.type === "run.accepted" ? (event.key ?? []) : []));
  const kept = memos.flatMap((one) => (one.type === "keep" && one.memo.kind === "prompt" ? one.memo.key : []));
  return [...new Set([...accepted, ...kept])];
}

export interface CallRow {
  readonly id: CallId;
  readonly session: SessionId;
  readonly settledAt: Seq;
  readonly outcome: Outcome;
}

export interface ProcessRow {
  readonly id: ProcessId;
  readonly session: SessionId;
  readonly requestedAt: Seq;
  readonly settledAt: Seq | undefined;
  readonly outcome: Outcome | undefined;
}

export type RowChange =
  | { readonly type: "create-session"; readonly title: string | undefined; readonly cwd: string | undefined }
  | { readonly type: "close-session" }
  | {
      readonly type: "insert-run";
      readonly id: RunId;
      readonly acceptedAt: Seq;
      readonly key: string | undefined;
      readonly content: string | undefined;
    }
  | { readonly type: "start-run"; readonly id: RunId }
  | { readonly type: "settle-run"; readonly id: RunId; readonly settledAt: Seq; readonly outcome: Outcome }
  | { readonly type: "insert-call"; readonly id: CallId; readonly settledAt: Seq; readonly outcome: Outcome }
  | { readonly type: "insert-process"; readonly id: ProcessId; readonly requestedAt: Seq }
  | { readonly type: "settle-process"; readonly id: ProcessId; readonly settledAt: Seq; readonly outcome: Outcome };

/** The row change that an event causes, if any. */
export function rowChange(event: Event, seq: Seq): RowChange | undefined {
  switch (event.type) {
    case "session.created":
      return { type: "create-session", title: event.title, cwd: event.cwd };
    case "session.closed":
      return { type: "close-session" };
    case "run.accepted":
      return { type: "insert-run", id: event.runId, acceptedAt: seq, key: event.key, content: event.content };
    case "run.started":
      return { type: "start-run", id: event.runId };
    case "run.settled":
      return { type: "settle-run", id: event.runId, settledAt: seq, outcome: event.outcome };
    case "call.settled":
      return { type: "insert-call", id: event.callId, settledAt: seq, outcome: event.outcome };
    case "process.requested":
      return { type: "insert-process", id: event.processId, requestedAt: seq };
    case "process.settled":
      return { type: "settle-process", id: event.processId, settledAt: seq, outcome: event.outcome };
    default:
      return undefined;
  }
}

/** A page of sessions. If `after` or `before` is not a session, the page is empty. */
export type SessionsAsked = { readonly limit: number; readonly tenant?: string } & (
  | { readonly order?: "oldest"; readonly after: SessionId | undefined }
  | { readonly order: "newest"; readonly before: SessionId | undefined }
);

export interface IdsAsked {
  readonly prefix: string;
  readonly limit: number;
  readonly tenant?: string;
}

export interface IdsFound {
  readonly ids: readonly string[];
  /** False: other ids may have the prefix too, because the limit was reached. */
  readonly complete: boolean;
}
