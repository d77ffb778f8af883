// The facts a session's log is made of. Past tense, noun first, never revised. Names here are for life.
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
      /** Where its agent and its commands work: the real path of a directory. Without it, in the workspace. */
      readonly cwd?: string;
    }
  | { readonly type: "session.cancel_requested"; readonly reason: CancelReason; readonly covers: readonly RunId[] }
  | { readonly type: "session.closed"; readonly reason: CancelReason }
  /** How its agent goes about its work from now on, in a word of the agent. `by`: who wanted that. */
  | { readonly type: "session.mode_set"; readonly mode: string; readonly by?: string }
  /** The model is given this summary instead of what was said before. People still read all of it. */
  | { readonly type: "session.compacted"; readonly turnId: TurnId; readonly summary: string }
  /** Something the model is to hear at its next turn. */
  | {
      readonly type: "inbox.added";
      readonly item: InboxItem;
      /** The process whose result it is. */
      readonly processId?: ProcessId;
      /** A call or turn that waits for this very result: until it has ended, no turn is told. */
      readonly heldBy?: Work;
      /** More that wait for it: one of them may be stopped before it has told the result. */
      readonly alsoHeldBy?: readonly Work[];
      /** If no turn comes by itself, a run is begun for it. */
      readonly wake?: true;
    }
  /** A request that carried an idempotency key, and what was answered: the same request again gets the same answer. */
  | { readonly type: "request.answered"; readonly key: string; readonly content: string; readonly answer: Json };

/** What happens to a run before it starts, or instead of it. */
export type QueueEvent =
  | {
      readonly type: "run.accepted";
      readonly runId: RunId;
      readonly prompt: Prompt;
      readonly delivery: Delivery;
      readonly key?: string;
      /** Digest of what was asked under `key`: the same key with other content is a conflict. */
      readonly content?: string;
      /** Begun by nobody but what is in the inbox. */
      readonly wake?: true;
    }
  | { readonly type: "run.edited"; readonly runId: RunId; readonly prompt: Prompt }
  /** `index`: its place in the queue from now on, 0 being next. */
  | { readonly type: "run.moved"; readonly runId: RunId; readonly index: number }
  /** A queued run now waits to be taken into the live run. */
  | { readonly type: "run.steered"; readonly runId: RunId }
  /** A steer that found no live run any more is a queued run again. */
  | { readonly type: "run.requeued"; readonly runId: RunId }
  /** A steer's text was taken into another run's turn. Its own outcome follows at once. */
  | { readonly type: "run.taken"; readonly runId: RunId; readonly into: RunId; readonly turnId: TurnId };

export type RunEvent =
  | { readonly type: "run.started"; readonly runId: RunId }
  | { readonly type: "run.cancel_requested"; readonly runId: RunId; readonly reason: CancelReason }
  /** Set down at shutdown, to be taken up at the next start. */
  | { readonly type: "run.parked"; readonly runId: RunId }
  /** Taken up by another worker, or after a restart. `attempt` counts the workers it has seen vanish. */
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
  /** All that was in the inbox, oldest first, is said to this turn. */
  | {
      readonly type: "inbox.taken";
      readonly runId: RunId;
      readonly turnId: TurnId;
      readonly items: readonly InboxItem[];
    }
  /** The next piece of text of a turn that is still going on. Kept, so that a crash loses little of it. */
  | {
      readonly type: "turn.extended";
      readonly runId: RunId;
      readonly turnId: TurnId;
      readonly text: string;
      /** What it has cost so far: all that is known of the cost if its worker vanishes. */
      readonly usage?: Usage;
      readonly model?: ModelName;
    }
  | {
      readonly type: "turn.settled";
      readonly runId: RunId;
      readonly turnId: TurnId;
      readonly outcome: Outcome;
      /** `turn`: once its calls have settled, another turn is asked for. `end`: the run ends like this turn. */
      readonly next: Next;
      /** The whole text, where the turn's end is known. After a crash it is what `turn.extended` has kept. */
      readonly text?: string;
      readonly usage?: Usage;
      /** The model that answered, or was asked. Absent: the agent did not name one. */
      readonly model?: ModelName;
      readonly finish?: TurnFinish;
      /** The answer in pieces, where the text alone does not tell it. */
      readonly parts?: readonly TurnPart[];
      /** Processes whose results it has received by waiting for them: no other turn is told. */
      readonly heard?: readonly ProcessId[];
    };

