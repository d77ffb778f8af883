// The interface of Belay, wherever it runs: the library implements it in its own process, the client over the network.
// Code written against it works with both. Types only.

import type { CancelReceipt, GivenReason, Outcome, SessionReceipt } from "../core/model/cancel.ts";
import type { Accepted, InboxReceipt, ModeReceipt, QueuePlace, QueueReceipt } from "../core/model/command.ts";
import type { Delta, Gap } from "../core/model/delta.ts";
import type { Recorded } from "../core/model/event.ts";
import type { CallId, ProcessId, RunId, Seq, SessionId } from "../core/model/ids.ts";
import type { InboxItem } from "../core/model/inbox.ts";
import type { Delivery, Json, Prompt } from "../core/model/prompt.ts";
import type { AnswerReceipt, Question } from "../core/model/question.ts";
import type { IdsFound, ProcessRow, RunRow } from "../core/model/rows.ts";
import type { SessionDeleted, Trimmed } from "../core/model/upkeep.ts";
import type { CallView } from "../core/read/call-view.ts";
import type { RunResult } from "../core/read/run-result.ts";
import type { TextOptions } from "../core/read/run-text.ts";
import type { RunView } from "../core/read/run-view.ts";
import type { Message } from "../core/read/transcript.ts";
import type { Explanation, Status } from "./explanation.ts";
import type { OutputPage, OutputPageOptions, ProcessInfo, ProcessResult } from "./spawner.ts";
import type { SessionRow } from "./store.ts";

export interface BelayControl extends AsyncDisposable {
  /** Answers questions and approvals. */
  readonly questions: AnswersControl;
  /** Creates a session; with an `id` or a `key` that was used before, returns the existing one. */
  createSession(options?: CreateOptions): Promise<SessionControl>;
  /** Submits a prompt in a new session. A `key` that was used before returns the same session and run. */
  prompt(prompt: string | Prompt, options?: BeginOptions): RunControl;
  /** A handle on a session, without a lookup: requests to a session that does not exist are refused. */
  session(id: string): SessionControl;
  /** Sessions in order of creation, or newest first. */
  sessions(page?: SessionsPage): Promise<readonly SessionRow[]>;
  /**
   * Ids of sessions, runs, calls, processes and open questions that begin with `prefix`, live or settled. Sorted, so
   * that an exact match is first.
   */
  ids(prefix: string, options?: IdsOptions): Promise<IdsFound>;
  /** A handle on a run that was accepted earlier. */
  run(id: string): Promise<RunControl>;
  /** One call: its tool, input, state, and result. Rejects with `not_found`. */
  call(id: string): Promise<CallView>;
  /** Stops the session, run, call, process or question with this id. The receipt has the effect. */
  cancel(target: string, options?: CancelOptions): Promise<SessionReceipt | (CancelReceipt & AwaitedOutcome)>;
  /** Stops the run of the prompt that `prompt()` was given with this key, like `SessionControl.cancelPrompt()`. */
  cancelPrompt(key: string, options?: BegunCancelOptions): Promise<CancelReceipt & { readonly runId?: RunId }>;
  /** Cancels every session that has running or waiting work: what was accepted before, and nothing after. */
  cancelAll(options?: CancelAllOptions): Promise<readonly CoveredSession[]>;
  /** An explanation of each session that is busy or has processes. */
  live(options?: TenantScope): Promise<readonly Explanation[]>;
  /** The session of a run, call, question or process. Undefined: there is none with this id. */
  findSession(id: string): Promise<SessionId | undefined>;
  /**
   * The events of all sessions, from now on or from a cursor, until the loop ends. For monitoring a server; the log of
   * one session is read with its `events()`, which misses nothing.
   */
  events(options?: AllEventsOptions): AsyncGenerator<AllSessionsEvent, void>;
  status(): Promise<Status>;
  /** The library shuts down; a client only disconnects. */
  close(): Promise<unknown>;
}

/** Limits a request to one tenant of a server. The ids of sessions of the tenant `acme` begin with `ses_acme.`. */
export interface TenantScope {
  readonly tenant?: string;
}

