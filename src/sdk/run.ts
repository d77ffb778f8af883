// The handle of a run: acceptance, events, outcome and cancel, usable from the tick of the prompt.

import { ControlError } from "../core/errors.ts";
import { checkKey, checkMs, checkReason, optionsOf, rejectUnknown } from "../core/input.ts";
import { CALL_WAIT_MS, RECEIPT_MS_MIN, WAIT_MS_MAX } from "../core/limits.ts";
import type { CancelReason, CancelReceipt, CoveredProcess, Outcome } from "../core/model/cancel.ts";
import type { Accepted } from "../core/model/command.ts";
import type { Delta, Gap } from "../core/model/delta.ts";
import type { Recorded } from "../core/model/event.ts";
import { type CallId, type ProcessId, type RunId, type SessionId, sessionOf } from "../core/model/ids.ts";
import type { RunRow } from "../core/model/rows.ts";
import { type RunResult, resultOf } from "../core/read/run-result.ts";
import { runText, type TextOptions } from "../core/read/run-text.ts";
import { RunReader, type RunView } from "../core/read/run-view.ts";
import type { Begun } from "../engine/acceptance.ts";
import type { OnStop } from "../engine/cancels.ts";
import type { Engine } from "../engine/engine.ts";
import { OVER } from "../engine/log/follow.ts";
import { unrecordedStop } from "../engine/log/pending-commands.ts";
import { readAll } from "../engine/log/replay.ts";
import { type Stop, Stoppable } from "../engine/log/stoppable-generator.ts";
import { ignoreUnhandled, orLimit, ProcessHandle } from "../engine/process/process-handle.ts";
import { gone } from "../engine/shutdown-errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { AwaitedOutcome, CancelOptions, RunControl } from "../ports/control.ts";
import { yieldEach } from "./yielding.ts";

export class RunHandle implements RunControl {
  readonly sessionId: SessionId;
  readonly #engine: Engine;
  readonly #accepted: Promise<Accepted>;
  #id: RunId;
  #outcome: Promise<Outcome> | undefined;

  static {
    yieldEach(RunHandle, (run) => run.#engine.handles.gate, ["accepted", "outcome", "cancel"]);
  }

  constructor(engine: Engine, begun: Begun) {
    this.#engine = engine;
    this.sessionId = begun.sessionId;
    this.#id = begun.runId;
    this.#accepted = ignoreUnhandled(
      begun.accepted.then((accepted) => {
        this.#id = accepted.runId;
        return accepted;
      }),
    );
  }

  /**
   * Available at once. A prompt that repeats an idempotency key takes the first prompt's run id when it is accepted.
   */
  get id(): RunId {
    return this.#id;
  }

  /** Resolves when the prompt is durable. Rejects with a ControlError if it was refused; then nothing was recorded. */
  get accepted(): Promise<Accepted> {
    return this.#accepted;
  }

  /** Resolves with this run's outcome once it is durable. Rejects only if the prompt was refused. */
  get outcome(): Promise<Outcome> {
    this.#outcome ??= this.#accepted.then(({ runId }) => this.#outcomeOf(runId));
    return this.#outcome;
  }

  /** The run's current row. */
  async row(): Promise<RunRow> {
    const { runId } = await this.#accepted;
    const row = await this.#engine.store.run(runId);
    if (row === undefined) throw new ControlError("not_found", `There is no run ${runId}.`);
    return row;
  }

