// The requests of clients, when they were sent, and their answers. A ticket is drawn when a request is sent: tickets
// are the clock of the clients.

import type { ControlCode } from "../src/core/errors.ts";
import type { CancelReceipt, Outcome, SessionReceipt } from "../src/core/model/cancel.ts";
import type { Accepted, InboxReceipt, QueueReceipt, Refused } from "../src/core/model/command.ts";
import type { Delta, Gap } from "../src/core/model/delta.ts";
import type { Recorded } from "../src/core/model/event.ts";
import type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId, TurnId } from "../src/core/model/ids.ts";
import type { Delivery } from "../src/core/model/prompt.ts";
import type { AnswerReceipt, QuestionReply } from "../src/core/model/question.ts";
import type { ProcessResult } from "../src/ports/spawner.ts";
import type { AnswerMoment, LogPosition } from "../test/oracle/caller-history.ts";

interface Asked {
  readonly ticket: number;
  readonly life: number;
  readonly session: SessionId;
  /** The length of the session's log when it was sent. */
  readonly sentHead: Seq;
  /** The code it was rejected with. Without it and without a receipt: not yet answered, or lost with its server. */
  refused: ControlCode | undefined;
  /** A stop that was carried out and could not be recorded yet. */
  carriedOut?: true;
  /** If the code is `internal`: the error. */
  error: string | undefined;
  /** The last ticket that was drawn before the answer, and what was so by then. */
  answered: { readonly ticket: number; readonly moment: AnswerMoment } | undefined;
}

export interface PromptRecord extends Asked {
  readonly kind: "prompt";
  readonly runId: RunId;
  readonly text: string;
  readonly delivery: Delivery;
  readonly key: string | undefined;
  /** Runs that were next in other sessions when it was asked. */
  readonly waitingElsewhere: readonly { readonly id: RunId; readonly session: SessionId }[];
  /** How many runs had been started by then, in all sessions. */
  readonly startsBefore: number;
  receipt: Accepted | undefined;
}

/** A cancel. Its note is its own, so that whatever it caused can be traced back to it. */
export interface CancelRecord extends Asked {
  readonly kind: "cancel";
  readonly scope: "session" | "close" | "run" | "key" | "call" | "process" | "question";
  readonly target: SessionId | RunId | CallId | ProcessId | QuestionId | string;
  /** Of a session: whether what goes on in the background is to go on. */
  readonly keep: boolean;
  /** Whether it names a prompt that may not have arrived. */
  readonly early: boolean;
  /** Of a call: whether the model is to be reminded of it. */
  readonly remind: boolean;
  readonly note: string;
  /** Runs of the session that were in the log when it was asked. */
  readonly standing: readonly RunId[];
  /** Whether its session was known when it was asked, so that it was received there at once. */
  readonly isFound: boolean;
  /**
   * The run that ends as cancelled if it is carried out: its target, or the live run. Not one whose turn had ended by
   * itself: if what else kept it open is refused, it ends like that turn.
   */
  readonly stops: readonly RunId[];
  receipt: SessionReceipt | (CancelReceipt & { readonly runId?: RunId }) | undefined;
}

export interface ChangeRecord extends Asked {
  readonly kind: "change";
  readonly verb: "edit" | "move" | "withdraw" | "steer";
  readonly runId: RunId;
  readonly text: string;
  receipt: QueueReceipt | undefined;
}

export interface WaitRecord extends Asked {
  readonly kind: "wait";
  readonly runId: RunId;
  receipt: { readonly outcome: Outcome | undefined } | undefined;
}

/** An answer to a question. `by` in the reply is its own, so that what was recorded can be traced back to it. */
export interface AnswerRecord extends Asked {
  readonly kind: "answer";
  readonly questionId: QuestionId;
  readonly reply: QuestionReply;
  readonly digest: string | undefined;
  receipt: AnswerReceipt | undefined;
}

/** Something that is put into a session's inbox. Its text is its own. */
export interface PostRecord extends Asked {
  readonly kind: "post";
  readonly text: string;
  receipt: InboxReceipt | Refused | undefined;
}

/** A process that somebody starts for a session. Its command is its own. */
export interface StartRecord extends Asked {
  readonly kind: "start";
  readonly command: string;
  receipt: { readonly processId: ProcessId } | undefined;
}

/** Somebody waits for the end of a process, for a while or for as long as it takes. */
export interface EndRecord extends Asked {
  readonly kind: "end";
  readonly processId: ProcessId;
  receipt: { readonly result: ProcessResult | undefined } | undefined;
}

export type AskedRecord =
  | StartRecord
  | EndRecord
  | PromptRecord
  | CancelRecord
  | ChangeRecord
  | WaitRecord
  | AnswerRecord
  | PostRecord;

/** Somebody who reads a session's events, at their own pace. */
export interface Follower {
  readonly session: SessionId;
  readonly life: number;
  readonly from: Seq;
  readonly deltas: "with" | "without";
  cursor: Seq;
  /** Everything it received that the log keeps, and the log when each of them was received. */
  readonly received: (Recorded | Gap)[];
  readonly positions: LogPosition[];
  /** Turns whose end it has heard: of these it hears nothing more. */
  readonly over: Set<TurnId>;
  /** It does not want to hear more, and whether somebody else has gone on where it was. */
  left: boolean;
  followed: boolean;
  /** Whether it is waiting for the next one. */
  waiting: boolean;
  ended: boolean;
  readonly stream: AsyncGenerator<Recorded | Delta | Gap, void>;
  readonly stop: AbortController;
}

export function what(record: AskedRecord): string {
  switch (record.kind) {
    case "prompt":
      return `Prompt ${record.ticket} (${record.runId})`;
    case "cancel":
      return `Cancel ${record.ticket} of ${record.scope} ${record.target}`;
    case "change":
      return `Change ${record.ticket} (${record.verb} ${record.runId})`;
    case "wait":
      return `Wait ${record.ticket} for ${record.runId}`;
    case "answer":
      return `Answer ${record.ticket} to ${record.questionId}`;
    case "start":
      return `Start ${record.ticket} of "${record.command}"`;
    case "end":
      return `Wait ${record.ticket} for ${record.processId}`;
    case "post":
      return `Post ${record.ticket}`;
  }
}