/** The user that sends a request, for a host with several users. A client ignores it: its server knows the user. */
export interface Sender {
  readonly actor?: string;
}

/** A key with which the same session is created only once. */
export interface SessionKey {
  readonly key?: string;
  /** The owner of the key: keys of different owners are independent. For servers that act for several users. */
  readonly keyOf?: string;
}

/** For the cancel of a prompt that `BelayControl.prompt()` was given. */
export type BegunCancelOptions = PromptCancelOptions & TenantScope & Pick<SessionKey, "keyOf">;

export interface CreateOptions extends TenantScope, SessionKey {
  readonly id?: string;
  readonly title?: string;
  /**
   * The working directory of the session: an absolute path on the machine of Belay. Default the workspace. Refused as
   * `forbidden` if the host does not allow the choice, and as `invalid` if it is not a directory.
   */
  readonly cwd?: string;
}

export interface BeginOptions extends TenantScope, Sender, SessionKey {
  readonly title?: string;
  /** The working directory of the session, as in `createSession()`. */
  readonly cwd?: string;
}

export interface SessionsPage extends TenantScope {
  /** Default `oldest`: in order of creation. */
  readonly order?: "oldest" | "newest";
  /** The last session of the previous page, with `order: "oldest"`. */
  readonly after?: string;
  /** The last session of the previous page, with `order: "newest"`. */
  readonly before?: string;
  readonly limit?: number;
}

export interface IdsOptions extends TenantScope {
  /** Default 100. */
  readonly limit?: number;
}

export interface CancelAllOptions extends TenantScope, Sender, Pick<CancelOptions, "reason" | "waitMs" | "key"> {
  readonly keyOf?: string;
  /**
   * Prompts for which the sender has received no answer: they are stopped even if they arrive later. Without a
   * `sessionId`: a prompt that was sent with its own session. A client adds its own prompts.
   */
  readonly prompts?: readonly { readonly sessionId?: string; readonly key: string }[];
  /** `keep`: background work continues. Default `stop`. */
  readonly background?: "keep" | "stop";
}

export interface CoveredSession {
  readonly sessionId: SessionId;
  readonly receipt: SessionReceipt;
}

export interface AllEventsOptions extends TenantScope {
  /** The `cursor` of the last event received. Without it: from now on. */
  readonly after?: string;
  readonly signal?: AbortSignal;
}

/**
 * One event of one session. The first item is `here`, with the cursor at which the feed begins. `missed`: some events
 * are no longer in memory; read the sessions' logs.
 */
export type AllSessionsEvent =
  | { readonly type: "event"; readonly cursor: string; readonly sessionId: SessionId; readonly event: Recorded }
  | { readonly type: "here" | "missed"; readonly cursor: string };

