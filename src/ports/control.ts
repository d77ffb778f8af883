// What can be asked of Belay, wherever it runs: the library answers in its own process, the client over the network.
// Code written against this does not know which. Types only.

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
  /** What people are asked, and how they answer. */
  readonly questions: AnswersControl;
  /** A new session; or, with an `id` or a `key` that was used before, the one that exists. */
  createSession(options?: CreateOptions): Promise<SessionControl>;
  /** A prompt in a session of its own. With a `key` that was used before, it is the same session and the same run. */
  prompt(prompt: string | Prompt, options?: BeginOptions): RunControl;
  /** A handle on a session. Nothing is looked up: a session that does not exist refuses what is asked of it. */
  session(id: string): SessionControl;
  /** Sessions in order of creation, or newest first. */
  sessions(page?: SessionsPage): Promise<readonly SessionRow[]>;
  /**
   * Ids of sessions, runs, calls, processes and open questions that begin with `prefix`, live or at rest. In order, so
   * that an exact match is first.
   */
  ids(prefix: string, options?: IdsOptions): Promise<IdsFound>;
  /** A handle on a run that was accepted earlier. */
  run(id: string): Promise<RunControl>;
  /** One call: its tool, input, state, and result. Rejects with `not_found`. */
  call(id: string): Promise<CallView>;
  /** Stops a session, run, call, process or question, whichever the id names. The receipt says what that meant. */
  cancel(target: string, options?: CancelOptions): Promise<SessionReceipt | (CancelReceipt & AwaitedOutcome)>;
  /** Stops the run of the prompt that `prompt()` was given with this key, as `SessionControl.cancelPrompt()` does. */
  cancelPrompt(key: string, options?: BegunCancelOptions): Promise<CancelReceipt & { readonly runId?: RunId }>;
  /** The same for every session that has anything going on: what was accepted before, and nothing after. */
  cancelAll(options?: CancelAllOptions): Promise<readonly CoveredSession[]>;
  /** What is going on: an explanation of each session that is busy or has processes. */
  live(options?: TenantScope): Promise<readonly Explanation[]>;
  /** The session a run, call, question or process belongs to. Undefined: there is none of that name. */
  findSession(id: string): Promise<SessionId | undefined>;
  /**
   * What is recorded in any session, from now on or from a cursor on, until the loop is left. For whoever watches a
   * whole house; the log of one session is read with its own `events()`, which misses nothing.
   */
  events(options?: AllEventsOptions): AsyncGenerator<AllSessionsEvent, void>;
  status(): Promise<Status>;
  /** The library shuts down; a client lets go. */
  close(): Promise<unknown>;
}

/** A house can be divided: the ids of sessions of the tenant `acme` begin with `ses_acme.`. */
export interface TenantScope {
  readonly tenant?: string;
}

/** Who sends it, where a host serves several users. A client is one user, and ignores this: its server knows which. */
export interface Sender {
  readonly actor?: string;
}

/** Of a key that makes the same session when it is used again. */
export interface SessionKey {
  readonly key?: string;
  /** Whose key it is: those of different owners never meet. For servers that act in the name of others. */
  readonly keyOf?: string;
}

/** For the stop of a prompt that has a session to itself. */
export type BegunCancelOptions = PromptCancelOptions & TenantScope & Pick<SessionKey, "keyOf">;

export interface CreateOptions extends TenantScope, SessionKey {
  readonly id?: string;
  readonly title?: string;
  /**
   * The directory the session works in: an absolute path, where Belay runs. Default the workspace. Refused as
   * `forbidden` where the host does not let it be chosen, and as `invalid` if it is no directory.
   */
  readonly cwd?: string;
}

export interface BeginOptions extends TenantScope, Sender, SessionKey {
  readonly title?: string;
  /** The directory the session works in, as with `createSession()`. */
  readonly cwd?: string;
}

export interface SessionsPage extends TenantScope {
  /** Default `oldest`: in order of creation. */
  readonly order?: "oldest" | "newest";
  /** The last session of the page before, with `order: "oldest"`. */
  readonly after?: string;
  /** The last session of the page before, with `order: "newest"`. */
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
   * Prompts that the sender has not seen answered: they are stopped even if they arrive later. Without a `sessionId`:
   * one that has a session to itself. A client adds its own.
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
  /** The `cursor` of the last one heard. Without it: from now on. */
  readonly after?: string;
  readonly signal?: AbortSignal;
}

/**
 * One fact of one session. First comes `here`, which says where the watching begins. `missed`: some facts are not at
 * hand any more; look at the sessions.
 */
export type AllSessionsEvent =
  | { readonly type: "event"; readonly cursor: string; readonly sessionId: SessionId; readonly event: Recorded }
  | { readonly type: "here" | "missed"; readonly cursor: string };

