// The events that a session's log consists of. Past tense, noun first, never revised. Names here are permanent.
import type { CancelReason, Outcome } from "./cancel.ts";
import type { CallId, ProcessId, QuestionId, RunId, Seq, SessionId, TurnId, Work } from "./ids.ts";
import type { InboxItem } from "./inbox.ts";
import type { Delivery, Json, Prompt } from "./prompt.ts";
import type { QuestionOutcome, Subject } from "./question.ts";

export type SessionEvent =
  | {
      readonly type: "session.created";
      readonly sessionId: SessionId;
      readonly title?: string;
      /** Where its agent and its commands work: the real path of a directory. Absent: the workspace. */
      readonly cwd?: string;
    }
  | { readonly type: "session.cancel_requested"; readonly reason: CancelReason; readonly covers: readonly RunId[] }
  | { readonly type: "session.closed"; readonly reason: CancelReason }
  /** The mode from now on, one of those that the agent defines. `by`: the user that set it. */
  | { readonly type: "session.mode_set"; readonly mode: string; readonly by?: string }
  /** The model is given this summary instead of the conversation before it. The transcript keeps all of it. */
  | { readonly type: "session.compacted"; readonly turnId: TurnId; readonly summary: string }
  /** An item for the model's next turn. */
  | {
      readonly type: "inbox.added";
      readonly item: InboxItem;
      /** The process whose result this is. */
      readonly processId?: ProcessId;
      /** The call or turn that waits for this result. Until it ends, no turn takes the item. */
      readonly heldBy?: Work;
      /** Others that wait for the same result: one of them may be stopped before it has returned it. */
      readonly alsoHeldBy?: readonly Work[];
      /** If no turn follows anyway, a run is begun for it. */
      readonly wake?: true;
    }
  /** A request with an idempotency key, and its answer. The same request again gets the same answer. */
  | { readonly type: "request.answered"; readonly key: string; readonly content: string; readonly answer: Json };

/** Events of a run that has not started. */
export type QueueEvent =
  | {
      readonly type: "run.accepted";
      readonly runId: RunId;
      readonly prompt: Prompt;
      readonly delivery: Delivery;
      readonly key?: string;
      /** Digest of the request with `key`: the same key with other content is a conflict. */
      readonly content?: string;
      /** Begun by an item in the inbox, not by a client. */
      readonly wake?: true;
    }
  | { readonly type: "run.edited"; readonly runId: RunId; readonly prompt: Prompt }
  /** `index`: its new position in the queue. 0 is the next run. */
  | { readonly type: "run.moved"; readonly runId: RunId; readonly index: number }
  /** A queued run becomes a steer: it waits to be taken into the live run. */
  | { readonly type: "run.steered"; readonly runId: RunId }
  /** The live run ended before it took in this steer, which is a queued run again. */
  | { readonly type: "run.requeued"; readonly runId: RunId }
  /** The text of a steer was taken into another run's turn. The steer's own outcome follows at once. */
  | { readonly type: "run.taken"; readonly runId: RunId; readonly into: RunId; readonly turnId: TurnId };

export type RunEvent =
  | { readonly type: "run.started"; readonly runId: RunId }
  | { readonly type: "run.cancel_requested"; readonly runId: RunId; readonly reason: CancelReason }
  /** Suspended at shutdown. It is recovered at the next start. */
  | { readonly type: "run.parked"; readonly runId: RunId }
  /** Continued by another worker, or after a restart. `attempt` counts the workers that vanished, plus one. */
  | { readonly type: "run.recovered"; readonly runId: RunId; readonly attempt: number }
  | {
      readonly type: "run.settled";
      readonly runId: RunId;
      readonly outcome: Outcome;
      /** The caller's key for its prompt. */
      readonly key?: string;
      /** Its last turn, and the text of that turn up to RUN_TEXT_CHARS_MAX. Absent: it had no turn. */
      readonly turnId?: TurnId;
      readonly text?: string;
      /** `text` was cut. */
      readonly truncated?: true;
    };

export type TurnEvent =
  | { readonly type: "turn.requested"; readonly runId: RunId; readonly turnId: TurnId }
  /** The turn receives these items of the inbox, oldest first. */
  | {
      readonly type: "inbox.taken";
      readonly runId: RunId;
      readonly turnId: TurnId;
      readonly items: readonly InboxItem[];
    }
  /** The next piece of text of a live turn. Recorded so that a crash loses little of it. */
  | {
      readonly type: "turn.extended";
      readonly runId: RunId;
      readonly turnId: TurnId;
      readonly text: string;
      /** The cost so far: all that is known of the cost if the worker vanishes. */
      readonly usage?: Usage;
      readonly model?: ModelName;
    }
  | {
      readonly type: "turn.settled";
      readonly runId: RunId;
      readonly turnId: TurnId;
      readonly outcome: Outcome;
      /**
       * `turn`: another turn is requested once its calls have settled. `end`: the run ends with this turn's outcome.
       */
      readonly next: Next;
      /** The whole text, if the turn's end is known. After a crash, the text is that of `turn.extended`. */
      readonly text?: string;
      readonly usage?: Usage;
      /** The model that answered or was requested. Absent: the agent did not name one. */
      readonly model?: ModelName;
      readonly finish?: TurnFinish;
      /** The answer in parts, if the text alone is not the whole answer. */
      readonly parts?: readonly TurnPart[];
      /** Processes whose results it received by waiting for them. No other turn receives them. */
      readonly heard?: readonly ProcessId[];
    };

