// A session: prompts in, events out, and its queue.

import { ControlError } from "../core/errors.ts";
import {
  beyondTheEnd,
  checkDelivery,
  checkItem,
  checkKey,
  checkKeys,
  checkLimit,
  checkNote,
  checkPrompt,
  checkReason,
  checkSender,
  invalid,
  optionsOf,
  rejectUnknown,
} from "../core/input.ts";
import type { CancelReceipt, SessionReceipt } from "../core/model/cancel.ts";
import type { InboxReceipt, ModeReceipt, QueuePlace, QueueReceipt } from "../core/model/command.ts";
import type { Delta, Gap } from "../core/model/delta.ts";
import type { Recorded } from "../core/model/event.ts";
import { isRunId, type RunId, type Seq, type SessionId } from "../core/model/ids.ts";
import type { InboxItem } from "../core/model/inbox.ts";
import type { Prompt } from "../core/model/prompt.ts";
import type { Question } from "../core/model/question.ts";
import type { RunRow } from "../core/model/rows.ts";
import type { SessionDeleted, Trimmed } from "../core/model/upkeep.ts";
import type { CallView } from "../core/read/call-view.ts";
import type { Message } from "../core/read/transcript.ts";
import { transcript } from "../core/read/transcript-builder.ts";
import type { PromptReceipt, SessionStop } from "../engine/cancels.ts";
import type { Engine, QueueChange } from "../engine/engine.ts";
import { explain } from "../engine/explain.ts";
import { pagedItems } from "../engine/log/paged-items.ts";
import { readAll } from "../engine/log/replay.ts";
import type { SessionState } from "../engine/log/session-state.ts";
import type { Stoppable } from "../engine/log/stoppable-generator.ts";
import { runningSince } from "../engine/work/start-times.ts";
import type {
  AwaitedOutcome,
  CancelOptions,
  EventsOptions,
  Keyed,
  ModeOptions,
  PromptCancelOptions,
  PromptOptions,
  QueueClearOptions,
  QueueControl,
  QueuedRun,
  SessionCancelOptions,
  SessionControl,
} from "../ports/control.ts";
import type { Explanation } from "../ports/explanation.ts";
import type { SessionRow } from "../ports/store.ts";
import { cancelSessionCall, sessionCall } from "./call.ts";
import { checkWait, RunHandle, runHandle, WaitLimit, waitFor, waitForAll } from "./run.ts";
import { SessionProcesses } from "./session-processes.ts";
import { yieldEach } from "./yielding.ts";

export class Session implements SessionControl {
  readonly id: SessionId;
  readonly queue: Queue;
  readonly processes: SessionProcesses;
  readonly #engine: Engine;