export interface SessionControl {
  readonly id: SessionId;
  readonly queue: QueueControl;
  readonly processes: ProcessesControl;
  /** As it stands. Rejects with `not_found`. */
  row(): Promise<SessionRow>;
  /** Registers a prompt in this very tick and hands back its run. A cancel that follows covers it. */
  prompt(prompt: string | Prompt, options?: PromptOptions): RunControl;
  /** Stops everything accepted before, and nothing accepted after; also background work. */
  cancel(options?: SessionCancelOptions): Promise<SessionReceipt>;
  /** One call of this session, by our id or by the model's own. Rejects with `not_found`. */
  call(id: string): Promise<CallView>;
  /** Stops one call of this session, by our id or by the model's own. */
  cancelCall(id: string, options?: CancelOptions): Promise<CancelReceipt & AwaitedOutcome>;
  /** Stops the run of the prompt that was given this key, also while it is still being accepted. */
  cancelPrompt(key: string, options?: PromptCancelOptions): Promise<CancelReceipt & { readonly runId?: RunId }>;
  /** Ends the session: stops everything, keeps the log, accepts nothing any more. */
  close(options?: Pick<CancelOptions, "reason" | "key">): Promise<SessionReceipt>;
  /** Everything after a position, then everything as it happens, until the loop is left or `signal` aborts. */
  events(options?: EventsOptions): AsyncGenerator<Recorded | Delta | Gap, void>;
  /** The same, as many at a time as there are. */
  pages(options?: EventsOptions): AsyncGenerator<readonly (Recorded | Delta | Gap)[], void>;
  transcript(): Promise<readonly Message[]>;
  /** What people are asked by its live run and have not answered yet. */
  questions(): Promise<readonly Question[]>;
  /** Tells the model something at its next turn, as a note and not as a prompt. */
  post(item: InboxItem, options?: Pick<CancelOptions, "key">): Promise<InboxReceipt>;
  /**
   * How its agent goes about its work from now on: one of the `modes` that `status()` names. What has begun is not
   * touched by it. Refused as `invalid` if the agent has no such mode.
   */
  setMode(mode: string, options?: ModeOptions): Promise<ModeReceipt>;
  /** Why it is busy: what it does, what it waits for, what is queued, and what a cancel would do. */
  explain(): Promise<Explanation>;
  /**
   * Removes the events before a position. Never those of runs without an outcome, never a part of a run, and never
   * what the next request to a model needs; the answer says which of these kept it from removing more.
   */
  trim(before: Seq): Promise<Trimmed>;
  /** Stops everything and deletes the session permanently, with its log and the output of its processes. */
  delete(options?: Pick<CancelOptions, "reason">): Promise<SessionDeleted>;
  /** The run of the prompt that was given this key. Rejects with `not_found`. */
  findRun(key: string): Promise<RunControl>;
  /** Its runs, newest first. */
  runs(page?: { readonly before?: Seq; readonly limit?: number }): Promise<readonly RunRow[]>;
}

export interface PromptOptions extends Sender {
  /** How it joins a busy session. Default `queue`. */
  readonly delivery?: Delivery;
  /** The same key and prompt again give the same run; the same key with another prompt is a conflict. */
  readonly key?: string;
}

export interface ModeOptions {
  /** Who wants that. */
  readonly by?: string;
  /** The same change again under this key gets the same answer. */
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
   * Wait this long for the settlement; the receipt then also says how it ended, or that the limit came first. By
   * default a cancel of one call or process waits 5000, any other does not wait.
   */
  readonly waitMs?: number;
  /** For one call: whether the model is reminded of it at its next turn, besides seeing the result. Default true. */
  readonly remind?: boolean;
  /** The same cancel again under this key gets the same answer, and touches nothing that came later. */
  readonly key?: string;
}

export interface PromptCancelOptions extends Sender, Pick<CancelOptions, "reason" | "key"> {
  /** The prompt may not have arrived: if so, it is withdrawn when it does. A client knows that of its own. */
  readonly early?: boolean;
}

export interface SessionCancelOptions extends CancelOptions, Sender {
  /** Keys of prompts that the sender has not seen answered: stopped even if they arrive later. A client adds its. */
  readonly prompts?: readonly string[];
  /** `keep`: background work continues. Default `stop`. */
  readonly background?: "keep" | "stop";
  /** `queue`: only the runs that wait are withdrawn. The live run and background work continue. */
  readonly only?: "queue";
}

