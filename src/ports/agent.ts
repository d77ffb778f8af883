// The port for agents and tools: what they are given, and what they return. Types only.
import type { CancelReason, CancelReceipt, Failure, GivenReason } from "../core/model/cancel.ts";
import type { ModelName, Next, ProviderCall, TurnFinish, TurnPart, Usage } from "../core/model/event.ts";
import type { CallId, RunId, SessionId, TurnId } from "../core/model/ids.ts";
import type { Json, JsonInput, Prompt } from "../core/model/prompt.ts";
import type { QuestionOutcome } from "../core/model/question.ts";
import type { Message } from "../core/read/transcript.ts";
import type { Clock } from "./clock.ts";
import type { CallProcesses, TurnProcesses } from "./spawner.ts";

/** What carries out the turns of a run. One function, whether it is a user's own or the loop over a model. */
export type Agent = ((
  turn: Turn,
) => Promise<TurnResult | string | undefined | void> | TurnResult | string | undefined | void) & {
  /**
   * How a call that a turn had asked for at its end is carried out, after a restart: called for calls that may be begun
   * again, or that had not begun because they wait for an approval. Undefined: nobody can.
   */
  readonly resume?: (call: CallDetails) => CallRequest | undefined;
  /**
   * `lose`: its turns have effects that nobody can see from here, so none is asked again after a crash. A run that was
   * cut off ends as lost, whatever the host says.
   */
  readonly onCrash?: "lose";
  /** The ways in which it can go about its work. A session is set to one of them with `setMode()`. */
  readonly modes?: readonly AgentMode[];
  /** Which of its modes holds where nobody has set one. Default the first. */
  readonly mode?: string;
};

/** `id` is a word: small letters, digits and hyphens. The rest is for people who choose. */
export interface AgentMode {
  readonly id: string;
  readonly name: string;
  readonly description?: string;
}

export interface TurnResult {
  /** `turn`: ask again once the calls have settled. Default `end`, or `turn` if there are `calls`. */
  readonly next?: Next;
  /** Replaces what was emitted, if given. */
  readonly text?: string;
  readonly usage?: Usage;
  readonly model?: ModelName;
  readonly finish?: TurnFinish;
  /** The answer in pieces, where the text alone does not tell it. */
  readonly parts?: readonly TurnPart[];
  /**
   * What the turn wants done. Recorded with its end, begun together, each stoppable by itself; the next turn follows
   * when all of them have ended, and finds their results in the transcript.
   */
  readonly calls?: readonly CallRequest[];
}

/** Everything a turn may know and do. */
export interface Turn {
  readonly sessionId: SessionId;
  readonly runId: RunId;
  readonly turnId: TurnId;
  /** The directory its session works in, an absolute path. Undefined: it was given none. */
  readonly cwd: string | undefined;
  /** The mode of its session as it is now: a word of the agent's `modes`. Undefined: the agent has none. */
  readonly mode: string | undefined;
  readonly prompt: Prompt;
  /** 1, unless earlier workers vanished while they drove this run. */
  readonly attempt: number;
  /** What the run has used up before this turn. */
  readonly spent: RunUsage;
  readonly clock: Clock;
  /** Aborts when the run is cancelled. Its reason is the cancel's. */
  readonly signal: AbortSignal;
  /** How long it may take to stop, once it is asked to, before it is given up. */
  readonly graceMs: number;
  /** Commands that go on after the turn, as long as the session. */
  readonly processes: TurnProcesses;
  /**
   * The conversation so far, valid for providers, this run's prompt included. It begins with the run that made the last
   * summary, and leaves out prompts that were withdrawn before they began. Read when asked for.
   */
  transcript(): Promise<readonly Message[]>;
  /** Streams a piece of the answer. Text is kept, also if the run is cancelled or the worker dies. */
  emit(text: string, kind?: "text" | "reasoning"): void;
  /** Asked, when the turn ends without a result of its own, for what it has cost and what there is of the answer. */
  meter(read: () => Pick<TurnResult, "usage" | "parts" | "model">): void;
  /** Runs one tool. Anyone can cancel it alone; it never throws for a cancel, it answers with what happened. */
  call<T>(
    name: string,
    input: JsonInput,
    execute: (call: LiveCall) => Promise<T> | T,
    options?: CallOptions,
  ): Promise<CallResult<T extends void ? undefined : T>>;
  /** Stops one call of this run, by its id, and no other. The receipt says what that meant. */
  cancel(callId: string, options?: CallCancelOptions): Promise<CancelReceipt>;
  /** Takes in what people sent for this run since the last look, oldest first. The inbox goes to the transcript. */
  takeSteers(): Promise<readonly Prompt[]>;
  /** Puts a question to people. Rejects when the turn is stopped. */
  ask(question: QuestionRequest): Promise<QuestionResult>;
  /** From now on the model is given this summary instead of what was said before this turn. */
  compact(summary: string): Promise<void>;
  /** Cancels its own run, by policy: a budget is used up, or it goes round in circles. */
  stop(note: string): Promise<void>;
}

/** What a run has used up so far. */
export interface RunUsage extends Usage {
  readonly turns: number;
}

