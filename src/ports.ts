// The sockets in the wall. Everything the engine needs from outside, and nothing else. Types only.
import type { Blocked, CancelReason, Failure, Outcome } from "./core/cancel.ts";
import type { Event, ModelName, Next, ProviderCall, Recorded, TurnFinish, TurnPart, Usage } from "./core/event.ts";
import type { CallId, ProcessId, RunId, Seq, SessionId, TurnId, WorkerId } from "./core/ids.ts";
import type { Lane } from "./core/lane.ts";
import type { Memo, MemoBatch } from "./core/memo.ts";
import type { Json, Prompt } from "./core/prompt.ts";
import type { Ending } from "./core/question.ts";
import type { CallRow, IdsAsked, IdsFound, ProcessRow, RunRow, SessionsAsked, StoreKnows } from "./core/rows.ts";
import type { Message } from "./core/transcript.ts";
import type { StoreTrimmed, Upkeep } from "./core/upkeep.ts";
import type { CallProcesses, TurnProcesses } from "./spawner.ts";

/**
 * A durable log per session, its rows, and the right to drive it. A store must pass `store/contract.ts`, and holds no
 * policy. Trouble is a ControlError: after `store_full`, `store_locked` and `store_corrupt` nothing was written.
 */
export interface Store {
  /** `one`: no other worker can write here while it is open, so there are no leases to renew or to take over. */
  readonly workers?: "one" | "many";

  /** Adds a batch to one log, all or none, durable when it resolves. Concurrent batches share one commit. */
  append(batch: Batch): Promise<Appended>;

  /** Where a lane stands: its last snapshot, the events since, its head, its memos. Undefined: there is nothing. */
  load(session: SessionId): Promise<Loaded | undefined>;

  /** Events after `after`, oldest first, at most `limit`, fewer if they are large. Only an empty page is the end. */
  read(session: SessionId, page: { readonly after: Seq; readonly limit: number }): Promise<Page>;

  /** Resolves once the log reaches past `after`, or `signal` aborts. Early is allowed; never is not. */
  grown(session: SessionId, after: Seq, signal: AbortSignal): Promise<void>;

  /** One run, wherever it is in its life; by id, or by the key it was accepted under. */
  run(by: RunId | { readonly session: SessionId; readonly key: string }): Promise<RunRow | undefined>;

  /** A call that has settled. */
  call(id: CallId): Promise<CallRow | undefined>;

  /** One process, wherever it is in its life. */
  process(id: ProcessId): Promise<ProcessRow | undefined>;

  /** Processes of a session, newest first, requested before `before`. */
  processes(session: SessionId, page: { readonly before: Seq; readonly limit: number }): Promise<readonly ProcessRow[]>;

  /** Runs of a session, newest first, accepted before `before`. */
  runs(session: SessionId, page: { readonly before: Seq; readonly limit: number }): Promise<readonly RunRow[]>;

  /** One session. */
  session(id: SessionId): Promise<SessionRow | undefined>;

  /** Sessions in order of creation, or newest first; of one tenant, or of all. */
  sessions(page: SessionsAsked): Promise<readonly SessionRow[]>;

  /** Ids of sessions, runs, settled calls and processes that begin with `prefix`, in order: an exact match is first. */
  ids(asked: IdsAsked): Promise<IdsFound>;

  /** Sessions with runs or processes that have no outcome, and no worker that holds a valid lease on them. */
  unattended(limit: number): Promise<readonly SessionId[]>;

  /** Takes the right to drive a lane for `ttlMs`. Taking what one holds renews it. */
  claim(session: SessionId, worker: WorkerId, ttlMs: number): Promise<Claim>;

  /** Prolongs all leases of a worker. Answers those that are gone: another worker may be driving, stop at once. */
  renew(worker: WorkerId, ttlMs: number): Promise<readonly SessionId[]>;

  /** Gives a lease up. */
  release(session: SessionId, worker: WorkerId): Promise<void>;

  /**
   * Forgets events before `before`: never those of runs or processes without outcome, and no run in part. Readers are
   * told of the gap. A bounded amount of work: call it again while it answers `more`.
   */
  trim(session: SessionId, before: Seq): Promise<StoreTrimmed>;