export interface SessionControl {
  readonly id: SessionId;
  readonly queue: QueueControl;
  readonly processes: ProcessesControl;
  /** Its row. Rejects with `not_found`. */
  row(): Promise<SessionRow>;
  /** Registers a prompt in the tick of the call and returns its run. A later cancel covers it. */
  prompt(prompt: string | Prompt, options?: PromptOptions): RunControl;
  /** Stops everything accepted before, and nothing accepted after, including background processes. */
  cancel(options?: SessionCancelOptions): Promise<SessionReceipt>;
  /** One call of this session, by Belay's id or by the model's. Rejects with `not_found`. */
  call(id: string): Promise<CallView>;
  /** Stops one call of this session, by Belay's id or by the model's. */
  cancelCall(id: string, options?: CancelOptions): Promise<CancelReceipt & AwaitedOutcome>;
  /** Stops the run of the prompt with this key, even before it is accepted. */
  cancelPrompt(key: string, options?: PromptCancelOptions): Promise<CancelReceipt & { readonly runId?: RunId }>;
  /** Closes the session: stops everything, keeps the log, and accepts nothing new. */
  close(options?: Pick<CancelOptions, "reason" | "key">): Promise<SessionReceipt>;
  /** All events after a position, then new events as they are recorded, until the loop ends or `signal` aborts. */
  events(options?: EventsOptions): AsyncGenerator<Recorded | Delta | Gap, void>;
  /** The same, in pages of the events available. */
  pages(options?: EventsOptions): AsyncGenerator<readonly (Recorded | Delta | Gap)[], void>;
  transcript(): Promise<readonly Message[]>;
  /** The open questions of its live run. */
  questions(): Promise<readonly Question[]>;
  /** Adds a note to the model's next turn. It is not a prompt. */
  post(item: InboxItem, options?: Pick<CancelOptions, "key">): Promise<InboxReceipt>;
  /**
   * Sets the mode of its agent, one of the `modes` of `status()`. Calls that have begun are not affected. Refused as
   * `invalid` if the agent has no such mode.
   */
  setMode(mode: string, options?: ModeOptions): Promise<ModeReceipt>;
  /** Why it is busy: what it runs, what it waits for, what is queued, and what a cancel would do. */
  explain(): Promise<Explanation>;
  /**
   * Removes the events before a position, but never those of runs without an outcome, never part of a run, and never
   * what the next request to a model needs. The result has the reason if fewer events were removed.
   */
  trim(before: Seq): Promise<Trimmed>;
  /** Stops everything and deletes the session permanently, with its log and the output of its processes. */
  delete(options?: Pick<CancelOptions, "reason">): Promise<SessionDeleted>;
  /** The run of the prompt with this key. Rejects with `not_found`. */
  findRun(key: string): Promise<RunControl>;
  /** Its runs, newest first. */
  runs(page?: { readonly before?: Seq; readonly limit?: number }): Promise<readonly RunRow[]>;
}

export interface PromptOptions extends Sender {
  /** How it joins a busy session. Default `queue`. */
  readonly delivery?: Delivery;
  /** A repeated key and prompt return the same run; the same key with another prompt is a conflict. */
  readonly key?: string;
}

export interface ModeOptions {
  /** The user that makes the change. */
  readonly by?: string;
  /** The same change again with this key gets the same answer. */
  readonly key?: string;
}

export interface EventsOptions {
  readonly after?: Seq;
  readonly deltas?: "with" | "without";
  readonly signal?: AbortSignal;
}

export interface CancelOptions {
  /** A note, or `{ kind: "user" | "policy", note, by }`. The first reason given is kept. */
  readonly reason?: GivenReason;
  /**
   * How long to wait for the outcome; the receipt then has it, or reports the limit. By default a cancel of one call or
   * process waits 5000 ms, any other does not wait.
   */
  readonly waitMs?: number;
  /** For one call: whether the model gets a reminder at its next turn, besides the result. Default true. */
  readonly remind?: boolean;
  /** The same cancel again with this key gets the same answer, and stops nothing newer. */
  readonly key?: string;
}

export interface PromptCancelOptions extends Sender, Pick<CancelOptions, "reason" | "key"> {
  /** The prompt may not have arrived: if so, it is withdrawn when it does. A client sets this itself. */
  readonly early?: boolean;
}

export interface SessionCancelOptions extends CancelOptions, Sender {
  /** Keys of prompts without an answer so far: stopped even if they arrive later. A client adds its own. */
  readonly prompts?: readonly string[];
  /** `keep`: background work continues. Default `stop`. */
  readonly background?: "keep" | "stop";
  /** `queue`: only the runs that wait are withdrawn. The live run and background work continue. */
  readonly only?: "queue";
}

/** The result of waiting for the outcome, if requested. */
export interface AwaitedOutcome {
  readonly ended?:
    | { readonly kind: "settled"; readonly outcome: Outcome }
    | { readonly kind: "limit"; readonly waitMs: number };
  /** For a call: its tool. */
  readonly tool?: string;
  /** For a call that was named by the model's id: Belay's id. */
  readonly callId?: CallId;
}