  static {
    // Results of the methods settle through the gate. A `cancel` that is not awaited causes no unhandled rejection.
    yieldEach(Session, (session) => session.#engine.handles.gate, ["cancel", "cancelCall", "cancelPrompt", "close"]);
  }

  constructor(engine: Engine, id: SessionId) {
    this.#engine = engine;
    this.id = id;
    this.queue = new Queue(engine, id);
    this.processes = new SessionProcesses(engine, id);
  }

  /** The session's current row. */
  async row(): Promise<SessionRow> {
    const row = await this.#engine.store.session(this.id);
    if (row === undefined) throw new ControlError("not_found", `There is no session ${this.id}.`);
    return row;
  }

  /**
   * Registers a prompt in this tick and returns its run. A later cancel covers it; an earlier one does not. Throws
   * for input that could never be accepted.
   */
  prompt(prompt: string | Prompt, options: PromptOptions = {}): RunHandle {
    const { delivery, key, actor, ...rest } = optionsOf(options, "prompt()");
    rejectUnknown(rest, "prompt()");
    const named = { key: checkKey(key), ...checkSender(actor) };
    const checked = { prompt: checkPrompt(prompt), delivery: checkDelivery(delivery), ...named };
    return new RunHandle(this.#engine, { sessionId: this.id, ...this.#engine.prompt(this.id, checked) });
  }

  /**
   * Stops everything accepted before, and nothing accepted after. Stops background processes too, unless they are to
   * be kept. An idle session stays unchanged.
   */
  async cancel(options: SessionCancelOptions = {}): Promise<SessionReceipt> {
    const { stop, once, waitMs } = checkSessionStop(options, "cancel()");
    const limit = new WaitLimit(this.#engine.clock, waitMs);
    const receipt = await limit.receipt((onStop) => this.#engine.cancel.session(this.id, stop, once, onStop));
    if (waitMs === undefined || receipt.kind !== "stopping") return receipt;
    const waited = Promise.all(
      receipt.runs.map(async ({ runId, receipt: one }) => ({
        runId,
        receipt: await waitFor(this.#engine, runId, one, limit),
      })),
    );
    const [runs, processes] = await Promise.all([waited, waitForAll(this.#engine, receipt.processes, limit)]);
    return { ...receipt, runs, ...(processes === undefined ? {} : { processes }) };
  }

  /** Stops the run of the prompt that was sent with this key, even while it is still being accepted. */
  cancelPrompt(key: string, options: PromptCancelOptions = {}): Promise<PromptReceipt> {
    const { reason, key: once, early = false, actor, ...rest } = optionsOf(options, "cancelPrompt()");
    rejectUnknown(rest, "cancelPrompt()");
    const [named] = checkKeys([key]);
    if (named === undefined) throw invalid("cancelPrompt() takes the key of a prompt.");
    if (typeof early !== "boolean") throw invalid("`early` must be true or false.");
    const stop = { key: named, reason: checkReason(reason), ...(early ? { prompts: [named] } : {}) };
    return this.#engine.cancel.prompt(this.id, { ...stop, ...checkSender(actor) }, checkKey(once));
  }

  /** One call of this session, by Belay's id or by the model's own. Rejects with `not_found`. */
  async call(id: string): Promise<CallView> {
    await this.#loaded();
    return sessionCall(this.#engine, this.id, checkNote(id));
  }

  /** Stops one call of this session, by Belay's id or by the model's own. */
  async cancelCall(id: string, options: CancelOptions = {}): Promise<CancelReceipt & AwaitedOutcome> {
    return cancelSessionCall(this.#engine, this.id, checkNote(id), options);
  }

  /** Ends the session: stops everything, keeps the log, and accepts nothing afterwards. */
  close(options: Pick<CancelOptions, "reason" | "key"> = {}): Promise<SessionReceipt> {
    const { reason: given, key, ...rest } = optionsOf(options, "close()");
    rejectUnknown(rest, "close()");
    const reason = given === undefined ? ({ kind: "closed" } as const) : checkReason(given);
    return this.#engine.ask(this.id, { type: "close", reason }, checkKey(key));
  }

  /** Everything after a position, then live events, until the loop is left or `signal` aborts. */
  events(options: EventsOptions = {}): AsyncGenerator<Recorded | Delta | Gap, void> {
    return pagedItems(this.#pages(options));
  }

  /** The same, in batches of what is available. */
  pages(options: EventsOptions = {}): AsyncGenerator<readonly (Recorded | Delta | Gap)[], void> {
    return this.#pages(options);
  }

  #pages(options: EventsOptions): Stoppable<readonly (Recorded | Delta | Gap)[]> {
    return this.#engine.pages(this.id, () => {
      const { after = 0, deltas = "without", signal, ...rest } = optionsOf(options, "events()");
      rejectUnknown(rest, "events()");
      if (!Number.isInteger(after) || after < 0)
        throw invalid("`after` must be a position in the log: a whole number from 0.");
      if (deltas !== "with" && deltas !== "without") throw invalid('`deltas` must be "with" or "without".');
      if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid("`signal` must be an AbortSignal.");
      // A session that does not exist is reported when the first event is requested.
      return { after: this.#checkPosition(after), signal, deltas };
    });
  }

  /** Resolves with the position. Rejects if there is no such session, or its log ends before the position. */
  async #checkPosition(after: Seq): Promise<Seq> {
    if (after <= (await this.#loaded()).durable.head) return after;
    // Another worker may have appended to the log.
    const { head } = await this.row();
    if (after > head) throw beyondTheEnd(after, head);
    return after;
  }

  /** The conversation so far, from the log. */
  async transcript(): Promise<readonly Message[]> {
    await this.#loaded();
    return transcript(await Array.fromAsync(readAll(this.#engine.store, this.id, 0)));
  }

  /** The questions that its live run has asked users and that are still open. */
  async questions(): Promise<readonly Question[]> {
    return (await this.#loaded()).durable.live?.questions ?? [];
  }

  /**
   * Adds a note for the model's next turn, not a prompt: a reminder, or the result of background work. It is kept
   * until a turn has included it, and starts no run.
   */
  async post(item: InboxItem, options: Pick<CancelOptions, "key"> = {}): Promise<InboxReceipt> {
    const { key, ...rest } = optionsOf(options, "post()");
    rejectUnknown(rest, "post()");
    const posted = await this.#engine.ask(this.id, { type: "post", item: checkItem(item) }, checkKey(key));
    if (posted.kind === "refused") throw new ControlError(posted.code, posted.message);
    return posted;
  }

  /** Sets how the agent works from now on. Started calls and open questions keep the mode they began with. */
  async setMode(mode: string, options: ModeOptions = {}): Promise<ModeReceipt> {
    const { by, key, ...rest } = optionsOf(options, "setMode()");
    rejectUnknown(rest, "setMode()");
    const named = by === undefined ? {} : { by: checkNote(by) };
    const once = checkKey(key);
    const unknown = this.#engine.modes.refusal(mode);
    if (unknown !== undefined) {
      // A missing session is reported first.
      await this.#loaded();
      throw unknown;
    }
    const receipt = await this.#engine.ask(this.id, { type: "set-mode", mode, ...named }, once);
    if (receipt.kind === "refused") throw new ControlError(receipt.code, receipt.message);
    return receipt;
  }

  /** Why the session is busy: what it does, what it waits for, what is queued, and what a cancel would do. */
  async explain(): Promise<Explanation> {
    const lane = await this.#loaded();
    const { store, worker, processes, modes, dispatch } = this.#engine;
    const times = await runningSince(store, lane);
    const mode = modes.inForce(lane.durable.mode);
    return explain(lane, { worker, times, mode, processes: processes.list(lane), hasSlot: dispatch.hasSlot(lane) });
  }

  /**
   * Removes the events before a position. Never those of runs without an outcome, never a part of a run, and never
   * what the next request to a model needs; the result says which of these limited it.
   */
  async trim(before: Seq): Promise<Trimmed> {
    if (!Number.isInteger(before) || before < 1)
      throw invalid("`before` must be a position in the log: a whole number from 1.");
    return this.#engine.removal.trim(this.id, before);
  }

  /** Stops everything and deletes the session permanently, with its log and the output of its processes. */
  async delete(options: Pick<CancelOptions, "reason"> = {}): Promise<SessionDeleted> {
    const { reason, ...rest } = optionsOf(options, "delete()");
    rejectUnknown(rest, "delete()");
    return this.#engine.delete(this.id, reason === undefined ? { kind: "closed" } : checkReason(reason));
  }

  /** The run of the prompt that was sent with this key. Rejects with `not_found`. */
  async findRun(key: string): Promise<RunHandle> {
    const [named = ""] = checkKeys([key]);
    await this.#loaded();
    return runHandle(this.#engine, await this.#engine.store.run({ session: this.id, key: named }), `with key ${named}`);
  }

  /** The session's runs, newest first. */
  async runs(page: { readonly before?: Seq; readonly limit?: number } = {}): Promise<readonly RunRow[]> {
    const { before = Number.MAX_SAFE_INTEGER, limit, ...rest } = optionsOf(page, "runs()");
    rejectUnknown(rest, "runs()");
    if (!Number.isInteger(before) || before < 0) throw invalid("`before` must be a position in the log.");
    const checked = checkLimit(limit);
    await this.#loaded();
    return this.#engine.store.runs(this.id, { before, limit: checked });
  }

  async #loaded(): Promise<SessionState> {
    const lane = await this.#engine.loaded(this.id);
    if (lane === undefined) throw new ControlError("not_found", `There is no session ${this.id}.`);
    return lane;
  }
}

/** Validated before anything is stopped: a cancel that is refused has stopped nothing. */
export function checkSessionStop(options: SessionCancelOptions, of: string): CheckedStop {
  const { reason, waitMs, key, background, only, prompts, actor, ...rest } = optionsOf(options, of);
  rejectUnknown(rest, of);
  if (background !== undefined && background !== "keep" && background !== "stop") {
    throw invalid('`background` must be "keep" or "stop".');
  }
  if (only !== undefined && only !== "queue") throw invalid('`only` must be "queue".');
  const named = prompts === undefined || prompts.length === 0 ? {} : { prompts: checkKeys(prompts) };
  const which = { ...(background === undefined ? {} : { background }), ...(only === undefined ? {} : { only }) };
  const how = { ...which, ...named, ...checkSender(actor) };
  const stop = { reason: checkReason(reason), ...how };
  return { stop, once: checkKey(key), waitMs: checkWait(waitMs) };
}

interface CheckedStop {
  readonly stop: SessionStop;
  readonly once: string | undefined;
  readonly waitMs: number | undefined;
}

/**
 * The runs that have not started. Each change is serialized with their start: it is in time, or its receipt says
 * `started`.
 */
export class Queue implements QueueControl {
  readonly #engine: Engine;
  readonly #session: SessionId;

  static {
    yieldEach(Queue, (queue) => queue.#engine.handles.gate, ["withdraw", "clear"]);
  }

  constructor(engine: Engine, session: SessionId) {
    this.#engine = engine;
    this.#session = session;
  }

  async list(): Promise<readonly QueuedRun[]> {
    const lane = await this.#engine.loaded(this.#session);
    if (lane === undefined) throw new ControlError("not_found", `There is no session ${this.#session}.`);
    const { queue, steers } = lane.durable;
    return [
      ...steers.map(({ id, prompt }) => ({ runId: id, prompt, joined: "steer" as const })),
      ...queue.map(({ id, prompt }) => ({ runId: id, prompt, joined: "queue" as const })),
    ];
  }

  edit(run: string, prompt: string | Prompt, options: Keyed = {}): Promise<QueueReceipt> {
    return this.#change({ type: "edit", runId: checkRun(run), prompt: checkPrompt(prompt) }, options);
  }

  move(run: string, to: QueuePlace, options: Keyed = {}): Promise<QueueReceipt> {
    return this.#change({ type: "move", runId: checkRun(run), to: checkPlace(to) }, options);
  }

  withdraw(run: string, options: Pick<CancelOptions, "reason" | "key"> = {}): Promise<QueueReceipt> {
    return this.#change(
      { type: "withdraw", runId: checkRun(run), reason: checkReason(optionsOf(options, "withdraw()").reason) },
      options,
    );
  }

  clear(options: QueueClearOptions = {}): Promise<SessionReceipt> {
    const { reason: _, key: __, prompts: ___, actor: ____, ...rest } = optionsOf(options, "clear()");
    rejectUnknown(rest, "clear()");
    const { stop, once } = checkSessionStop({ ...options, only: "queue" }, "clear()");
    return this.#engine.cancel.session(this.#session, stop, once);
  }

  /** Lets the live run take it in at its next turn, instead of running it separately. */
  steer(run: string, options: Keyed = {}): Promise<QueueReceipt> {
    return this.#change({ type: "steer", runId: checkRun(run) }, options);
  }

  async #change(command: QueueChange, options: Keyed & { reason?: unknown }): Promise<QueueReceipt> {
    const { key, reason: _, ...rest } = optionsOf(options, `${command.type}()`);
    rejectUnknown(rest, `${command.type}()`);
    const receipt = await this.#engine.change(this.#session, command, checkKey(key));
    if (receipt.kind === "refused") throw new ControlError(receipt.code, receipt.message);
    return receipt;
  }
}

function checkRun(run: string): RunId {
  if (typeof run !== "string" || !isRunId(run)) throw invalid('A run id begins with "run_".');
  return run;
}

function checkPlace(to: QueuePlace): QueuePlace {
  if (to === "front" || to === "back") return to;
  if (typeof to === "object" && to !== null && isRunId(to.before)) return { before: to.before };
  throw invalid('A place must be "front", "back" or { before: runId }.');
}
