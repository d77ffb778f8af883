// The library's entry point: open Belay, create sessions, stop anything.

import { resolve } from "node:path";
import { ControlError } from "../core/errors.ts";
import {
  checkKey,
  checkKeys,
  checkMs,
  checkPrompt,
  checkReason,
  checkSender,
  invalid,
  optionsOf,
  rejectUnknown,
} from "../core/input.ts";
import { GRACE_MS, LIVE_RUNS_MAX, SHUTDOWN_MS } from "../core/limits.ts";
import type { CancelReceipt, SessionReceipt, Target } from "../core/model/cancel.ts";
import {
  isCallId,
  isNamedLikeAnId,
  isProcessId,
  isQuestionId,
  isRunId,
  isSessionId,
  type SessionId,
} from "../core/model/ids.ts";
import type { Prompt } from "../core/model/prompt.ts";
import type { IdsFound } from "../core/model/rows.ts";
import type { Resources, StoreStatus } from "../core/model/upkeep.ts";
import { HIDE_PATHS } from "../core/own-paths.ts";
import type { CallView } from "../core/read/call-view.ts";
import type { Made } from "../engine/acceptance.ts";
import type { PromptReceipt } from "../engine/cancels.ts";
import { Engine } from "../engine/engine.ts";
import { startWatcher } from "../engine/loop-watch.ts";
import { type ShutdownMode, type ShutdownReport, shutDown } from "../engine/shutdown.ts";
import type {
  AllEventsOptions,
  AllSessionsEvent,
  AwaitedOutcome,
  BeginOptions,
  BegunCancelOptions,
  BelayControl,
  CancelAllOptions,
  CancelOptions,
  CoveredSession,
  CreateOptions,
  IdsOptions,
  SessionsPage,
  TenantScope,
} from "../ports/control.ts";
import type { Explanation, Load, Status } from "../ports/explanation.ts";
import type { Notify } from "../ports/hooks.ts";
import type { SessionRow } from "../ports/store.ts";
import { randomIds } from "../system/random-ids.ts";
import { requireRuntime } from "../system/runtime.ts";
import { systemClock } from "../system/system-clock.ts";
import { cancelAll, checkSessionsPage, findIds, findSession, live } from "./all-sessions.ts";
import { Answers } from "./answers.ts";
import { type BelayOptions, checkOptions } from "./belay-options.ts";
import { BulkStops } from "./bulk-stops.ts";
import { callView, cancelCall } from "./call.ts";
import { type ChooseDirectory, directoryChoice } from "./directories.ts";
import type { DirectoryService } from "./directory-service.ts";
import { HiddenFiles } from "./hidden-files.ts";
import { harmless, processNotices } from "./listeners.ts";
import { lazySpawner } from "./open-spawner.ts";
import { OpenStores, openStore } from "./open-store.ts";
import { ResourceMeter } from "./resources.ts";
import { cancelProcess, checkWait, RunHandle, runHandle, WaitLimit, waitFor } from "./run.ts";
import { Session } from "./session.ts";
import { checkTitle, promptSessionId, sessionId, sessionPrefix } from "./session-names.ts";
import { yieldEach } from "./yielding.ts";

const FILES = new OpenStores<Belay>();

/**
 * Opens the store, recovers the work of an earlier process, and returns when it accepts prompts. Opening a file that
 * this process has open already, with the same options, returns the same Belay.
 */
export async function openBelay(options: BelayOptions): Promise<Belay> {
  requireRuntime();
  const { store } = checkOptions(options);
  if (typeof store !== "string" || store === ":memory:") return open(options);
  return FILES.open(store, options, (closed) => open(options, closed));
}

