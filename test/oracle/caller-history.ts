// What callers requested, and what each request was answered: the history that the logs are compared with. Data only.
// A suite translates its own records into this.

import type { CancelReceipt, Outcome, SessionReceipt } from "../../src/core/model/cancel.ts";
import type { Accepted, InboxReceipt, ModeReceipt, QueueReceipt, Refused } from "../../src/core/model/command.ts";
import type { Gap } from "../../src/core/model/delta.ts";
import type { Recorded } from "../../src/core/model/event.ts";
import type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId } from "../../src/core/model/ids.ts";
import type { Delivery } from "../../src/core/model/prompt.ts";
import type { AnswerReceipt, QuestionReply } from "../../src/core/model/question.ts";
import type { AwaitedOutcome } from "../../src/ports/control.ts";
import type { ProcessResult } from "../../src/ports/spawner.ts";

/** The event that records a change: its type, and the fields that identify it. Nested fields are matched in part. */
export interface ExpectedEvent {
  readonly type: Recorded["type"];
  readonly like: Readonly<Record<string, unknown>>;
  /** Only this request can cause such an event. */
  readonly unique: boolean;
}

/** `note`: that of its reason, if no other request has it: what it stopped can be traced back to it. */
interface Noted {
  readonly note?: string;
}

type Cancel<Params> = { readonly params: Params & Noted; readonly value: CancelReceipt & AwaitedOutcome };

/** The parameters of each kind of request, and the value it returns. */
export interface RequestTypes {
  /**
   * `label`: which prompt it is, whichever request sent it. `runId`: the id its run will have, if the caller knows.
   * `text` and `delivery`: what the acceptance must contain, if that is checked.
   */
  prompt: {
    readonly params: {
      readonly label: string;
      readonly runId?: RunId;
      readonly text?: string;
      readonly delivery?: Delivery;
    };
    readonly value: Accepted;
  };
  /** The outcome of a run. Undefined: there is no such run. */
  outcome: { readonly params: { readonly runId: RunId }; readonly value: Outcome | undefined };
  "cancel-run": Cancel<{ readonly runId: RunId }>;
  /** Of the prompt with this label, by its key or in the tick it was sent in. `early`: it may not have arrived. */
  "cancel-prompt": {
    readonly params: { readonly label: string; readonly early?: true } & Noted;
    readonly value: CancelReceipt & AwaitedOutcome & { readonly runId?: RunId };
  };
  /** Also to close the session. `keep`: processes in the background keep running. */
  "cancel-session": { readonly params: { readonly keep?: true } & Noted; readonly value: SessionReceipt };
  /** `remind`: whether the model is to be reminded of it. */
  "cancel-call": Cancel<{ readonly callId: CallId; readonly remind?: boolean }>;
  "cancel-process": Cancel<{ readonly processId: ProcessId }>;
  "cancel-question": Cancel<{ readonly questionId: QuestionId }>;
  /** A change of the queue, the mode or the inbox. `runId`: of the queued run it changes. */
  change: {
    readonly params: { readonly runId?: RunId; readonly event: ExpectedEvent } & Noted;
    readonly value: QueueReceipt | ModeReceipt | InboxReceipt | Refused;
  };
  /** A reply to a question. `reply`: exactly as it must be recorded. `digest`: of the bytes it is about. */
  answer: {
    readonly params: {
      readonly questionId: QuestionId;
      readonly event: ExpectedEvent;
      readonly reply?: QuestionReply;
      readonly digest?: string;
    };
    readonly value: AnswerReceipt;
  };
  "start-process": { readonly params: { readonly command: string }; readonly value: { readonly processId: ProcessId } };
  /** A wait for the end of a process. Undefined: the limit came first. */
  "process-result": {
    readonly params: { readonly processId: ProcessId };
    readonly value: ProcessResult | undefined;
  };
  /** Any other request: only that it is answered, and how it is refused, is checked. */
  other: { readonly params: { readonly label: string }; readonly value: unknown };
}

export type RequestName = keyof RequestTypes;

export type Answer<T> =
  | { readonly kind: "returned"; readonly value: T }
  /**
   * Nothing was changed, by the contract. `carriedOut`: except that the work was stopped, and is to be recorded: that
   * of its target, or of these runs.
   */
  | { readonly kind: "refused"; readonly code: string; readonly carriedOut?: true | readonly RunId[] }
  /** The connection or the worker was lost: what was requested may have happened or not. */
  | { readonly kind: "unknown"; readonly code: string }
  /** Rejected with an error that a caller cannot branch on, or with a fault of Belay's own. */
  | { readonly kind: "error"; readonly error: string }
  | { readonly kind: "pending" };

/** A position in a log at some moment: how long the log was, and up to where it had been trimmed. */
export interface LogPosition {
  readonly head: Seq;
  readonly trimmedTo: Seq;
}

/** What a suite in the server's own process knows of the moment of an answer: the answer must be true by then. */
export interface AnswerMoment extends LogPosition {
  /** The length of the session's log when the request was sent. */
  readonly sentHead: Seq;
  /** `not-driving`: the worker has lost the lease of the session, or never had it. */
  readonly server: "serving" | "closing" | "not-driving";
  /** The store has failed since the server started: then a request may be refused for that. */
  readonly storeFailed: boolean;
}

export type RequestOf<K extends RequestName> = {
  readonly name: K;
  readonly sessionId: SessionId;
  readonly params: RequestTypes[K]["params"];
  /** Ticks of one clock: a request that was answered before another was sent precedes it. */
  readonly sentAt: number;
  readonly answeredAt: number;
  readonly answer: Answer<RequestTypes[K]["value"]>;
  /** The life of the server that received it in the tick in which it was sent. Undefined: it went over a network. */
  readonly life?: number;
  readonly moment?: AnswerMoment;
};

export type CallerRequest = { readonly [K in RequestName]: RequestOf<K> }[RequestName];

/** What one follower received, from where. */
export interface FollowerSlice {
  readonly sessionId: SessionId;
  readonly after: Seq;
  readonly received: readonly (Recorded | Gap)[];
  /** The log when each of them was received, if that is known. */
  readonly positions?: readonly LogPosition[];
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

/** The log that an answer is compared with: as it was then, if that is known; otherwise all of it. */
export const headOf = ({ moment }: Pick<CallerRequest, "moment">): Seq => moment?.head ?? Number.POSITIVE_INFINITY;

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