  /** What keeps it small. Without it no session can be deleted, and there is no retention. */
  readonly upkeep?: Upkeep | undefined;

  /** Resolves if something new could be written now; rejects as an append would. Default: only an append shows it. */
  ready?(): Promise<void>;

  close(): Promise<void>;
}

export interface Batch extends MemoBatch {
  readonly session: SessionId;
  /** The head on which the decision was made. If the log has moved on, nothing is added. */
  readonly expected: Seq;
  readonly events: readonly Event[];
  readonly at: number;
  /** Given by whoever drives the lane; omitted by whoever only asks. */
  readonly epoch?: number;
  /** The lane after these events, now and then: what `load` starts from. */
  readonly snapshot?: Lane;
}

export type Appended =
  | { readonly kind: "appended"; readonly head: Seq }
  /** Somebody was faster. Read on from where you were, decide again. */
  | { readonly kind: "moved"; readonly head: Seq }
  /** You are no longer the driver. */
  | { readonly kind: "fenced" }
  | StoreKnows;

export interface Loaded {
  readonly snapshot: Lane | undefined;
  /** Everything after the snapshot, or after the beginning. */
  readonly events: readonly Recorded[];
  readonly head: Seq;
  readonly memos: readonly Memo[];
}

export interface Page {
  readonly events: readonly Recorded[];
  /** The last position that retention has removed, if the page had to start behind it. */
  readonly gapTo?: Seq;
}

export interface SessionRow {
  readonly id: SessionId;
  readonly head: Seq;
  readonly createdAt: number;
  readonly title: string | undefined;
  /** The real path of the directory it works in; undefined: the workspace. */
  readonly cwd: string | undefined;
  readonly phase: "open" | "closed";
}

export type Claim =
  | { readonly kind: "claimed"; readonly epoch: number }
  | { readonly kind: "held"; readonly by: WorkerId; readonly forMs: number };

/** Time. `now` is the wall clock, for people; `elapsed` never jumps, for durations. */
export interface Clock {
  now(): number;
  elapsed(): number;
  /** Calls once, after `ms`. The answer takes it back. An `idle` timer does not keep a program alive that has ended. */
  after(ms: number, call: () => void, kind?: "idle"): () => void;
  /** Calls once, when the event loop has turned: I/O and due timers come first. Default `setImmediate`. */
  immediate?(call: () => void): void;
}

/** Ids and digests: the only randomness there is. */
export interface Ids {
  make(prefix: "ses_" | "run_" | "wrk_"): string;
  digest(text: string): string;
}

/** What carries out the turns of a run. One function, whether it is a user's own or the loop over a model. */
export type Agent = ((
  turn: Turn,
) => Promise<TurnResult | string | undefined | void> | TurnResult | string | undefined | void) & {
  /**
   * How a call that a turn had asked for at its end is carried out, after a restart: called for calls that may be begun
   * again, or that had not begun because they wait for an approval. Undefined: nobody can.
   */
  readonly resume?: (call: CallAsked) => CallRequest | undefined;
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
  readonly spent: Spent;
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
  call(name: string, input: Json, execute: Execute, options?: CallOptions): Promise<CallResult>;
  /** Takes in what people sent for this run since the last look, oldest first. The inbox goes to the transcript. */
  takeSteers(): Promise<readonly Prompt[]>;
  /** Puts a question to people. Rejects when the turn is stopped. */
  ask(question: Ask): Promise<Asked>;
  /** From now on the model is given this summary instead of what was said before this turn. */
  compact(summary: string): Promise<void>;
  /** Cancels its own run, by policy: a budget is used up, or it goes round in circles. */
  stop(note: string): Promise<void>;
}

/** What a run has used up so far. */
export interface Spent extends Usage {
  readonly turns: number;
}

export interface Ask {
  readonly text: string;
  readonly options?: readonly string[];
  /** One of the options, and nothing else. */
  readonly only?: boolean;
  readonly data?: Json;
  /** Default one hour. */
  readonly deadlineMs?: number;
}

