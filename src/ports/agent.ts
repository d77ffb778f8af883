// The port for agents and tools: what they receive, and what they return. Types only.
import type { CancelReason, CancelReceipt, Failure, GivenReason } from "../core/model/cancel.ts";
import type { ModelName, Next, ProviderCall, TurnFinish, TurnPart, Usage } from "../core/model/event.ts";
import type { CallId, RunId, SessionId, TurnId } from "../core/model/ids.ts";
import type { Json, JsonInput, Prompt } from "../core/model/prompt.ts";
import type { QuestionOutcome } from "../core/model/question.ts";
import type { Message } from "../core/read/transcript.ts";
import type { Clock } from "./clock.ts";
import type { CallProcesses, TurnProcesses } from "./spawner.ts";

/** Runs the turns of a run. A custom function, or the loop over a model. */
export type Agent = ((
  turn: Turn,
) => Promise<TurnResult | string | undefined | void> | TurnResult | string | undefined | void) & {
  /**
   * Makes a call executable again after a restart: used for calls that a turn requested at its end and that may be
   * begun again, or had not begun because they wait for an approval. Returns undefined for a call that cannot be
   * resumed.
   */
  readonly resume?: (call: CallDetails) => CallRequest | undefined;
  /**
   * `lose`: its turns have effects that Belay does not record, so none is repeated after a crash. A run that was cut
   * off ends as `lost`, whatever the host's setting.
   */
  readonly onCrash?: "lose";
  /** The modes it supports. `setMode()` sets one of them for a session. */
  readonly modes?: readonly AgentMode[];
  /** The mode of sessions in which none was set. Default: the first. */
  readonly mode?: string;
};

/** `id` is one word of lowercase letters, digits and hyphens. `name` and `description` are shown in menus. */
export interface AgentMode {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
}

export interface TurnResult {
  /** `turn`: request another turn once the calls have settled. Default `end`, or `turn` if there are `calls`. */
  readonly next?: Next;
  /** Replaces the emitted text, if given. */
  readonly text?: string;
  readonly usage?: Usage;
  readonly model?: ModelName;
  readonly finish?: TurnFinish;
  /** The answer in parts, if the text alone is not the whole answer. */
  readonly parts?: readonly TurnPart[];
  /**
   * The calls that the turn requests. They are recorded with its end and begin together, and each can be stopped
   * separately. The next turn follows when all have ended, and finds their results in the transcript.
   */
  readonly calls?: readonly CallRequest[];
}

/** The context of a turn: its data, and everything it can do. */
export interface Turn {
  readonly sessionId: SessionId;
  readonly runId: RunId;
  readonly turnId: TurnId;
  /** The working directory of its session, an absolute path. Undefined: the session has none. */
  readonly cwd: string | undefined;
  /** The current mode of its session, an id from the agent's `modes`. Undefined: the agent has none. */
  readonly mode: string | undefined;
  readonly prompt: Prompt;
  /** 1, plus the number of workers that vanished while they ran this run. */
  readonly attempt: number;
  /** The usage of the run before this turn. */
  readonly spent: RunUsage;
  readonly clock: Clock;
  /** Aborts when the run is cancelled. Its reason is the cancel's. */
  readonly signal: AbortSignal;
  /** How long the turn may take to stop before it is abandoned. */
  readonly graceMs: number;
  /** Commands that outlive the turn and end with the session. */
  readonly processes: TurnProcesses;
  /**
   * The conversation so far, valid for providers, including this run's prompt. It begins with the run that made the
   * last summary, and omits prompts that were withdrawn before they began. Read on each call.
   */
  transcript(): Promise<readonly Message[]>;
  /** Streams a piece of the answer. Text is kept even if the run is cancelled or the worker dies. */
  emit(text: string, kind?: "text" | "reasoning"): void;
  /**
   * Registers a function that returns the usage and the parts so far. It is called when the turn ends without a result.
   */
  meter(read: () => Pick<TurnResult, "usage" | "parts" | "model">): void;
  /** Runs one tool as a call, which can be cancelled separately. A cancel does not throw; the result reports it. */
  call<T>(
    name: string,
    input: JsonInput,
    execute: (call: LiveCall) => Promise<T> | T,
    options?: CallOptions,
  ): Promise<CallResult<T extends void ? undefined : T>>;
  /** Stops one call of this run, by its id, and no other. The receipt has the effect. */
  cancel(callId: string, options?: CallCancelOptions): Promise<CancelReceipt>;
  /**
   * Takes in the steers that arrived for this run since the last call, oldest first. Inbox items go to the transcript.
   */
  takeSteers(): Promise<readonly Prompt[]>;
  /** Asks people a question. Rejects when the turn is stopped. */
  ask(question: QuestionRequest): Promise<QuestionResult>;
  /** From now on the model is given this summary instead of the conversation before this turn. */
  compact(summary: string): Promise<void>;
  /** Cancels its own run with reason `policy`, for example because a budget is used up or the model repeats itself. */
  stop(note: string): Promise<void>;
}

/** What a run has used up so far. */
export interface RunUsage extends Usage {
  readonly turns: number;
}

