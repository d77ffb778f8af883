// The commands of a lane and their answers. Commands carry time, ids and digests, because the core makes none.

import type { ControlCode } from "../errors.ts";
import type { CallEnd, Resume, TurnEnd } from "../policy/decide-run.ts";
import type { CallAsk } from "./call.ts";
import type { CancelKey, CancelReason, CancelReceipt, NamedPrompts, SessionReceipt } from "./cancel.ts";
import type { Event, Feedback } from "./event.ts";
import type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId, TurnId, Work } from "./ids.ts";
import type { InboxItem } from "./inbox.ts";
import type { ProcessEnd } from "./process.ts";
import type { Delivery, Json, Prompt } from "./prompt.ts";
import type { AnswerReceipt, QuestionReply, Subject } from "./question.ts";

export type CommandOf<T extends Command["type"]> = Extract<Command, { type: T }>;

/** A command. With `once` it takes effect once, however often it arrives. */
export type Command = Ask & { readonly once?: Once };

export interface Once {
  readonly key: string;
  /** Digest of the request: the same key with other content is a conflict. */
  readonly content: string;
}

type Ask =
  | { readonly type: "create"; readonly title?: string; readonly cwd?: string }
  | Accept
  | { readonly type: "edit"; readonly runId: RunId; readonly prompt: Prompt }
  | { readonly type: "move"; readonly runId: RunId; readonly to: QueuePlace }
  | { readonly type: "withdraw"; readonly runId: RunId; readonly reason: CancelReason }
  | { readonly type: "steer"; readonly runId: RunId }
  | ({
      readonly type: "cancel-session";
      readonly reason: CancelReason;
      /** `keep`: background processes keep running. Default `stop`. */
      readonly background?: "keep" | "stop";
      /** `queue`: only what waits is withdrawn; the live run and background processes continue. */
      readonly only?: "queue";
    } & NamedPrompts)
  /** Records the answer of a request whose effects are recorded elsewhere, or that concerns all sessions. */
  | { readonly type: "keep-answer"; readonly answer: Json; readonly actor?: string }
  | { readonly type: "cancel-run"; readonly runId: RunId; readonly reason: CancelReason }
  | CancelKey
  | {
      readonly type: "cancel-call";
      readonly callId: CallId;
      readonly reason: CancelReason;
      /** Whether the model is reminded of it at its next turn, besides seeing the result. */
      readonly remind?: boolean;
      /** Set by the worker: the call had not begun when this was decided, and is stopped in the same tick. */
      readonly begun?: false;
    }
  | { readonly type: "cancel-process"; readonly processId: ProcessId; readonly reason: CancelReason }
  | {
      readonly type: "cancel-question";
      readonly questionId: QuestionId;
      readonly reason: CancelReason;
      /** As in `cancel-call`, for the call that asked the question. */
      readonly begun?: false;
    }
  /** `digest`, if given, must be that of the input the approval is for. */
  | {
      readonly type: "answer";
      readonly questionId: QuestionId;
      readonly reply: QuestionReply;
      readonly digest?: string;
    }
  /** Sets what the agent may do without an approval, from now on. */
  | { readonly type: "set-mode"; readonly mode: string; readonly by?: string }
  /** Adds an item to the inbox. */
  | { readonly type: "post"; readonly item: InboxItem }
  | { readonly type: "close"; readonly reason: CancelReason }
  /** The commands from here on come from the worker that drives the lane. */
  | { readonly type: "start" }
  | { readonly type: "take"; readonly turnId: TurnId }
  | ({ readonly type: "extend"; readonly turnId: TurnId; readonly text: string } & Pick<TurnEnd, "usage" | "model">)
  | { readonly type: "compact"; readonly turnId: TurnId; readonly summary: string }
  | ({ readonly type: "call" } & CallAsk)
  | { readonly type: "ask"; readonly owner: Work; readonly about: Subject; readonly deadlineMs?: number }
  /** A call that an earlier worker left is about to begin, whether or not its approval was answered. */
  | { readonly type: "admit-call"; readonly callId: CallId }
  | { readonly type: "expire"; readonly questionId: QuestionId; readonly limitMs: number }
  | { readonly type: "settle-turn"; readonly end: TurnEnd }
  | { readonly type: "settle-call"; readonly end: CallEnd }
  | {
      readonly type: "begin-process";
      /** Given by the worker, so that it stays the same if this is decided again. Default: the next free id. */
      readonly processId?: ProcessId;
      readonly owner: CallId | SessionId;
      readonly command: string | readonly string[];
      readonly cwd?: string;
      readonly feedback: Feedback;
      readonly lasting?: true;
      /** The call or turn that starts it on behalf of the session. A stopped one starts nothing. */
      readonly by?: Work;
    }
  | {
      readonly type: "note-process";
      readonly processId: ProcessId;
      readonly pid: number;
      readonly tier: string;
      readonly profile: string;
    }
  | { readonly type: "detach-process"; readonly processId: ProcessId; readonly feedback: Feedback }
  /** `waiters`: the calls and the turn that wait for it. Each receives its result, if it completes. */
  | { readonly type: "settle-process"; readonly end: ProcessEnd; readonly waiters?: readonly Work[] }
  | { readonly type: "recover"; readonly resume: Resume }
  | { readonly type: "park" };

