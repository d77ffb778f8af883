// What clients asked, and what they were told: the history that the log is held against.
//
// An operation was told something (`ok`), was refused (`fail`), or nobody knows (`info`): the connection was lost, and
// what was asked may have happened or not.
import type { Waited } from "../../src/control.ts";
import type { CancelReceipt, Outcome, SessionReceipt } from "../../src/core/cancel.ts";
import type { Accepted, QueueReceipt } from "../../src/core/command.ts";
import type { Recorded } from "../../src/core/event.ts";
import type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId } from "../../src/core/ids.ts";
import type { Delivery } from "../../src/core/prompt.ts";
import type { AnswerReceipt } from "../../src/core/question.ts";

/** What each kind of operation asks, and what it is told. */
export interface Operations {
  prompt: {
    readonly ask: { readonly label: string; readonly key: string | undefined; readonly delivery: Delivery };
    readonly told: Accepted;
  };
  outcome: { readonly ask: { readonly runId: RunId }; readonly told: Outcome };
  "cancel-run": { readonly ask: { readonly runId: RunId }; readonly told: CancelReceipt & Waited };
  /** Of the prompt with this label, by its key or in the tick in which it was sent. */
  "cancel-prompt": {
    readonly ask: { readonly label: string };
    readonly told: CancelReceipt & Waited & { readonly runId?: RunId };
  };
  "cancel-session": { readonly ask: { readonly background: "keep" | "stop" }; readonly told: SessionReceipt };
  "cancel-call": { readonly ask: { readonly callId: CallId }; readonly told: CancelReceipt & Waited };
  "cancel-process": { readonly ask: { readonly processId: ProcessId }; readonly told: CancelReceipt & Waited };
  /** `text`: what the prompt is to say from now on, unique. */
  edit: { readonly ask: { readonly runId: RunId; readonly text: string }; readonly told: QueueReceipt };
  move: { readonly ask: { readonly runId: RunId }; readonly told: QueueReceipt };
  withdraw: { readonly ask: { readonly runId: RunId }; readonly told: QueueReceipt };
  steer: { readonly ask: { readonly runId: RunId }; readonly told: QueueReceipt };
  answer: {
    readonly ask: { readonly questionId: QuestionId; readonly reply: "allowed" | "denied" };
    readonly told: AnswerReceipt;
  };
}

export type OperationName = keyof Operations;

export type Ended<T> =
  | { readonly kind: "ok"; readonly told: T }
  | { readonly kind: "fail" | "info"; readonly code: string };

export type OperationOf<K extends OperationName> = {
  readonly name: K;
  readonly sessionId: SessionId;
  readonly ask: Operations[K]["ask"];
  /** Moments of one clock of the harness: what ended before another began came first. */
  readonly began: number;
  readonly ended: number;
  readonly end: Ended<Operations[K]["told"]>;
};

export type Operation = { readonly [K in OperationName]: OperationOf<K> }[OperationName];

/** What one follower heard, from where. */
export interface Slice {
  readonly sessionId: SessionId;
  readonly after: Seq;
  readonly events: readonly Recorded[];
}

export interface History {
  readonly operations: readonly Operation[];
  readonly slices: readonly Slice[];
}