  /** Stops this run and no other, even before it is accepted. */
  async cancel(options: CancelOptions = {}): Promise<CancelReceipt & AwaitedOutcome> {
    const { reason, waitMs, key, ...rest } = optionsOf(options, "cancel() of a run");
    rejectUnknown(rest, "cancel() of a run");
    const why = checkReason(reason);
    const once = checkKey(key);
    checkWait(waitMs);
    const limit = new WaitLimit(this.#engine.clock, waitMs);
    const receipt = await limit.receipt((onStop) => this.#stop(why, once, onStop));
    return waitFor(this.#engine, this.#id, receipt, limit);
  }

  async #stop(reason: CancelReason, once: string | undefined, onStop: OnStop): Promise<CancelReceipt> {
    const id = this.#id;
    const receipt = await this.#engine.cancel.run(id, reason, once, onStop);
    if (receipt.kind !== "unknown") return receipt;
    // A repeated prompt stops the run of the first one; a refused prompt stops nothing.
    const { runId } = await this.#accepted.catch(() => ({ runId: id }));
    if (runId === id) return receipt;
    // The caller's key was used for the first id, so the second stop has a derived key; repeating the request repeats
    // both.
    const key = once === undefined ? undefined : this.#engine.digest(`${once} ${runId}`);
    return this.#engine.cancel.run(runId, reason, key, onStop);
  }

  /** The text of the last turn, once the run has ended. With `{ all: true }` the text of all turns. */
  text(options: TextOptions = {}): Promise<string> {
    const { all, ...rest } = optionsOf(options, "text()");
    rejectUnknown(rest, "text()");
    return runText(this.#events("without"), { all: all === true });
  }

  /** Waits for the end and resolves with the answer. Throws a RunError unless the run completed. */
  async result(): Promise<RunResult> {
    await this.outcome;
    const reader = await readRun(this.#engine, this.#id);
    return resultOf(reader.view, reader.text);
  }

  /** The current state: prompt, key, times, outcome, text, usage, calls. */
  async view(): Promise<RunView> {
    const { runId } = await this.#accepted;
    return (await readRun(this.#engine, runId)).view;
  }

  /** The run's events from acceptance to outcome, with live text deltas. Ends after the outcome. */
  [Symbol.asyncIterator](): AsyncGenerator<Recorded | Delta | Gap, void> {
    return this.#events("with");
  }

  #events(deltas: "with" | "without"): AsyncGenerator<Recorded | Delta | Gap, void> {
    return new Stoppable((stop) => this.#follow(deltas, stop));
  }

  async *#follow(deltas: "with" | "without", stop: Stop): AsyncGenerator<Recorded | Delta | Gap, void> {
    // Follows from this tick on, so that nothing is missed of a run that ends before its acceptance is reported.
    const after = this.#accepted.then(({ seq }) => seq - 1);
    const events = this.#engine.follow(this.sessionId, { after, signal: undefined, deltas });
    stop.onStop(() => void events.return());
    for await (const event of events) {
      if (event.type === "gap") {
        yield event;
        if (await this.#endsWithin(event)) return;
      }
      if (!("runId" in event) || event.runId !== this.#id) continue;
      // A later read of `outcome` needs no lookup.
      if (event.type === "run.settled") this.#outcome ??= Promise.resolve(event.outcome);
      yield event;
      if (event.type === "run.settled") return;
    }
    throw gone(this.#id);
  }

  /** Whether the run's end was removed by retention: then no event follows. */
  async #endsWithin(gap: Gap): Promise<boolean> {
    const { settledAt } = await this.row();
    return settledAt !== undefined && settledAt <= gap.to;
  }

  async #outcomeOf(runId: RunId): Promise<Outcome> {
    const outcome = await this.#engine.outcome(runId);
    if (outcome === undefined) throw new ControlError("not_found", `There is no run ${runId}.`);
    return outcome;
  }
}

/** A handle of a run that was accepted earlier. `name`: the id or the key it was looked up by. */
export async function runHandle(engine: Engine, row: RunRow | undefined, name: string): Promise<RunHandle> {
  if (row === undefined) throw new ControlError("not_found", `There is no run ${name}.`);
  const accepted = Promise.resolve(await engine.standing(row));
  return new RunHandle(engine, { sessionId: row.session, runId: row.id, accepted });
}

/** Reads one run from the log. */
async function readRun(engine: Engine, runId: RunId): Promise<RunReader> {
  for (;;) {
    const row = await rowOf(engine, runId);
    const reader = new RunReader(row);
    for await (const event of readAll(engine.store, row.session, row.acceptedAt - 1)) {
      reader.note(event);
      if (event.seq === row.settledAt) break;
    }
    // The run may have settled meanwhile: the row and the events must agree.
    if (row.settledAt !== undefined || (await rowOf(engine, runId)).phase === row.phase) return reader;
  }
}

async function rowOf(engine: Engine, runId: RunId): Promise<RunRow> {
  const row = await engine.store.run(runId);
  if (row === undefined) throw new ControlError("not_found", `There is no run ${runId}.`);
  return row;
}

/** Waits for the end of one call. */
export async function waitForCall(
  engine: Engine,
  callId: CallId,
  receipt: CancelReceipt,
  limit: WaitLimit,
): Promise<CancelReceipt & AwaitedOutcome> {
  if (receipt.kind !== "stopping") return receipt;
  const waitMs = limit.leftMs ?? CALL_WAIT_MS;
  const outcome = waitMs === 0 ? undefined : await callOutcome(engine, callId, waitMs);
  return { ...receipt, ended: outcome === undefined ? limit.reached : settledWith(outcome) };
}

/** The outcome of a call, if it ends within `waitMs`. */
async function callOutcome(engine: Engine, callId: CallId, waitMs: number): Promise<Outcome | undefined> {
  const stop = new AbortController();
  const cancelTimer = engine.clock.after(waitMs, () => stop.abort(OVER));
  try {
    return await engine.ends.call(callId, stop.signal);
  } finally {
    cancelTimer();
  }
}

interface ProcessStop {
  readonly reason: CancelReason;
  readonly limit: WaitLimit;
  readonly key: string | undefined;
}

/** Stops one process, and by default waits until its whole tree is gone. */
export async function cancelProcess(
  engine: Engine,
  id: ProcessId,
  { reason, limit, key }: ProcessStop,
): Promise<CancelReceipt & AwaitedOutcome> {
  const receipt = await limit.receipt((onStop) => engine.cancel.process(id, reason, key, onStop));
  return receipt.kind === "stopping" ? waitForProcess(engine, id, receipt, limit) : receipt;
}

async function waitForProcess(
  engine: Engine,
  id: ProcessId,
  receipt: CancelReceipt,
  limit: WaitLimit,
): Promise<CancelReceipt & AwaitedOutcome> {
  const handle = new ProcessHandle(engine.handles, id, sessionOf(id), engine.handles.gate);
  const result = await handle.wait({ limitMs: limit.leftMs ?? CALL_WAIT_MS });
  return { ...receipt, ended: result === undefined ? limit.reached : settledWith(result.outcome) };
}

const settledWith = (outcome: Outcome) => ({ kind: "settled", outcome }) as const;

/** Waits for the processes that a cancel of their session covers. */
export async function waitForAll(
  engine: Engine,
  covered: readonly CoveredProcess[] | undefined,
  limit: WaitLimit,
): Promise<readonly CoveredProcess[] | undefined> {
  if (covered === undefined) return undefined;
  return Promise.all(
    covered.map(async ({ processId, receipt }) => ({
      processId,
      receipt: receipt.kind === "stopping" ? await waitForProcess(engine, processId, receipt, limit) : receipt,
    })),
  );
}

/** Validated before anything is stopped: a cancel that is refused has stopped nothing. */
export const checkWait = (waitMs: number | undefined): number | undefined =>
  waitMs === undefined ? undefined : checkMs(waitMs, "waitMs", WAIT_MS_MAX);

/** Adds the outcome, if the caller wants to wait and there is something to wait for. */
export async function waitFor(
  engine: Engine,
  runId: RunId,
  receipt: CancelReceipt,
  limit: WaitLimit,
): Promise<CancelReceipt & AwaitedOutcome> {
  const { leftMs } = limit;
  if (leftMs === undefined || receipt.kind !== "stopping") return receipt;
  const outcome = await orLimit(engine.clock, engine.outcome(runId), { limitMs: leftMs });
  return { ...receipt, ended: outcome === undefined ? limit.reached : settledWith(outcome) };
}

/** The `waitMs` of one cancel, counted from the call, for the receipt and for the end of the work. */
export class WaitLimit {
  readonly #clock: Clock;
  readonly #waitMs: number | undefined;
  readonly #since: number;

  constructor(clock: Clock, waitMs: number | undefined) {
    this.#clock = clock;
    this.#waitMs = waitMs;
    this.#since = clock.elapsed();
  }

  /** The remaining time. Undefined: the caller gave no limit. */
  get leftMs(): number | undefined {
    if (this.#waitMs === undefined) return undefined;
    return Math.max(0, Math.ceil(this.#waitMs - (this.#clock.elapsed() - this.#since)));
  }

  get reached(): { readonly kind: "limit"; readonly waitMs: number } {
    return { kind: "limit", waitMs: this.#waitMs ?? CALL_WAIT_MS };
  }

  /** The receipt, if the store records the stop in time. `send` reports when a stop is being carried out. */
  async receipt<R extends object>(send: (onStop: OnStop) => Promise<R>): Promise<R> {
    let isCarriedOut = false;
    const pending = send(() => {
      isCarriedOut = true;
    });
    // With 0 the caller wants the receipt without waiting for the end.
    if (this.#waitMs === undefined || this.#waitMs === 0) return pending;
    const limitMs = Math.max(this.#waitMs, RECEIPT_MS_MIN);
    const receipt = await orLimit(this.#clock, pending, { limitMs });
    if (receipt !== undefined) return receipt;
    const late = new ControlError("unavailable", `The store has not answered within ${limitMs} ms.`);
    throw isCarriedOut ? unrecordedStop(late) : late;
  }
}