export interface Accept {
  readonly type: "accept";
  readonly runId: RunId;
  readonly prompt: Prompt;
  readonly delivery: Delivery;
  readonly key?: string;
  readonly content?: string;
  /** The user that sent it, if several share one Belay. */
  readonly actor?: string;
  /** The settled run with the same key, if the store knows one. */
  readonly earlier?: { readonly runId: RunId; readonly acceptedAt: Seq; readonly content: string | undefined };
}

/** A position in the queue: first, last, or before another run. */
export type QueuePlace = "front" | "back" | { readonly before: RunId };

/** The answer to each command. */
export interface Answers {
  create: Created;
  accept: Accepted | Refused;
  edit: QueueReceipt;
  move: QueueReceipt;
  withdraw: QueueReceipt;
  steer: QueueReceipt;
  "cancel-session": SessionReceipt | Refused;
  "cancel-run": CancelReceipt;
  "cancel-key": (CancelReceipt & { readonly runId?: RunId }) | Refused;
  "keep-answer": undefined | Refused;
  "cancel-call": CancelReceipt;
  "cancel-process": CancelReceipt;
  "cancel-question": CancelReceipt;
  answer: AnswerReceipt;
  "set-mode": ModeReceipt | Refused;
  post: InboxReceipt | Refused;
  close: SessionReceipt;
  start: RunId | undefined;
  take: readonly Taken[];
  extend: undefined;
  compact: undefined;
  call: Called | Refused;
  ask: Questioned | Refused;
  "admit-call": "admitted" | "denied";
  expire: undefined;
  "settle-turn": Settled;
  /** The event that was recorded. A call that was stopped before it began is recorded as stopped. */
  "settle-call": CallSettled | "late";
  "begin-process": ProcessBegun | Refused;
  "note-process": undefined;
  "detach-process": Settled;
  "settle-process": Settled;
  recover: undefined;
  park: undefined;
}

export type Answer<C extends Command> = Answers[C["type"]];

export interface Created {
  /** `existed`: the session was left unchanged. */
  readonly kind: "created" | "existed";
  readonly seq: Seq;
}

export interface Accepted {
  readonly kind: "accepted";
  readonly runId: RunId;
  readonly seq: Seq;
  /** A steer without a live run is queued. */
  readonly joined: "queue" | "steer";
  /** Number of runs before it, including the live one. */
  readonly ahead: number;
  /** True for every further request with the same idempotency key. */
  readonly repeated: boolean;
}

export interface Refused {
  readonly kind: "refused";
  readonly code: ControlCode;
  readonly message: string;
}

/** The answer to a change of the queue. `started`: the run is no longer waiting. `unknown`: not in the queue. */
export type QueueReceipt =
  | { readonly kind: "changed"; readonly seq: Seq }
  | { readonly kind: "unchanged" }
  | { readonly kind: "started" }
  | { readonly kind: "unknown" }
  | Refused;

/** A steer that was taken in. Steers are taken in order of acceptance. */
export interface Taken {
  readonly runId: RunId;
  readonly prompt: Prompt;
}

export interface Called {
  readonly kind: "called";
  readonly callId: CallId;
}

export interface ProcessBegun {
  readonly kind: "begun";
  readonly processId: ProcessId;
}

export interface InboxReceipt {
  readonly kind: "posted";
  readonly seq: Seq;
}

/** The answer to a change of the mode. `unchanged`: it was that already, and nothing was recorded. */
export type ModeReceipt =
  | { readonly kind: "changed"; readonly mode: string; readonly seq: Seq }
  | { readonly kind: "unchanged"; readonly mode: string };

/** `granted`: it was approved before, for the session or for this call, so no question is asked. */
export type Questioned = { readonly kind: "asked"; readonly questionId: QuestionId } | { readonly kind: "granted" };

/** `late`: the work had already been settled or abandoned, so this end was dropped. */
export type Settled = "recorded" | "late";

export type CallSettled = Extract<Event, { type: "call.settled" }>;
