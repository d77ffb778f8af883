// A run as its prompter holds it: acceptance, events, outcome, and the means to stop it, from the first tick on.

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
import type { RunView } from "../core/read/run-view.ts";
import type { Begun } from "../engine/acceptance.ts";
import type { OnStop } from "../engine/cancels.ts";
import type { Engine } from "../engine/engine.ts";
import { OVER } from "../engine/log/follow.ts";
import { unrecordedStop } from "../engine/log/pending-commands.ts";
import { type Stop, Stoppable } from "../engine/log/stoppable-generator.ts";
import { ignoreUnhandled, orLimit, ProcessHandle } from "../engine/process/process-handle.ts";
import { gone } from "../engine/shutdown-errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { AwaitedOutcome, CancelOptions, RunControl } from "../ports/control.ts";
import { readRun } from "./read-run.ts";
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

  /** Usable at once. A prompt that repeats an idempotency key takes the first one's id when it is accepted. */
  get id(): RunId {
    return this.#id;
  }

  /** Resolves when the prompt is durable; rejects with a ControlError if it was refused, and then nothing happened. */
  get accepted(): Promise<Accepted> {
    return this.#accepted;
  }

  /** Resolves with this run's own outcome, once it is durable. Rejects only if the prompt was refused. */
  get outcome(): Promise<Outcome> {
    this.#outcome ??= this.#accepted.then(({ runId }) => this.#await(runId));
    return this.#outcome;
  }

  /** As it stands. */
  async row(): Promise<RunRow> {
    const { runId } = await this.#accepted;
    const row = await this.#engine.store.run(runId);
    if (row === undefined) throw new ControlError("not_found", `There is no run ${runId}.`);
    return row;
  }

  /** Stops this run and no other, also before its acceptance was answered. */
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
    // A prompt that only repeats an earlier one stops that one's run; one that was refused stops nothing.
    const { runId } = await this.#accepted.catch(() => ({ runId: id }));
    if (runId === id) return receipt;
    // The caller's own key stands for the stop by the first id; a repetition of both gets the same answers.
    const key = once === undefined ? undefined : this.#engine.digest(`${once} ${runId}`);
    return this.#engine.cancel.run(runId, reason, key, onStop);
  }

  /** The text of its last turn, once it has ended. With `{ all: true }` that of all its turns. */
  text(options: TextOptions = {}): Promise<string> {
    const { all, ...rest } = optionsOf(options, "text()");
    rejectUnknown(rest, "text()");
    return runText(this.#events("without"), { all: all === true });
  }

  /** Waits for its end, and resolves with its answer. Throws a RunError unless it completed. */
  async result(): Promise<RunResult> {
    await this.outcome;
    const reader = await readRun(this.#engine, this.#id);
    return resultOf(reader.view, reader.text);
  }

  /** What is known of it now: prompt, key, times, outcome, text, usage, calls. */
  async view(): Promise<RunView> {
    const { runId } = await this.#accepted;
    return (await readRun(this.#engine, runId)).view;
  }

  /** Its events from acceptance to outcome, with deltas of the text as it comes. Ends after the outcome. */
  [Symbol.asyncIterator](): AsyncGenerator<Recorded | Delta | Gap, void> {
    return this.#events("with");
  }

  #events(deltas: "with" | "without"): AsyncGenerator<Recorded | Delta | Gap, void> {
    return new Stoppable((stop) => this.#follow(deltas, stop));
  }

  async *#follow(deltas: "with" | "without", stop: Stop): AsyncGenerator<Recorded | Delta | Gap, void> {
    // From this very tick on, so that nothing of a run is missed that is over before its acceptance is heard of.
    const after = this.#accepted.then(({ seq }) => seq - 1);
    const events = this.#engine.follow(this.sessionId, { after, signal: undefined, deltas });
    stop.onStop(() => void events.return());
    for await (const event of events) {
      if (event.type === "gap") {
        yield event;
        if (await this.#endsWithin(event)) return;
      }
      if (!("runId" in event) || event.runId !== this.#id) continue;
      // Whoever asks for the outcome later need not look it up.
      if (event.type === "run.settled") this.#outcome ??= Promise.resolve(event.outcome);
      yield event;
      if (event.type === "run.settled") return;
    }
    throw gone(this.#id);
  }

  /** Whether the end itself is not kept any more: then nothing follows that could be waited for. */
  async #endsWithin(gap: Gap): Promise<boolean> {
    const { settledAt } = await this.row();
    return settledAt !== undefined && settledAt <= gap.to;
  }

  async #await(runId: RunId): Promise<Outcome> {
    const outcome = await this.#engine.outcome(runId);
    if (outcome === undefined) throw new ControlError("not_found", `There is no run ${runId}.`);
    return outcome;
  }
}

/** A handle on a run that was accepted earlier. `name`: the id or the key that it was looked up by. */
export async function runHandle(engine: Engine, row: RunRow | undefined, name: string): Promise<RunHandle> {
  if (row === undefined) throw new ControlError("not_found", `There is no run ${name}.`);
  const accepted = Promise.resolve(await engine.standing(row));
  return new RunHandle(engine, { sessionId: row.session, runId: row.id, accepted });
}

/** The same for one call. */
export async function waitForCall(
  engine: Engine,
  callId: CallId,
  receipt: CancelReceipt,
  limit: WaitLimit,
): Promise<CancelReceipt & AwaitedOutcome> {
  if (receipt.kind !== "stopping") return receipt;
  const waitMs = limit.leftMs ?? CALL_WAIT_MS;
  const outcome = waitMs === 0 ? undefined : await callOutcome(engine, callId, waitMs);
  return { ...receipt, ended: outcome === undefined ? limit.reached : settledLike(outcome) };
}

/** How a call ended, if it does within `waitMs`. */
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
  return { ...receipt, ended: result === undefined ? limit.reached : settledLike(result.outcome) };
}

const settledLike = (outcome: Outcome) => ({ kind: "settled", outcome }) as const;

/** The processes a cancel of their session covers. */
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

/** Before anything is stopped: a cancel that is refused has stopped nothing. */
export const checkWait = (waitMs: number | undefined): number | undefined =>
  waitMs === undefined ? undefined : checkMs(waitMs, "waitMs", WAIT_MS_MAX);

/** Adds what became of it, if the caller wants to wait and there is something to wait for. */
export async function waitFor(
  engine: Engine,
  runId: RunId,
  receipt: CancelReceipt,
  limit: WaitLimit,
): Promise<CancelReceipt & AwaitedOutcome> {
  const { leftMs } = limit;
  if (leftMs === undefined || receipt.kind !== "stopping") return receipt;
  const outcome = await orLimit(engine.clock, engine.outcome(runId), { limitMs: leftMs });
  return { ...receipt, ended: outcome === undefined ? limit.reached : settledLike(outcome) };
}

/** The `waitMs` of one cancel: from its call on, for the receipt and for the end of what it stops. */
export class WaitLimit {
  readonly #clock: Clock;
  readonly #waitMs: number | undefined;
  readonly #since: number;

  constructor(clock: Clock, waitMs: number | undefined) {
    this.#clock = clock;
    this.#waitMs = waitMs;
    this.#since = clock.elapsed();
  }

  /** What is left of it. Undefined: the caller gave none. */
  get leftMs(): number | undefined {
    if (this.#waitMs === undefined) return undefined;
    return Math.max(0, Math.ceil(this.#waitMs - (this.#clock.elapsed() - this.#since)));
  }

  get reached(): { readonly kind: "limit"; readonly waitMs: number } {
    return { kind: "limit", waitMs: this.#waitMs ?? CALL_WAIT_MS };
  }

  /** The receipt, if the store records the stop in time. `send` reports when something is being stopped. */
  async receipt<R extends object>(send: (onStop: OnStop) => Promise<R>): Promise<R> {
    let isCarriedOut = false;
    const coming = send(() => {
      isCarriedOut = true;
    });
    // With 0 the caller wants the receipt, and not to wait for the end.
    if (this.#waitMs === undefined || this.#waitMs === 0) return coming;
    const limitMs = Math.max(this.#waitMs, RECEIPT_MS_MIN);
    const receipt = await orLimit(this.#clock, coming, { limitMs });
    if (receipt !== undefined) return receipt;
    const late = new ControlError("unavailable", `The store has not answered within ${limitMs} ms.`);
    throw isCarriedOut ? unrecordedStop(late) : late;
  }
}