export interface QuestionRequest {
  readonly text: string;
  readonly options?: readonly string[];
  /** One of the options, and nothing else. */
  readonly only?: boolean;
  readonly data?: Json;
  /** Default one hour. */
  readonly deadlineMs?: number;
}

export type QuestionResult =
  | { readonly kind: "answered"; readonly value: Json; readonly by?: string }
  | { readonly kind: "expired"; readonly limitMs: number }
  /** Somebody took the question back. */
  | { readonly kind: "withdrawn"; readonly reason: CancelReason };

export type Execute = (call: LiveCall) => Promise<JsonInput | undefined | void> | JsonInput | undefined | void;

/** A call as the log has it. */
export interface CallDetails {
  readonly callId: CallId;
  readonly name: string;
  readonly input: Json;
}

export interface LiveCall extends CallDetails {
  readonly sessionId: SessionId;
  /** The directory its session works in, an absolute path. Undefined: it was given none. */
  readonly cwd: string | undefined;
  /** The mode of its session as it is now. Undefined: the agent has none. */
  readonly mode: string | undefined;
  readonly runId: RunId;
  readonly signal: AbortSignal;
  /** Whether it is to stop: also for one that is not interrupted, which may look here between two steps. */
  readonly stopping: boolean;
  readonly clock: Clock;
  /** Puts aside what there is so far: kept if the call is stopped. */
  partial(result: JsonInput): void;
  /** Tells whoever follows how far it is. Not kept. */
  progress(data: JsonInput): void;
  /** Notes what it has changed in the world: told to the model and to people, also if the call is stopped later. */
  changed(what: string): void;
  /** Puts a question to people. Rejects when the call is stopped. */
  ask(question: QuestionRequest): Promise<QuestionResult>;
  /** Requests an approval of exactly this while the call runs. Rejects when the call is stopped. */
  readonly approve?: (subject: Pick<CallDetails, "name" | "input">, approval?: Approval) => Promise<QuestionOutcome>;
  /** Commands, as whole trees that end with the call, or, in the background, with the session. */
  readonly processes: CallProcesses;
}

export interface CallCancelOptions {
  /** Default a rule of the agent's: `{ kind: "policy" }`. A string is the note of that. */
  readonly reason?: GivenReason;
  /** Whether the model is reminded of it at its next turn, besides seeing the result. Default true. */
  readonly remind?: boolean;
}

export interface CallOptions {
  /** Stops this call when it aborts, with its reason. Aborted before, the call never begins. */
  readonly signal?: AbortSignal;
  /** May be begun again if a crash left its end unknown. */
  readonly idempotent?: boolean;
  /** False: once begun it does not stop half-way. It is not signalled; it is waited for, and then given up. */
  readonly interruptible?: boolean;
  /** From when it begins; waiting for an approval or a slot does not count. */
  readonly timeoutMs?: number;
  /**
   * After a crash the turn is asked again. `recorded` (default): a call with the same name and input that had ended in
   * this turn before it was cut off is answered from the log instead of being repeated. What other turns have called
   * is theirs. `begin`: always a call of its own.
   */
  readonly again?: "recorded" | "begin";
  /**
   * People are asked before it begins. A function is given the input that would be carried out, after the host's hook,
   * and the mode the session is in by then; if it throws, people are asked.
   */
  readonly approval?:
    | boolean
    | Approval
    | ((input: Json, now: Pick<LiveCall, "mode">) => ApprovalOption | Promise<ApprovalOption>);
  /** Taken before it begins and given back when it has ended: how many may go on at once. */
  readonly slots?: Slots;
  /** The id of the call in another system, with data of that system. Recorded, and not interpreted. */
  readonly provider?: ProviderCall;
}

/** Whether people are asked. */
export type ApprovalOption = boolean | Approval;

export interface Approval {
  /** What "for the whole session" would cover. Default the name of the call. */
  readonly scope?: string;
  /** What people should know before they answer. */
  readonly note?: string;
  /** Without an answer by then it is denied. Default one hour. */
  readonly deadlineMs?: number;
}

/** Places of which there are only so many. */
export interface Slots {
  /** Calls back, now or later, with the means to give the place back. The answer takes the wish back. */
  take(taken: (giveBack: () => void) => void): () => void;
}

/** A call that a turn asks for at its end. */
export interface CallRequest extends Omit<CallOptions, "again"> {
  readonly name: string;
  readonly input: Json;
  readonly execute: Execute;
}

/** `T`: what its function returns. A value that comes from the log, after a crash, is what was recorded then. */
export type CallResult<T = Json | undefined> =
  | { readonly kind: "completed"; readonly callId: CallId; readonly value: T }
  | { readonly kind: "failed"; readonly callId: CallId; readonly message: string }
  | {
      readonly kind: "cancelled";
      readonly callId: CallId;
      readonly reason: CancelReason;
      readonly partial: Json | undefined;
      /** It did not stop in time. `error`: what it threw while stopping. `begun: false`: nothing was done. */
      readonly abandoned: boolean;
      readonly error?: Failure;
      readonly begun?: false;
    }
  /** It ran under a worker that vanished. Whether it did its work is not known. */
  | { readonly kind: "lost"; readonly callId: CallId };
