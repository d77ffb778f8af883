// What a user types: open Belay, make sessions, stop anything.
import { resolve } from "node:path";
import type {
  AllEventsOptions,
  BeginOptions,
  BelayControl,
  CancelAllOptions,
  CancelOptions,
  CoveredSession,
  CreateOptions,
  Explanation,
  Load,
  SessionsPage,
  Status,
  Told,
  Waited,
  Within,
} from "../control.ts";
import type { CancelReceipt, SessionReceipt, Target } from "../core/cancel.ts";
import { ControlError } from "../core/control-error.ts";
import type { Recorded } from "../core/event.ts";
import { isCallId, isProcessId, isQuestionId, isRunId, isSessionId, type SessionId } from "../core/ids.ts";
import { GRACE_MS, LIVE_RUNS_MAX, SHUTDOWN_MS } from "../core/limits.ts";
import type { Prompt } from "../core/prompt.ts";
import { Engine } from "../engine/engine.ts";
import { checkModes } from "../engine/modes.ts";
import { unpunished } from "../engine/process-handle.ts";
import type { Made } from "../engine/prompted.ts";
import { randomIds } from "../engine/random-ids.ts";
import { type ShutdownMode, type ShutdownReport, shutDown } from "../engine/shutdown.ts";
import { systemClock } from "../engine/system-clock.ts";
import {
  checkKey,
  checkLimit,
  checkMs,
  checkPrompt,
  checkReason,
  invalid,
  isObject,
  optionsOf,
  rejectUnknown,
} from "../engine/validate.ts";
import type { Agent, Clock, Hooks, Ids, Notify, SessionRow, Store } from "../ports.ts";
import { Answers } from "./answers.ts";
import { type ChooseDirectory, type Directories, directoryChoice } from "./directories.ts";
import { cancelAll, home, live } from "./house.ts";
import { checkTenant, checkTitle, sessionId, sessionPrefix } from "./names.ts";
import { checkProcesses, type ProcessesOptions, spawnerDoor } from "./open-spawner.ts";
import { cancelProcess, checkWait, RunHandle, WaitLimit, waitFor, waitForCall } from "./run.ts";
import { Session } from "./session.ts";

export interface BelayOptions {
  /** The function that carries out a run's turns. */
  readonly agent: Agent;
  /** A file for the embedded SQLite store, `":memory:"` for one that forgets, or a store of your own. */
  readonly store: string | Store;
  /** How long work may take to stop before it is given up and named. Default 1500. */
  readonly graceMs?: number;
  /** Runs that are live at once. Default 1024. */
  readonly liveRunsMax?: number;
  /** What becomes of a run whose worker vanished: taken up again (default), or ended as `lost`. */
  readonly onCrash?: "resume" | "lose";
  /** What the host wants to hear of, or to have a say in. Each is bounded in time, and none can hold up a stop. */
  readonly hooks?: Hooks;
  /** How long a run may take altogether. Then it is cancelled, with the limit as the reason. Default: no limit. */
  readonly runLimitMs?: number;
  /** How commands are started, held together and ended. Nothing is opened before the first one is wanted. */
  readonly processes?: ProcessesOptions;
  /**
   * Which directories a session may be given to work in. Default `workspace`: those inside `processes.workspace`, which
   * is the working directory if it is not set. `any`: all that there are.
   */
  readonly directories?: Directories;
  /** Told about things an operator should know: late results, trouble with the store. */
  readonly onNotice?: Notify;
  /** Told of everything that is recorded, right after it was. For counting and tracing; it must not take long. */
  readonly onRecorded?: (sessionId: SessionId, events: readonly Recorded[]) => void;
  /** For tests: time and ids that can be foreseen. */
  readonly clock?: Clock;
  readonly ids?: Ids;
}