export interface RunControl extends AsyncIterable<Recorded | Delta | Gap> {
  readonly sessionId: SessionId;
  /** In the library, available at once; over the network, once `accepted` has resolved. Reading it earlier throws. */
  readonly id: RunId;
  /**
   * Resolves when the prompt is durable; rejects with a ControlError if it was refused, and then nothing was changed.
   */
  readonly accepted: Promise<Accepted>;
  /** Resolves with this run's own outcome, once it is durable. */
  readonly outcome: Promise<Outcome>;
  /** Its row. */
  row(): Promise<RunRow>;
  /** Stops this run and no other, even before its acceptance was answered. */
  cancel(options?: CancelOptions): Promise<CancelReceipt & AwaitedOutcome>;
  /** The text of its last turn, once it has ended. With `{ all: true }`, that of all turns. */
  text(options?: TextOptions): Promise<string>;
  /** Waits for its end, and resolves with its answer. Throws a RunError unless it completed. */
  result(): Promise<RunResult>;
  /** Its current view: prompt, key, times, outcome, text, usage, calls. */
  view(): Promise<RunView>;
}

export interface QueuedRun {
  readonly runId: RunId;
  readonly prompt: Prompt;
  readonly joined: "queue" | "steer";
}

/** The same change again with this key gets the same answer. */
export type Keyed = Pick<CancelOptions, "key">;

/** The runs that have not begun. Each change is atomic against their start: it applies, or returns `started`. */
export interface QueueControl {
  list(): Promise<readonly QueuedRun[]>;
  edit(run: string, prompt: string | Prompt, options?: Keyed): Promise<QueueReceipt>;
  move(run: string, to: QueuePlace, options?: Keyed): Promise<QueueReceipt>;
  withdraw(run: string, options?: Pick<CancelOptions, "reason" | "key">): Promise<QueueReceipt>;
  /** Withdraws everything that waits, queued runs and steers, at once. The live run continues. */
  clear(options?: QueueClearOptions): Promise<SessionReceipt>;
  /** The live run takes it in at its next turn, instead of it running separately. */
  steer(run: string, options?: Keyed): Promise<QueueReceipt>;
}

export type QueueClearOptions = Omit<SessionCancelOptions, "background" | "only" | "waitMs">;

export interface AnswersControl {
  /** Approves the call, once or, with `remember: "session"`, for all calls of its scope in this session. */
  allow(id: string, options?: ApprovalOptions & { readonly remember?: "session" }): Promise<AnswerReceipt>;
  /** The call is not executed. The model receives the name of the user and the note, and continues. */
  deny(id: string, options?: ApprovalOptions): Promise<AnswerReceipt>;
  /** Answers a question that is not an approval. */
  answer(id: string, value: Json, options?: AnswerOptions): Promise<AnswerReceipt>;
}

export interface AnswerOptions {
  /** The user that answers. */
  readonly by?: string;
  /** The same answer again with this key gets the same receipt. */
  readonly key?: string;
}

export interface ApprovalOptions extends AnswerOptions {
  readonly note?: string;
  /** The digest of the input that was shown: an approval of another input is refused as a conflict. */
  readonly digest?: string;
}

export interface ProcessesControl {
  /** Any process of this session, even one that has ended. */
  get(id: string): Promise<ProcessControl>;
  /** Live processes. */
  list(): Promise<readonly ProcessInfo[]>;
  /** All processes, newest first. */
  history(page?: { readonly before?: Seq; readonly limit?: number }): Promise<readonly ProcessRow[]>;
}

/** A handle on a process. */
export interface ProcessControl {
  readonly id: ProcessId;
  readonly sessionId: SessionId;
  /** Undefined once it has ended. In a client: as of the request. */
  readonly info: ProcessInfo | undefined;
  wait(options?: { readonly limitMs?: number; readonly signal?: AbortSignal }): Promise<ProcessResult | undefined>;
  cancel(reason?: GivenReason): Promise<CancelReceipt>;
  write(data: string | Uint8Array): Promise<void>;
  endInput(): void | Promise<void>;
  resize(size: { readonly columns: number; readonly rows: number }): Promise<void>;
  /** A page of its output. Undefined: none is kept. */
  read(options?: OutputPageOptions): Promise<OutputPage | undefined>;
  /** Its output as it is written, starting at `offset`, until it has ended. */
  follow(options?: OutputPageOptions & { readonly signal?: AbortSignal }): AsyncGenerator<OutputPage, void>;
}