/** A model, in its provider's words: `anthropic.messages`, `claude-sonnet-4-5`. */
export interface ModelName {
  readonly provider: string;
  readonly id: string;
}

/** Why the model ended its answer. `calls`: it waits for their results. */
export type TurnFinish = "stop" | "calls" | "length" | "refusal" | "other";

/** A piece of an answer. `provider` is for whoever made it, and is handed back as it came. */
export type TurnPart =
  | { readonly kind: "text"; readonly text: string; readonly provider?: Json }
  | { readonly kind: "reasoning"; readonly text: string; readonly provider?: Json }
  /** The n-th of the calls this turn asked for. */
  | { readonly kind: "call"; readonly index: number }
  /** Something only the provider understands: a tool it ran itself, and what came of it. */
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
      /** May be begun again if a crash left its end unknown. */
      readonly idempotent?: true;
      /** Once begun it does not stop half-way: a stop button for it alone would lie. */
      readonly interruptible?: false;
      /** What the model's provider calls it; its ids may repeat, and are data. */
      readonly provider?: ProviderCall;
    }
  | {
      readonly type: "call.cancel_requested";
      readonly runId: RunId;
      readonly callId: CallId;
      readonly reason: CancelReason;
      /** Whether the model is to be reminded of it, besides seeing the result. */
      readonly remind?: true;
      /** It had not begun, and never will: it waited for an approval, a hook, a slot, or to be recorded. */
      readonly begun?: false;
    }
  | {
      readonly type: "call.settled";
      readonly runId: RunId;
      readonly callId: CallId;
      readonly outcome: Outcome;
      /** It ended without having begun: nothing was done. */
      readonly begun?: false;
      /** What it returned, or what it had put aside when it was stopped. */
      readonly result?: Json;
      /** What it is known to have changed, whatever became of it otherwise. */
      readonly changes?: readonly string[];
      /** Processes whose results it has told: they are not told again. */
      readonly heard?: readonly ProcessId[];
    };

/** Of the session, not of a run: a background process outlives the run that started it. */
export type ProcessEvent =
  | {
      readonly type: "process.requested";
      readonly processId: ProcessId;
      /** Whose end ends it: a call, or, in the background, the session. */
      readonly owner: CallId | SessionId;
      /** As it was given: a text for the shell, or a list of arguments. */
      readonly command: string | readonly string[];
      readonly cwd?: string;
      readonly feedback: Feedback;
      /** No work of the session but what carries it out: a cancel of the session leaves it, only its end ends it. */
      readonly lasting?: true;
    }
  | {
      readonly type: "process.started";
      readonly processId: ProcessId;
      readonly pid: number;
      /** How surely its tree dies. */
      readonly tier: string;
      readonly profile: string;
    }
  /**
   * It took longer than its call waits for it: from now on it belongs to its session. `dying`: its call has ended, and
   * it is being killed for this reason.
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
      /** `completed`: it ended by itself, whatever its exit code says. */
      readonly outcome: Outcome;
      readonly exit?: Exit;
      readonly durationMs?: number;
      readonly output?: OutputNote;
      /** Those of its tree that outlived everything, by pid. Somebody must look. */
      readonly escaped?: readonly number[];
      /** What would have been told to the session, had it not ended. */
      readonly dropped?: true;
    };

/**
 * What becomes of the result of a background process. `wake`: the session is told at its next turn, and if none comes
 * by itself a run is begun for it. `next-turn`: it waits for one. `silent`: the log has it.
 */
export type Feedback = "wake" | "next-turn" | "silent";

/** How the command itself ended: by its exit code, or by a signal. */
export interface Exit {
  readonly code?: number;
  readonly signal?: string;
}

/** What it has said: how much, the end of it, and where the rest is. */
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

/** What a turn cost. `estimated`: counted by us, because the provider did not say. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly estimated: boolean;
}

export type Event = SessionEvent | QueueEvent | RunEvent | TurnEvent | CallEvent | QuestionEvent | ProcessEvent;

/** An event as the log has it. */
export type Recorded = Event & { readonly seq: Seq; readonly at: number };