/** Opens the store, takes up what an earlier life left, and is ready for prompts. */
export async function openBelay(options: BelayOptions): Promise<Belay> {
  const { agent, store, onCrash, onNotice, clock, ids } = checkOptions(options);
  const time = clock ?? systemClock;
  const notify: Notify = harmless(onNotice, ignore) ?? ignore;
  const door = spawnerDoor(options.processes ?? {}, store, time, (message) => notify({ type: "process", message }));
  const engine = new Engine({
    agent,
    store: typeof store === "string" ? await openStore(store, time) : store,
    clock: time,
    ids: ids ?? randomIds(time),
    notify,
    graceMs: options.graceMs ?? GRACE_MS,
    liveRunsMax: options.liveRunsMax ?? LIVE_RUNS_MAX,
    resume: onCrash ?? "resume",
    hooks: options.hooks ?? {},
    runLimitMs: options.runLimitMs,
    spawner: door.open,
    tap: harmless(options.onRecorded, (error, session) => notify({ type: "bug", session, error })),
  });
  try {
    // Whatever an earlier life has left going on is ended before it is said to be lost.
    if (door.atOnce) await engine.processes.spawner();
    await engine.start();
  } catch (error) {
    // Nothing has begun yet, and nothing is kept from whoever tries again.
    await engine.processes.close();
    await engine.store.close();
    throw error;
  }
  const workspace = resolve(options.processes?.workspace ?? ".");
  return new Belay(engine, directoryChoice(options.directories ?? "workspace", workspace));
}

export class Belay implements BelayControl {
  /** What people are asked, and how they answer. */
  readonly questions: Answers;
  readonly #engine: Engine;
  readonly #directory: ChooseDirectory;
  readonly #startedAt: number;
  #closing: Promise<ShutdownReport> | undefined;
  #hurry: () => void = () => {};

  constructor(engine: Engine, directory: ChooseDirectory) {
    this.#engine = engine;
    this.#directory = directory;
    this.#startedAt = engine.clock.now();
    this.questions = new Answers(engine);
  }

  /** A new session; or, with an `id` or a `key` that was used before, the one that exists. */
  async createSession(options: CreateOptions = {}): Promise<Session> {
    const { id, key, title, cwd, tenant, ...rest } = optionsOf(options, "createSession()");
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

  /** A key is for one request: the same one again, with another title or directory, is another. */
  async #requireSame(id: SessionId, { title, cwd }: Made): Promise<void> {
    const row = await this.#engine.store.session(id);
    if (row === undefined || (row.title?.toWellFormed() === title?.toWellFormed() && row.cwd === cwd)) return;
    const other = row.cwd === cwd ? "title" : "directory";
    throw new ControlError("conflict", `This idempotency key was used for a session with another ${other}.`);
  }