export type Asked =
  | { readonly kind: "answered"; readonly value: Json; readonly by?: string }
  | { readonly kind: "expired"; readonly limitMs: number }
  /** Somebody took the question back. */
  | { readonly kind: "withdrawn"; readonly reason: CancelReason };

export type Execute = (call: LiveCall) => Promise<Json | undefined | void> | Json | undefined | void;

/** A call as the log has it. */
export interface CallAsked {
  readonly callId: CallId;
  readonly name: string;
  readonly input: Json;
}

export interface LiveCall extends CallAsked {
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
  partial(result: Json): void;
  /** Tells whoever follows how far it is. Not kept. */
  progress(data: Json): void;
  /** Notes what it has changed in the world: told to the model and to people, also if the call is stopped later. */
  changed(what: string): void;
  /** Puts a question to people. Rejects when the call is stopped. */
  ask(question: Ask): Promise<Asked>;
  /** Requests an approval of exactly this while the call runs. Rejects when the call is stopped. */
  readonly approve?: (subject: Pick<CallAsked, "name" | "input">, approval?: Approval) => Promise<Ending>;
  /** Commands, as whole trees that end with the call, or, in the background, with the session. */
  readonly processes: CallProcesses;
}

export interface CallOptions {
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
  readonly approval?: boolean | Approval | ((input: Json, now: Pick<LiveCall, "mode">) => Wanted | Promise<Wanted>);
  /** Taken before it begins and given back when it has ended: how many may go on at once. */
  readonly slots?: Slots;
  /** The id of the call in another system, with data of that system. Recorded, and not interpreted. */
  readonly provider?: ProviderCall;
}

/** Whether people are asked. */
export type Wanted = boolean | Approval;

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

/** What the host wants to hear of, or to have a say in. Each has a time limit; one that throws or hangs is reported. */
export interface Hooks {
  /**
   * Before a call begins, and before anybody is asked to approve it: it may be denied, or given another input. If this
   * throws, takes too long or returns anything else, the call is not carried out.
   */
  beforeCall?(call: HookedCall): Promise<Verdict | undefined | void> | Verdict | undefined | void;
  /** After a call has settled. */
  afterCall?(call: HookedCall & { readonly outcome: Outcome; readonly result?: Json }): Promise<void> | void;
  /** When the cancel of a run or a call has been recorded. */
  onCancel?(cancel: {
    readonly sessionId: SessionId;
    readonly runId: RunId;
    readonly callId?: CallId;
    readonly reason: CancelReason;
  }): Promise<void> | void;
  onOutcome?(end: {
    readonly sessionId: SessionId;
    readonly runId: RunId;
    readonly outcome: Outcome;
  }): Promise<void> | void;
  onSessionEnd?(end: { readonly sessionId: SessionId; readonly reason: CancelReason }): Promise<void> | void;
}

export interface HookedCall extends CallAsked {
  readonly sessionId: SessionId;
  readonly runId: RunId;
  readonly signal: AbortSignal;
}

export type Verdict =
  | { readonly kind: "deny"; readonly note: string }
  /** `input` replaces what the model asked for; `approved`: nobody need be asked any more. */
  | { readonly kind: "allow"; readonly input?: Json; readonly approved?: boolean };

export type CallResult =
  | { readonly kind: "completed"; readonly callId: CallId; readonly value: Json | undefined }
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

/** Something worth telling the operator, never the user: a late result, a hook that threw, a store in trouble. */
export type Notice =
  | { readonly type: "late"; readonly runId: RunId; readonly work: string; readonly outcome: Outcome["kind"] }
  | { readonly type: "store"; readonly session: SessionId; readonly code: string; readonly message: string }
  | { readonly type: "hook"; readonly hook: keyof Hooks; readonly session: SessionId; readonly message: string }
  | { readonly type: "process"; readonly message: string }
  | { readonly type: "directory"; readonly message: string }
  | ({ readonly type: "blocked" } & Blocked)
  | { readonly type: "bug"; readonly session: SessionId; readonly error: unknown };

export type Notify = (notice: Notice) => void;