/** What waiting for the settlement brought, if it was asked for. */
export interface AwaitedOutcome {
  readonly ended?:
    | { readonly kind: "settled"; readonly outcome: Outcome }
    | { readonly kind: "limit"; readonly waitMs: number };
  /** Of a call: its tool. */
  readonly tool?: string;
  /** Of a call that was named by the model's own id: ours. */
  readonly callId?: CallId;
}

export interface RunControl extends AsyncIterable<Recorded | Delta | Gap> {
  readonly sessionId: SessionId;
  /** In the library known at once; over the network once `accepted` has resolved, and asking earlier throws. */
  readonly id: RunId;
  /** Resolves when the prompt is durable; rejects with a ControlError if it was refused, and then nothing happened. */
  readonly accepted: Promise<Accepted>;
  /** Resolves with this run's own outcome, once it is durable. */
  readonly outcome: Promise<Outcome>;
  /** As it stands. */
  row(): Promise<RunRow>;
  /** Stops this run and no other, also before its acceptance was answered. */
  cancel(options?: CancelOptions): Promise<CancelReceipt & AwaitedOutcome>;
  /** The text of its last turn, once it has ended. With `{ all: true }` that of all its turns. */
  text(options?: TextOptions): Promise<string>;
  /** Waits for its end, and resolves with its answer. Throws a RunError unless it completed. */
  result(): Promise<RunResult>;
  /** What is known of it now: prompt, key, times, outcome, text, usage, calls. */
  view(): Promise<RunView>;
}

export interface QueuedRun {
  readonly runId: RunId;
  readonly prompt: Prompt;
  readonly joined: "queue" | "steer";
}

/** The same change again under this key gets the same answer. */
export type Keyed = Pick<CancelOptions, "key">;

/** The runs that have not begun. Each change is decided against their start: it is in time, or it says `started`. */
export interface QueueControl {
  list(): Promise<readonly QueuedRun[]>;
  edit(run: string, prompt: string | Prompt, options?: Keyed): Promise<QueueReceipt>;
  move(run: string, to: QueuePlace, options?: Keyed): Promise<QueueReceipt>;
  withdraw(run: string, options?: Pick<CancelOptions, "reason" | "key">): Promise<QueueReceipt>;
  /** Withdraws everything that waits, queued runs and steers, at once. The live run continues. */
  clear(options?: QueueClearOptions): Promise<SessionReceipt>;
  /** Lets the live run take it in at its next turn, instead of running it on its own. */
  steer(run: string, options?: Keyed): Promise<QueueReceipt>;
}

export type QueueClearOptions = Omit<SessionCancelOptions, "background" | "only" | "waitMs">;

export interface AnswersControl {
  /** Lets the call go on, this once or, with `remember: "session"`, for all of its kind in this session. */
  allow(id: string, options?: ApprovalOptions & { readonly remember?: "session" }): Promise<AnswerReceipt>;
  /** The call is not carried out. The model sees by whom and why, and continues. */
  deny(id: string, options?: ApprovalOptions): Promise<AnswerReceipt>;
  /** Answers a question that is no approval. */
  answer(id: string, value: Json, options?: AnswerOptions): Promise<AnswerReceipt>;
}

export interface AnswerOptions {
  /** Who answers. */
  readonly by?: string;
  /** The same answer again under this key gets the same receipt. */
  readonly key?: string;
}

export interface ApprovalOptions extends AnswerOptions {
  readonly note?: string;
  /** That of the bytes that were shown: an approval of other bytes is refused as a conflict. */
  readonly digest?: string;
}

export interface ProcessesControl {
  /** Any process of this session, also one that has ended. */
  get(id: string): Promise<ProcessControl>;
  /** Those that are going on. */
  list(): Promise<readonly ProcessInfo[]>;
  /** All there have been, newest first. */
  history(page?: { readonly before?: Seq; readonly limit?: number }): Promise<readonly ProcessRow[]>;
}

/** A handle on a process. */
export interface ProcessControl {
  readonly id: ProcessId;
  readonly sessionId: SessionId;
  /** Undefined once it has ended. In a client: as it was when it was asked for. */
  readonly info: ProcessInfo | undefined;
  wait(options?: { readonly limitMs?: number; readonly signal?: AbortSignal }): Promise<ProcessResult | undefined>;
  cancel(reason?: GivenReason): Promise<CancelReceipt>;
  write(data: string | Uint8Array): Promise<void>;
  endInput(): void | Promise<void>;
  resize(size: { readonly columns: number; readonly rows: number }): Promise<void>;
  /** A page of what it has said. Undefined: nothing is kept. */
  read(options?: OutputPageOptions): Promise<OutputPage | undefined>;
  /** What it says, as it says it, from `offset` on, until it has ended. */
  follow(options?: OutputPageOptions & { readonly signal?: AbortSignal }): AsyncGenerator<OutputPage, void>;
}