async function open(options: BelayOptions, closed: () => void = ignore): Promise<Belay> {
  const { agent, store, onCrash, onNotice, clock, ids } = checkOptions(options);
  const time = clock ?? systemClock;
  const notify: Notify = harmless(onNotice, ignore) ?? ignore;
  const { graceMs = GRACE_MS } = options;
  const service = options.serve === true ? await openService(String(store), notify) : undefined;
  const opened = service?.store ?? store;
  const hidden = new HiddenFiles(store, [...(options.processes?.hidden ?? []), ...(service?.hidden ?? [])]);
  const about = { clock: time, onNotice: processNotices(notify) };
  const connection = lazySpawner({ graceMs, ...options.processes }, store, hidden, about);
  const { loopWatch = clock === undefined ? "text" : "off" } = options;
  const engine = new Engine({
    agent,
    store: typeof opened === "string" ? await openStore(opened, time) : opened,
    clock: time,
    ids: ids ?? randomIds(time),
    notify,
    graceMs,
    liveRunsMax: options.liveRunsMax ?? LIVE_RUNS_MAX,
    resume: onCrash ?? "resume",
    hooks: options.hooks ?? {},
    runLimitMs: options.runLimitMs,
    redact: options.redact,
    retention: options.retention,
    spawner: connection.open,
    ...(loopWatch === "off" ? {} : { watch: (shared) => startWatcher(loopWatch, shared) }),
    tap: harmless(options.onRecorded, (error, session) => notify({ type: "bug", session, error })),
  });
  const stopAlls = new BulkStops(engine, time);
  const meter = new ResourceMeter(time, clock === undefined);
  try {
    // Processes that an earlier process left running are ended before they are recorded as lost.
    if (connection.atOnce) await engine.processes.spawner();
    await stopAlls.load();
    const workspace = resolve(options.processes?.workspace ?? ".");
    const directory = directoryChoice(options.directories ?? "workspace", workspace);
    const belay = new Belay({ engine, directory, meter, stopAlls, hidden, service, onClosing: closed });
    // Listens before it resumes any run, so that resumed work can be stopped.
    await service?.begin(belay);
    await engine.start();
    return belay;
  } catch (error) {
    await engine.processes.close();
    await engine.store.close();
    meter.close();
    hidden.close();
    await service?.end();
    throw error;
  }
}

/** Loaded on demand: most programs serve nothing. */
async function openService(file: string, notify: Notify): Promise<DirectoryService> {
  const { DirectoryService } = await import("./directory-service.ts");
  return DirectoryService.open(file, notify);
}

/** The parts of a Belay. */
export interface BelayParts {
  readonly engine: Engine;
  readonly directory: ChooseDirectory;
  readonly meter: ResourceMeter;
  readonly stopAlls: BulkStops;
  readonly hidden?: HiddenFiles;
  readonly service?: DirectoryService | undefined;
  /** Called when it begins to close: from then on its file is opened anew. */
  readonly onClosing: () => void;
}

export class Belay implements BelayControl {
  /** Questions to users, and their answers. */
  readonly questions: Answers;
  readonly #engine: Engine;
  readonly #directory: ChooseDirectory;
  readonly #stopAlls: BulkStops;
  readonly #hidden: HiddenFiles | undefined;
  readonly #service: DirectoryService | undefined;
  readonly #onClosing: () => void;
  readonly #meter: ResourceMeter;
  readonly #startedAt: number;
  readonly #closed = Promise.withResolvers<void>();
  #closing: Promise<ShutdownReport> | undefined;
  #reachLimit: () => void = () => {};

