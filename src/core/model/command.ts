// Everything that may be asked of a lane, and what the asker is told. Time, ids and digests arrive in commands.

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

/** What is asked, and, if the asker wants it done once however often it arrives, under which key. */
export type Command = Ask & { readonly once?: Once };

export interface Once {
  readonly key: string;
  /** Digest of what is asked: the same key with other content is a conflict. */
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
      /** `keep`: what goes on in the background goes on. Default `stop`. */
      readonly background?: "keep" | "stop";
      /** `queue`: only what waits is withdrawn; the live run and background processes continue. */
      readonly only?: "queue";
    } & NamedPrompts)
  /** Keeps what a request was answered that is recorded elsewhere, or about all sessions. */
  | { readonly type: "keep-answer"; readonly answer: Json; readonly actor?: string }
  | { readonly type: "cancel-run"; readonly runId: RunId; readonly reason: CancelReason }
  | CancelKey
  | {
      readonly type: "cancel-call";
      readonly callId: CallId;
      readonly reason: CancelReason;
      /** Whether the model is reminded of it at its next turn, besides seeing the result. */
      readonly remind?: boolean;
      /** Stated by its worker: it had not begun when this was decided, and is stopped in that tick. */
      readonly begun?: false;
    }
  | { readonly type: "cancel-process"; readonly processId: ProcessId; readonly reason: CancelReason }
  | {
      readonly type: "cancel-question";
      readonly questionId: QuestionId;
      readonly reason: CancelReason;
      /** As of a call: of the one that asked. */
      readonly begun?: false;
    }
  /** `digest`, if given, must be that of the bytes the question is about. */
  | {
      readonly type: "answer";
      readonly questionId: QuestionId;
      readonly reply: QuestionReply;
      readonly digest?: string;
    }
  /** How its agent goes about its work from now on. */
  | { readonly type: "set-mode"; readonly mode: string; readonly by?: string }
  /** Puts something into the inbox. */
  | { readonly type: "post"; readonly item: InboxItem }
  | { readonly type: "close"; readonly reason: CancelReason }
  /** From here on, said by the worker that drives the lane. */
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
      /** Given by the worker, so that it stays the same if this is decided again. Default the next one. */
      readonly processId?: ProcessId;
      readonly owner: CallId | SessionId;
      readonly command: string | readonly string[];
      readonly cwd?: string;
      readonly feedback: Feedback;
      readonly lasting?: true;
      /** The call or turn that starts it for the session: one that is being stopped starts nothing. */
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
  /** `waiters`: the calls and the turn that wait for it; each of them has its result, if it completes. */
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
  /** The user that sent it, where several share one Belay. */
  readonly actor?: string;
  /** The run that settled long ago under the same key, if the store knows one. */
  readonly earlier?: { readonly runId: RunId; readonly acceptedAt: Seq; readonly content: string | undefined };
}

/** Where in the queue: next, last, or just before another. */
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
  /** The end as it is recorded: that of a call that was stopped before it began is the stop. */
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
  /** `existed`: it was left as it is. */
  readonly kind: "created" | "existed";
  readonly seq: Seq;
}

export interface Accepted {
  readonly kind: "accepted";
  readonly runId: RunId;
  readonly seq: Seq;
  /** How it joined: a steer without a live run was queued. */
  readonly joined: "queue" | "steer";
  /** Runs before it, the live one included. */
  readonly ahead: number;
  /** True for the second request under one idempotency key. */
  readonly repeated: boolean;
}

export interface Refused {
  readonly kind: "refused";
  readonly code: ControlCode;
  readonly message: string;
}

/** The answer to a change of the queue. `started`: too late, it is under way. `unknown`: not in the queue. */
export type QueueReceipt =
  | { readonly kind: "changed"; readonly seq: Seq }
  | { readonly kind: "unchanged" }
  | { readonly kind: "started" }
  | { readonly kind: "unknown" }
  | Refused;

/** A steer that was taken in, in the order in which they were accepted. */
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

/** The answer to a change of the mode. `unchanged`: it was set to that already, and nothing was recorded. */
export type ModeReceipt =
  | { readonly kind: "changed"; readonly mode: string; readonly seq: Seq }
  | { readonly kind: "unchanged"; readonly mode: string };

/** `granted`: it was approved before, for the whole session or for this very call, and nobody is asked. */
export type Questioned = { readonly kind: "asked"; readonly questionId: QuestionId } | { readonly kind: "granted" };

/** `late`: it had been settled or abandoned before, so this end was dropped. */
export type Settled = "recorded" | "late";

export type CallSettled = Extract<Event, { type: "call.settled" }>;