/** A model, by its provider's names: `anthropic.messages`, `claude-sonnet-4-5`. */
export interface ModelName {
  readonly provider: string;
  readonly id: string;
}

/** Why the model ended its answer. `calls`: it waits for their results. */
export type TurnFinish = "stop" | "calls" | "length" | "refusal" | "other";

/** A part of an answer. `provider` is data of the model provider, which is returned to it unchanged. */
export type TurnPart =
  | { readonly kind: "text"; readonly text: string; readonly provider?: Json }
  | { readonly kind: "reasoning"; readonly text: string; readonly provider?: Json }
  /** The call with this index among those that the turn requested. */
  | { readonly kind: "call"; readonly index: number }
  /** Data that only the provider understands, such as a tool it ran itself and the result. */
  | { readonly kind: "provider"; readonly provider: Json };

export type QuestionEvent =
  | {
      readonly type: "question.asked";
      readonly runId: RunId;
      readonly questionId: QuestionId;
      readonly owner: Work;
      readonly about: Subject;
      readonly deadlineMs?: number;
    }
  | {
      readonly type: "question.settled";
      readonly runId: RunId;
      readonly questionId: QuestionId;
      readonly ending: QuestionOutcome;
    };

export type CallEvent =
  | {
      readonly type: "call.requested";
      readonly runId: RunId;
      readonly callId: CallId;
      readonly name: string;
      readonly input: Json;
      /** It may be begun again if a crash left its end unknown. */
      readonly idempotent?: true;
      /** Once begun it does not stop early, so clients should not offer to stop it alone. */
      readonly interruptible?: false;
      /** The provider's id of the call, and its data. These ids are not unique. */
      readonly provider?: ProviderCall;
    }
  | {
      readonly type: "call.cancel_requested";
      readonly runId: RunId;
      readonly callId: CallId;
      readonly reason: CancelReason;
      /** The model also gets a reminder of the stop at its next turn, besides the result. */
      readonly remind?: true;
      /** It had not begun, and never will: it waited for an approval, a hook, a slot or the store. */
      readonly begun?: false;
    }
  | {
      readonly type: "call.settled";
      readonly runId: RunId;
      readonly callId: CallId;
      readonly outcome: Outcome;
      /** It ended without having begun: nothing was done. */
      readonly begun?: false;
      /** The result, or the partial result that it had stored when it was stopped. */
      readonly result?: Json;
      /** What it reported as changed. Kept whatever the outcome. */
      readonly changes?: readonly string[];
      /** Processes whose results it returned. They are not reported again. */
      readonly heard?: readonly ProcessId[];
    };

/** Processes belong to the session, not to a run: a background process outlives the run that started it. */
export type ProcessEvent =
  | {
      readonly type: "process.requested";
      readonly processId: ProcessId;
      /** The call whose end ends it; for a background process, the session. */
      readonly owner: CallId | SessionId;
      /** As given: a shell command, or a list of arguments. */
      readonly command: string | readonly string[];
      readonly cwd?: string;
      readonly feedback: Feedback;
      /** Infrastructure of the session, not its work: only the end of the session stops it, a cancel does not. */
      readonly lasting?: true;
    }
  | {
      readonly type: "process.started";
      readonly processId: ProcessId;
      readonly pid: number;
      /** The containment tier. */
      readonly tier: string;
      readonly profile: string;
    }
  /**
   * The process outlasted its call, and belongs to the session from now on. `dying`: it is being killed for this
   * reason, because its call has ended.
   */
  | {
      readonly type: "process.detached";
      readonly processId: ProcessId;
      readonly owner: SessionId;
      readonly feedback: Feedback;
      readonly dying?: CancelReason;
    }
  | { readonly type: "process.cancel_requested"; readonly processId: ProcessId; readonly reason: CancelReason }
  | {
      readonly type: "process.settled";
      readonly processId: ProcessId;
      /** `completed`: it ended by itself, whatever its exit code. */
      readonly outcome: Outcome;
      readonly exit?: Exit;
      readonly durationMs?: number;
      readonly output?: OutputNote;
      /** Pids of its tree that survived the whole stop ladder. An operator must look at them. */
      readonly escaped?: readonly number[];
      /** The result was not reported, because the session had closed. */
      readonly dropped?: true;
    };

/**
 * What happens to the result of a background process that ends by itself. `wake`: the model receives it at its next
 * turn, and a run is begun if no turn follows anyway. `next-turn`: the model receives it at its next turn. `silent`: it
 * is only in the log.
 */
export type Feedback = "wake" | "next-turn" | "silent";

/** How the command itself ended: with an exit code, or by a signal. */
export interface Exit {
  readonly code?: number;
  readonly signal?: string;
}

/** The output: its size, its last lines, and the directory with the rest. */
export interface OutputNote {
  readonly bytes: number;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  readonly tail: string;
  readonly dir?: string;
}

export interface ProviderCall {
  readonly id: string;
  readonly data?: Json;
}

export type Next = "turn" | "end";

/** What a turn cost. `estimated`: counted by Belay, because the provider did not report it. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly estimated: boolean;
}

export type Event = SessionEvent | QueueEvent | RunEvent | TurnEvent | CallEvent | QuestionEvent | ProcessEvent;

/** An event as it is in the log. */
export type Recorded = Event & { readonly seq: Seq; readonly at: number };