  static {
    yieldEach(Belay, (belay) => belay.#engine.handles.gate, ["cancelAll", "cancel", "cancelPrompt"]);
  }

  constructor({ engine, directory, meter, stopAlls, hidden, service, onClosing }: BelayParts) {
    this.#hidden = hidden;
    this.#service = service;
    this.#meter = meter;
    this.#engine = engine;
    this.#stopAlls = stopAlls;
    this.#onClosing = onClosing;
    this.#directory = directory;
    this.#startedAt = engine.clock.now();
    this.questions = new Answers(engine);
  }

  /** Creates a session; or, with an `id` or a `key` that was used before, returns the existing one. */
  async createSession(options: CreateOptions = {}): Promise<Session> {
    const { id, key, keyOf, title, cwd, tenant, ...rest } = optionsOf(options, "createSession()");
    rejectUnknown(rest, "createSession()");
    const made = this.#made(title, cwd);
    const named = sessionId(this.#engine, { ...options, key: checkKey(key) });
    const { id: found, created } = await this.#engine.create(named, made);
    if (key !== undefined && created.kind === "existed") await this.#requireSame(found, made);
    return new Session(this.#engine, found);
  }

  #made(title: string | undefined, cwd: string | undefined): Made {
    checkTitle(title);
    const directory = this.#directory(cwd);
    return { ...(title === undefined ? {} : { title }), ...(directory === undefined ? {} : { cwd: directory }) };
  }

  /** A key stands for one request: using it with another title or directory is a conflict. */
  async #requireSame(id: SessionId, { title, cwd }: Made): Promise<void> {
    const row = await this.#engine.store.session(id);
    if (row === undefined || (row.title?.toWellFormed() === title?.toWellFormed() && row.cwd === cwd)) return;
    const other = row.cwd === cwd ? "title" : "directory";
    throw new ControlError("conflict", `This idempotency key was used for a session with another ${other}.`);
  }

  /**
   * Sends a prompt in a new session, for callers that want one answer. The run has the id of the session. A `key`
   * that was used before returns the same session and the same run.
   */
  prompt(prompt: string | Prompt, options: BeginOptions = {}): RunHandle {
    const { key, keyOf, title, cwd, tenant, actor, ...rest } = optionsOf(options, "prompt()");
    rejectUnknown(rest, "prompt()");
    const made = this.#made(title, cwd);
    const named = { key: checkKey(key), ...checkSender(actor) };
    const request = { prompt: checkPrompt(prompt), delivery: "queue", ...named } as const;
    const session = promptSessionId(this.#engine, { key, keyOf, tenant });
    return new RunHandle(this.#engine, this.#engine.begin(session, made, request));
  }

  /** A handle of a session. Nothing is looked up: if the session does not exist, its methods reject. */
  session(id: string): Session {
    if (typeof id !== "string" || !isSessionId(id)) throw invalid('A session id begins with "ses_".');
    return new Session(this.#engine, id);
  }

  /** Sessions in order of creation, or newest first. */
  sessions(page: SessionsPage = {}): Promise<readonly SessionRow[]> {
    return this.#engine.store.sessions(checkSessionsPage(page));
  }

  /** Ids that begin with `prefix`, live or settled, sorted, so that an exact match is first. */
  ids(prefix: string, options: IdsOptions = {}): Promise<IdsFound> {
    return findIds(this.#engine, prefix, options);
  }

  /** A handle of a run that was accepted earlier. */
  async run(id: string): Promise<RunHandle> {
    if (typeof id !== "string" || !isRunId(id)) throw invalid('A run id begins with "run_".');
    return runHandle(this.#engine, await this.#engine.store.run(id), id);
  }

  /** One call: its tool, input, state, and result. Rejects with `not_found`. */
  async call(id: string): Promise<CallView> {
    if (typeof id !== "string" || !isCallId(id)) throw invalid('A call id begins with "call_".');
    return callView(this.#engine, id);
  }

  /** Stops the session, run, call, process or question that the id names. The receipt says what was stopped. */
  cancel(target: SessionId, options?: CancelOptions): Promise<SessionReceipt>;
  cancel(target: Exclude<Target, SessionId>, options?: CancelOptions): Promise<CancelReceipt & AwaitedOutcome>;
  cancel(target: string, options?: CancelOptions): Promise<SessionReceipt | (CancelReceipt & AwaitedOutcome)>;
  async cancel(
    target: string,
    options: CancelOptions = {},
  ): Promise<SessionReceipt | (CancelReceipt & AwaitedOutcome)> {
    if (typeof target !== "string")
      throw invalid("cancel() takes the id of a session, a run, a call, a process or a question.");
    if (isSessionId(target)) return new Session(this.#engine, target).cancel(options);
    if (isCallId(target)) return cancelCall(this.#engine, target, options);
    const { reason: why, waitMs, remind, key: once, ...rest } = optionsOf(options, "cancel()");
    rejectUnknown(rest, "cancel()");
    const reason = checkReason(why);
    const key = checkKey(once);
    const limit = new WaitLimit(this.#engine.clock, checkWait(waitMs));
    const { cancel } = this.#engine;
    if (remind !== undefined) throw invalid("`remind` is for the cancel of one call.");
    if (isRunId(target)) {
      const receipt = await limit.receipt((onStop) => cancel.run(target, reason, key, onStop));
      return waitFor(this.#engine, target, receipt, limit);
    }
    if (isProcessId(target)) return cancelProcess(this.#engine, target, { reason, key, limit });
    if (isQuestionId(target) && waitMs !== undefined)
      throw invalid("A question ends at once: there is nothing to wait for.");
    if (isQuestionId(target))
      return this.#engine.questions.cancel({ type: "cancel-question", questionId: target, reason }, key);
    if (isNamedLikeAnId(target)) return { kind: "unknown" };
    throw invalid('An id begins with "ses_", "run_", "call_", "proc_" or "ask_".');
  }

  /** Stops the run of the prompt that was sent with this key. */
  async cancelPrompt(key: string, options: BegunCancelOptions = {}): Promise<PromptReceipt> {
    const { tenant, keyOf, ...rest } = optionsOf(options, "cancelPrompt()");
    const [named] = checkKeys([key]);
    const session = promptSessionId(this.#engine, { key: named, keyOf, tenant });
    return new Session(this.#engine, session as SessionId).cancelPrompt(key, rest);
  }

  /** Stops everything on this worker that was accepted before, and nothing accepted after. */
  cancelAll(options: CancelAllOptions = {}): Promise<readonly CoveredSession[]> {
    return cancelAll(this.#engine, this.#stopAlls, options);
  }

  /** An explanation of each session that is busy or has processes. */
  live(options: TenantScope = {}): Promise<readonly Explanation[]> {
    return live(this.#engine, options);
  }

  /** The session of a run, call, question or process. Undefined: there is none with that id. */
  findSession(id: string): Promise<SessionId | undefined> {
    return findSession(this.#engine, id);
  }

  /** The events of all sessions, from now on or after a cursor, until the loop is left. */
  events(options: AllEventsOptions = {}): AsyncGenerator<AllSessionsEvent, void> {
    const { after, signal, tenant, ...rest } = optionsOf(options, "events()");
    rejectUnknown(rest, "events()");
    if (after !== undefined && typeof after !== "string") throw invalid("`after` must be the cursor of an event.");
    return this.#engine.allSessionsFeed.watch({ after, signal, prefix: sessionPrefix(tenant) });
  }

  async status(): Promise<Status> {
    const trouble = await this.#engine.storeCheck.trouble();
    const { phase, worker, modes, storeSize, retention } = this.#engine;
    const store = trouble === undefined && phase === "open" ? await storeSize.read() : storeSize.last;
    const shownPhase = phase === "parking" ? "closing" : phase;
    const { all, start } = modes;
    const about = { phase: shownPhase, worker, startedAt: this.#startedAt, load: this.load, trouble } as const;
    return { ...about, store, retention: retention?.status, resources: this.#meter.read(), modes: all, mode: start };
  }

  /** The size of the store when `status()` last counted it. */
  get size(): StoreStatus | undefined {
    return this.#engine.storeSize.last;
  }

  get resources(): Resources {
    return this.#meter.read();
  }

  /** The load of this worker. */
  get load(): Load {
    const { processes, late, dispatch } = this.#engine;
    const { count, dropped, tier } = processes;
    return { ...dispatch.load, late, processes: count, dropped, tier };
  }

  /**
   * Shuts down gracefully, within `limitMs` in total. `park` (default) parks live runs for the next start; `cancel`
   * ends them and the queued ones. A second call joins the first; its `limitMs` counts if it ends earlier.
   */
  close(options: { readonly mode?: ShutdownMode; readonly limitMs?: number } = {}): Promise<ShutdownReport> {
    const { mode = "park", limitMs, ...rest } = optionsOf(options, "close()");
    rejectUnknown(rest, "close()");
    if (mode !== "park" && mode !== "cancel") throw invalid('`mode` must be "park" or "cancel".');
    const limit = limitMs ?? (this.#closing === undefined ? SHUTDOWN_MS : undefined);
    const checked = limit === undefined ? undefined : checkMs(limit, "limitMs", 3_600_000);
    this.#closing ??= this.#close(mode);
    // An idle timer: the shutdown itself keeps the program alive.
    if (checked !== undefined) this.#engine.clock.after(checked, this.#reachLimit, "idle");
    return this.#closing;
  }

  async #close(mode: ShutdownMode): Promise<ShutdownReport> {
    const limit = new Promise<void>((resolve) => {
      this.#reachLimit = resolve;
    });
    this.#onClosing();
    this.#service?.hide();
    try {
      return await shutDown(this.#engine, mode, limit);
    } finally {
      this.#meter.close();
      this.#hidden?.close();
      await this.#service?.end();
      this.#closed.resolve();
    }
  }

  /** Resolves when `close()` has finished, whichever caller called it. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  [HIDE_PATHS](paths: readonly string[]): void {
    this.#hidden?.add(paths);
  }
}

const ignore = (): void => {};