export interface QuestionRequest {
  readonly text: string;
  readonly options?: readonly string[];
  /** The answer must be one of the options. */
  readonly only?: boolean;
  readonly data?: Json;
  /** Default one hour. */
  readonly deadlineMs?: number;
}

export type QuestionResult =
  | { readonly kind: "answered"; readonly value: Json; readonly by?: string }
  | { readonly kind: "expired"; readonly limitMs: number }
  /** The question was withdrawn by a client. */
  | { readonly kind: "withdrawn"; readonly reason: CancelReason };

export type Execute = (call: LiveCall) => Promise<JsonInput | undefined | void> | JsonInput | undefined | void;

/** A call as it is in the log. */
export interface CallDetails {
  readonly callId: CallId;
  readonly name: string;
  readonly input: Json;
}

export interface LiveCall extends CallDetails {
  readonly sessionId: SessionId;
  /** The working directory of its session, an absolute path. Undefined: the session has none. */
  readonly cwd: string | undefined;
  /** The current mode of its session. Undefined: the agent has none. */
  readonly mode: string | undefined;
  readonly runId: RunId;
  readonly signal: AbortSignal;
  /**
   * Whether it is being stopped. Set even for a call that is not interruptible, which may check it between two steps.
   */
  readonly stopping: boolean;
  readonly clock: Clock;
  /** Stores the result so far, which is kept if the call is stopped. */
  partial(result: JsonInput): void;
  /** Sends progress to followers. Not recorded. */
  progress(data: JsonInput): void;
  /** Reports a change it has made. The model and people see it, even if the call is stopped later. */
  changed(what: string): void;
  /** Asks people a question. Rejects when the call is stopped. */
  ask(question: QuestionRequest): Promise<QuestionResult>;
  /** Requests an approval of exactly this while the call runs. Rejects when the call is stopped. */
  readonly approve?: (subject: Pick<CallDetails, "name" | "input">, approval?: Approval) => Promise<QuestionOutcome>;
  /** Commands, as whole process trees. They end with the call or, in the background, with the session. */
  readonly processes: CallProcesses;
}

export interface CallCancelOptions {
  /** Default `{ kind: "policy" }`. A string is the note of that. */
  readonly reason?: GivenReason;
  /** Whether the model gets a reminder at its next turn, besides the result. Default true. */
  readonly remind?: boolean;
}

export interface CallOptions {
  /** Stops this call when it aborts, with its reason. If it is aborted already, the call never begins. */
  readonly signal?: AbortSignal;
  /** May be begun again if a crash left its end unknown. */
  readonly idempotent?: boolean;
  /** False: once begun it is not signalled. It may finish within the grace, and is then abandoned. */
  readonly interruptible?: boolean;
  /** Counted from its beginning; waiting for an approval or a slot does not count. */
  readonly timeoutMs?: number;
  /**
   * A turn is repeated after a crash. `recorded` (default): if a call with the same name and input had ended in this
   * turn before the crash, its recorded result is returned. Calls of other turns do not count. `begin`: always a new
   * call.
   */
  readonly again?: "recorded" | "begin";
  /**
   * Whether the call needs an approval before it begins. A function receives the input that would be used, after the
   * host's hook, and the session's mode at that time. If it throws, an approval is required.
   */
  readonly approval?:
    | boolean
    | Approval
    | ((input: Json, now: Pick<LiveCall, "mode">) => ApprovalOption | Promise<ApprovalOption>);
  /** Limits concurrent calls: a slot is taken before the call begins, and released when it has ended. */
  readonly slots?: Slots;
  /** The id of the call in another system, with data of that system. Recorded, and not interpreted. */
  readonly provider?: ProviderCall;
}

/** Whether an approval is required, and with which options. */
export type ApprovalOption = boolean | Approval;

export interface Approval {
  /** What an approval for the whole session covers. Default: the name of the call. */
  readonly scope?: string;
  /** Information for people who answer. */
  readonly note?: string;
  /** The approval is denied without an answer by then. Default one hour. */
  readonly deadlineMs?: number;
}

/** A semaphore. */
export interface Slots {
  /** Calls `taken` with a release function as soon as a slot is free. Returns a function that cancels the request. */
  take(taken: (release: () => void) => void): () => void;
}

/** A call that a turn requests at its end. */
export interface CallRequest extends Omit<CallOptions, "again"> {
  readonly name: string;
  readonly input: Json;
  readonly execute: Execute;
}

/** `T`: what its function returns. After a crash the value comes from the log, as it was recorded. */
export type CallResult<T = Json | undefined> =
  | { readonly kind: "completed"; readonly callId: CallId; readonly value: T }
  | { readonly kind: "failed"; readonly callId: CallId; readonly message: string }
  | {
      readonly kind: "cancelled";
      readonly callId: CallId;
      readonly reason: CancelReason;
      readonly partial: Json | undefined;
      /** It did not stop within its grace. `error`: what it threw while stopping. `begun: false`: nothing was done. */
      readonly abandoned: boolean;
      readonly error?: Failure;
      readonly begun?: false;
    }
  /** It ran under a worker that vanished. Whether it did its work is unknown. */
  | { readonly kind: "lost"; readonly callId: CallId };
