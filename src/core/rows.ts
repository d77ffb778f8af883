// The rows a store derives from events, in the same transaction: what must be found without reading a log,
// and what the database itself shall guard. Said here once, so that no store has an opinion.
import type { Outcome } from "./cancel.ts";
import type { Event } from "./event.ts";
import type { CallId, ProcessId, RunId, Seq, SessionId } from "./ids.ts";

export interface RunRow {
  readonly id: RunId;
  readonly session: SessionId;
  /** As stored: `live` covers running, ending and stopping, of which there is one per session. */
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

/** The row a fact changes, if it changes one. */
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
