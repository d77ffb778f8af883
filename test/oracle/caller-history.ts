// What callers requested, and what each request was answered: the history that the logs are compared with. Data only.
// A suite translates its own records into this.
import type { Waited } from "../../src/control.ts";
import type { CancelReceipt, Outcome, SessionReceipt } from "../../src/core/cancel.ts";
import type { Accepted, ModeReceipt, Posted, QueueReceipt } from "../../src/core/command.ts";
import type { Gap } from "../../src/core/delta.ts";
import type { Recorded } from "../../src/core/event.ts";
import type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId } from "../../src/core/ids.ts";
import type { AnswerReceipt } from "../../src/core/question.ts";

/** The event that records a change: its type, and the fields that identify it. Nested fields are matched in part. */
export interface ExpectedEvent {
  readonly type: Recorded["type"];
  readonly like: Readonly<Record<string, unknown>>;
  /** Only this request can cause such an event. */
  readonly unique: boolean;
}

/** The parameters of each kind of request, and the value it returns. */
export interface RequestTypes {
  /** `label`: which prompt it is, whichever request sent it. `runId`: the id its run will have, if the caller knows. */
  prompt: { readonly params: { readonly label: string; readonly runId?: RunId }; readonly value: Accepted };
  outcome: { readonly params: { readonly runId: RunId }; readonly value: Outcome };
  "cancel-run": { readonly params: { readonly runId: RunId }; readonly value: CancelReceipt & Waited };
  /** Of the prompt with this label, by its key or in the tick in which it was sent. */
  "cancel-prompt": {
    readonly params: { readonly label: string };
    readonly value: CancelReceipt & Waited & { readonly runId?: RunId };
  };
  "cancel-session": { readonly params: Readonly<Record<string, never>>; readonly value: SessionReceipt };
  "cancel-call": { readonly params: { readonly callId: CallId }; readonly value: CancelReceipt & Waited };
  "cancel-process": { readonly params: { readonly processId: ProcessId }; readonly value: CancelReceipt & Waited };
  /** A change of the queue, the mode or the inbox. `runId`: of the queued run it changes. */
  change: {
    readonly params: { readonly runId?: RunId; readonly event: ExpectedEvent };
    readonly value: QueueReceipt | ModeReceipt | Posted;
  };
  /** A reply to a question. */
  answer: {
    readonly params: { readonly questionId: QuestionId; readonly event: ExpectedEvent };
    readonly value: AnswerReceipt;
  };
  /** Any other request: only that it is answered, and how it is refused, is checked. */
  other: { readonly params: { readonly label: string }; readonly value: unknown };
}

export type RequestName = keyof RequestTypes;

export type Answer<T> =
  | { readonly kind: "returned"; readonly value: T }
  /** Nothing was changed, by the contract. `carriedOut`: except that the work was stopped, and is to be recorded. */
  | { readonly kind: "refused"; readonly code: string; readonly carriedOut?: true }
  /** The connection or the worker was lost: what was requested may have happened or not. */
  | { readonly kind: "unknown"; readonly code: string }
  /** Rejected with an error that a caller cannot branch on, or with a fault of Belay's own. */
  | { readonly kind: "error"; readonly error: string }
  | { readonly kind: "pending" };

export type RequestOf<K extends RequestName> = {
  readonly name: K;
  readonly sessionId: SessionId;
  readonly params: RequestTypes[K]["params"];
  /** Ticks of one clock: a request that was answered before another was sent precedes it. */
  readonly sentAt: number;
  readonly answeredAt: number;
  readonly answer: Answer<RequestTypes[K]["value"]>;
};

export type CallerRequest = { readonly [K in RequestName]: RequestOf<K> }[RequestName];

/** What one follower received, from where. */
export interface FollowerSlice {
  readonly sessionId: SessionId;
  readonly after: Seq;
  readonly received: readonly (Recorded | Gap)[];
  /** It was connected until everything was at rest, so it must have received everything. */
  readonly untilRest?: true;
}

export interface CallerHistory {
  readonly requests: readonly CallerRequest[];
  readonly slices: readonly FollowerSlice[];
}

export const requestsOf = <K extends RequestName>(history: CallerHistory, name: K): readonly RequestOf<K>[] =>
  // The edge: the compiler does not narrow a union by a type parameter.
  history.requests.filter((one) => one.name === name) as unknown as readonly RequestOf<K>[];

/** A request in words, for findings. */
export function describeRequest(request: CallerRequest): string {
  const { name, params, sessionId } = request;
  switch (name) {
    case "cancel-session":
      return `cancel-session ${sessionId}`;
    case "other":
      return request.params.label;
    default:
      return `${name} ${JSON.stringify(params)}`;
  }
}