  /**
   * A prompt in a session of its own: for whoever wants one answer. The run says which session it is. With a `key` that
   * was used before, it is the same session and the same run.
   */
  prompt(prompt: string | Prompt, options: BeginOptions = {}): RunHandle {
    const { key, title, cwd, tenant, ...rest } = optionsOf(options, "prompt()");
    rejectUnknown(rest, "prompt()");
    const made = this.#made(title, cwd);
    const asked = { prompt: checkPrompt(prompt), delivery: "queue", key: checkKey(key) } as const;
    const within = tenant === undefined ? {} : { tenant };
    const session = sessionId(this.#engine, { key: key === undefined ? undefined : `prompt ${key}`, ...within });
    return new RunHandle(this.#engine, this.#engine.begin(session, made, asked));
  }

  /** A handle on a session. Nothing is looked up: a session that does not exist refuses what is asked of it. */
  session(id: string): Session {
    if (typeof id !== "string" || !isSessionId(id)) throw invalid('A session id begins with "ses_".');
    return new Session(this.#engine, id);
  }

  /** Sessions in order of creation. */
  sessions(page: SessionsPage = {}): Promise<readonly SessionRow[]> {
    const { after, limit, tenant, ...rest } = optionsOf(page, "sessions()");
    rejectUnknown(rest, "sessions()");
    if (after !== undefined && !isSessionId(after)) throw invalid("`after` is the id of a session.");
    return this.#engine.store.sessions({
      after,
      limit: checkLimit(limit),
      ...(tenant === undefined ? {} : { tenant: checkTenant(tenant) }),
    });
  }

  /** A handle on a run that was accepted earlier. */
  async run(id: string): Promise<RunHandle> {
    if (typeof id !== "string" || !isRunId(id)) throw invalid('A run id begins with "run_".');
    const row = await this.#engine.store.run(id);
    if (row === undefined) throw new ControlError("not_found", `There is no run ${id}.`);
    const accepted = Promise.resolve(await this.#engine.standing(row));
    return new RunHandle(this.#engine, { sessionId: row.session, runId: row.id, accepted });
  }

  /** Stops a session, run, call, process or question, whichever the id names. The receipt says what that meant. */
  cancel(target: SessionId, options?: CancelOptions): Promise<SessionReceipt>;
  cancel(target: Exclude<Target, SessionId>, options?: CancelOptions): Promise<CancelReceipt & Waited>;
  cancel(target: string, options?: CancelOptions): Promise<SessionReceipt | (CancelReceipt & Waited)>;
  async cancel(target: string, options: CancelOptions = {}): Promise<SessionReceipt | (CancelReceipt & Waited)> {
    if (typeof target !== "string")
      throw invalid("cancel() takes the id of a session, a run, a call, a process or a question.");
    if (isSessionId(target)) return new Session(this.#engine, target).cancel(options);
    const { reason: why, waitMs, remind, key: once, ...rest } = optionsOf(options, "cancel()");
    rejectUnknown(rest, "cancel()");
    const reason = checkReason(why);
    const key = checkKey(once);
    const limit = new WaitLimit(this.#engine.clock, checkWait(waitMs));
    const { cancel } = this.#engine;
    if (isCallId(target)) {
      const receipt = await limit.receipt(cancel.call(target, { reason, remind: checkRemind(remind) }, key));
      return waitForCall(this.#engine, target, receipt, limit);
    }
    if (remind !== undefined) throw invalid("`remind` is for the cancel of one call.");
    if (isRunId(target)) {
      return waitFor(this.#engine, target, await limit.receipt(cancel.run(target, reason, key)), limit);
    }
    if (isProcessId(target)) return cancelProcess(this.#engine, target, { reason, key, limit });
    if (isQuestionId(target) && waitMs !== undefined)
      throw invalid("A question ends at once: there is nothing to wait for.");
    if (isQuestionId(target))
      return this.#engine.questions.cancel({ type: "cancel-question", questionId: target, reason }, key);
    throw invalid('An id begins with "ses_", "run_", "call_", "proc_" or "ask_".');
  }

  /** Stops everything, everywhere here: what was accepted before, and nothing after. */
  cancelAll(options: CancelAllOptions = {}): Promise<readonly CoveredSession[]> {
    return unpunished(cancelAll(this.#engine, options));
  }

  /** What is going on: an explanation of each session that is busy or has processes. */
  live(options: Within = {}): Promise<readonly Explanation[]> {
    return live(this.#engine, options);
  }

  /** The session a run, call, question or process belongs to. Undefined: there is none of that name. */
  home(id: string): Promise<SessionId | undefined> {
    return home(this.#engine, id);
  }

  /** What is recorded in any session, from now on or from a cursor on, until the loop is left. */
  events(options: AllEventsOptions = {}): AsyncGenerator<Told, void> {
    const { after, signal, tenant, ...rest } = optionsOf(options, "events()");
    rejectUnknown(rest, "events()");
    if (after !== undefined && typeof after !== "string") throw invalid("`after` is the cursor of an event.");
    return this.#engine.chronicle.watch({ after, signal, prefix: sessionPrefix(tenant) });
  }

  async status(): Promise<Status> {
    const trouble = await this.#engine.storeCheck.trouble();
    const { phase, worker, modes } = this.#engine;
    const told = phase === "parking" ? "closing" : phase;
    const { all, start } = modes;
    return { phase: told, worker, startedAt: this.#startedAt, load: this.load, trouble, modes: all, mode: start };
  }

  /** How much is going on in this worker. */
  get load(): Load {
    const { processes, late, dispatch } = this.#engine;
    const { count, dropped, tier } = processes;
    return { ...dispatch.load, late, processes: count, dropped, tier };
  }

  /**
   * Shuts down in order, within `limitMs` altogether. `park` (default) sets live runs down for the next start;
   * `cancel` ends them, and what is queued. A second call joins the first; its `limitMs` counts if it ends earlier.
   */
  close(options: { readonly mode?: ShutdownMode; readonly limitMs?: number } = {}): Promise<ShutdownReport> {
    const { mode = "park", limitMs, ...rest } = optionsOf(options, "close()");
    rejectUnknown(rest, "close()");
    if (mode !== "park" && mode !== "cancel") throw invalid('`mode` is "park" or "cancel".');
    const limit = limitMs ?? (this.#closing === undefined ? SHUTDOWN_MS : undefined);
    const checked = limit === undefined ? undefined : checkMs(limit, "limitMs", 3_600_000);
    this.#closing ??= this.#close(mode);
    // Not a timer that keeps a program alive: what it limits does that.
    if (checked !== undefined) this.#engine.clock.after(checked, this.#hurry, "idle");
    return this.#closing;
  }

  #close(mode: ShutdownMode): Promise<ShutdownReport> {
    const limit = new Promise<void>((resolve) => {
      this.#hurry = resolve;
    });
    return shutDown(this.#engine, mode, limit);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Whoever listens cannot hurt what they listen to: neither by throwing nor by a promise that fails. */
function harmless<A extends readonly unknown[]>(
  listener: ((...told: A) => void) | undefined,
  hurt: (error: unknown, ...told: A) => void,
): ((...told: A) => void) | undefined {
  if (listener === undefined) return undefined;
  return (...told) => {
    try {
      // Its type says nothing of promises; an async function is given all the same.
      const answer: unknown = listener(...told);
      if (answer instanceof Promise) answer.catch((error: unknown) => hurt(error, ...told));
    } catch (error) {
      hurt(error, ...told);
    }
  };
}

const ignore = (): void => {};

/** Loaded on demand: whoever brings a store of their own does not pay for ours. */
async function openStore(place: string, clock: Clock): Promise<Store> {
  if (place === ":memory:") {
    const { MemoryStore } = await import("../store/memory/memory-store.ts");
    return new MemoryStore({ clock });
  }
  const { openSqliteStore } = await import("../store/sqlite/sqlite-store.ts");
  return openSqliteStore({ file: place });
}

function checkOptions(options: BelayOptions): BelayOptions {
  if (!isObject(options)) throw invalid("openBelay() takes { agent, store }.");
  const { agent, store, graceMs, liveRunsMax, onCrash, onNotice, clock, ids, hooks, runLimitMs, ...others } = options;
  const { processes, directories, onRecorded, ...rest } = others;
  rejectUnknown(rest, "openBelay()");
  if (typeof agent !== "function") throw invalid("`agent` is a function: (turn) => …");
  checkModes(agent);
  if (typeof store !== "string" && !isObject(store)) throw invalid('`store` is a file name, ":memory:" or a store.');
  if (store === "") throw invalid("`store` is empty.");
  if (graceMs !== undefined) checkMs(graceMs, "graceMs", 600_000);
  if (runLimitMs !== undefined) checkMs(runLimitMs, "runLimitMs", 2 ** 31 - 1);
  if (hooks !== undefined) checkHooks(hooks);
  if (processes !== undefined) checkProcesses(processes);
  if (directories !== undefined && directories !== "workspace" && directories !== "any")
    throw invalid('`directories` is "workspace" or "any".');
  if (onNotice !== undefined && typeof onNotice !== "function") throw invalid("`onNotice` is a function.");
  if (onRecorded !== undefined && typeof onRecorded !== "function") throw invalid("`onRecorded` is a function.");
  if (liveRunsMax !== undefined && (!Number.isInteger(liveRunsMax) || liveRunsMax < 1)) {
    throw invalid("`liveRunsMax` is a whole number from 1.");
  }
  if (onCrash !== undefined && onCrash !== "resume" && onCrash !== "lose")
    throw invalid('`onCrash` is "resume" or "lose".');
  return options;
}

function checkHooks(hooks: Hooks): void {
  if (!isObject(hooks)) throw invalid("`hooks` is an object of functions.");
  const { beforeCall, afterCall, onCancel, onOutcome, onSessionEnd, ...rest } = hooks;
  rejectUnknown(rest, "`hooks`");
  for (const hook of [beforeCall, afterCall, onCancel, onOutcome, onSessionEnd]) {
    if (hook !== undefined && typeof hook !== "function") throw invalid("Each of the `hooks` is a function.");
  }
}

function checkRemind(remind: unknown): boolean {
  if (remind !== undefined && typeof remind !== "boolean") throw invalid("`remind` is true or false.");
  return remind ?? true;
}
