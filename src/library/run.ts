// A run as its prompter holds it: acceptance, events, outcome, and the means to stop it, from the first tick on.
import type { CancelOptions, RunControl, Waited } from "../control.ts";
import type { CancelReason, CancelReceipt, CoveredProcess, Outcome } from "../core/cancel.ts";
import type { Accepted } from "../core/command.ts";
import { ControlError } from "../core/control-error.ts";
import type { Delta, Gap } from "../core/delta.ts";
import type { Recorded } from "../core/event.ts";
import { type CallId, type ProcessId, type RunId, runOf, type Seq, type SessionId, sessionOf } from "../core/ids.ts";
import { CALL_WAIT_MS, WAIT_MS_MAX } from "../core/limits.ts";
import type { RunRow } from "../core/rows.ts";
import { runText } from "../core/run-text.ts";
import { gone } from "../engine/closing.ts";
import type { Engine } from "../engine/engine.ts";
import { OVER } from "../engine/follow.ts";
import { ProcessHandle, unpunished } from "../engine/process-handle.ts";
import type { Begun, Bound } from "../engine/prompted.ts";
import { type Stop, Stoppable } from "../engine/stoppable.ts";
import { checkKey, checkMs, checkReason, optionsOf, rejectUnknown } from "../engine/validate.ts";

export class RunHandle implements RunControl {
  readonly sessionId: SessionId;
  /** Resolves when the prompt is durable; rejects with a ControlError if it was refused, and then nothing happened. */
  readonly accepted: Promise<Accepted>;
  readonly #engine: Engine;
  readonly #bound: Bound | undefined;
  #id: RunId;
  #outcome: Promise<Outcome> | undefined;

  constructor(engine: Engine, begun: Begun) {
    this.#engine = engine;
    this.sessionId = begun.sessionId;
    this.#id = begun.runId;
    this.#bound = begun.bound;
    this.accepted = unpunished(
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

  /** Resolves with this run's own outcome, once it is durable. Rejects only if the prompt was refused. */
  get outcome(): Promise<Outcome> {
    this.#outcome ??= unpunished(this.accepted.then(({ runId }) => this.#await(runId)));
    return this.#outcome;
  }

  /** As it stands. */
  async row(): Promise<RunRow> {
    const { runId } = await this.accepted;
    const row = await this.#engine.store.run(runId);
    if (row === undefined) throw new ControlError("not_found", `There is no run ${runId}.`);
    return row;
  }

  /** Stops this run and no other, also before its acceptance was answered. */
  cancel(options: CancelOptions = {}): Promise<CancelReceipt & Waited> {
    return unpunished(this.#cancel(options));
  }

  async #cancel(options: CancelOptions): Promise<CancelReceipt & Waited> {
    const { reason, waitMs, key, ...rest } = optionsOf(options, "cancel() of a run");
    rejectUnknown(rest, "cancel() of a run");
    const why = checkReason(reason);
    const once = checkKey(key);
    const limit = checkWait(waitMs);
    // The key's first prompt may have been another one, and then this one is refused: what it asked has to agree.
    const receipt =
      this.#bound === undefined
        ? await this.#engine.cancel.run(this.#id, why, once)
        : await this.#engine.cancel.prompt(this.sessionId, { ...this.#bound, reason: why }, once);
    return waitFor(this.#engine, this.#id, receipt, limit);
  }

  /**
   * What this run's turns have said, once it has ended. What a turn said that was cut off and asked again is left out.
   */
  text(): Promise<string> {
    return runText(this.#events("without"));
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
    const after = this.accepted.then(({ seq }) => seq - 1);
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

/** The same for one call: what became of it is read off the log. */
export async function waitForCall(
  engine: Engine,
  callId: CallId,
  receipt: CancelReceipt,
  waitMs: number = CALL_WAIT_MS,
): Promise<CancelReceipt & Waited> {
  if (receipt.kind !== "stopping") return receipt;
  const outcome = waitMs === 0 ? undefined : await callOutcome(engine, callId, receipt.since, waitMs);
  return { ...receipt, ended: outcome === undefined ? { kind: "limit", waitMs } : { kind: "settled", outcome } };
}

/** How a call ended, if it does within `waitMs` after the position `since`. */
async function callOutcome(engine: Engine, callId: CallId, since: Seq, waitMs: number): Promise<Outcome | undefined> {
  const session = engine.lanes.home(runOf(callId)) ?? (await engine.store.run(runOf(callId)))?.session;
  if (session === undefined) return undefined;
  const stop = new AbortController();
  const takeBack = engine.clock.after(waitMs, () => stop.abort(OVER));
  try {
    for await (const event of engine.follow(session, { after: since, signal: stop.signal, deltas: "without" })) {
      if (event.type === "call.settled" && event.callId === callId) return event.outcome;
    }
    return undefined;
  } finally {
    takeBack();
    stop.abort(OVER);
  }
}

interface ProcessStop {
  readonly reason: CancelReason;
  readonly waitMs: number | undefined;
  readonly key: string | undefined;
}

/** Stops one process, and by default waits until its whole tree is gone. */
export async function cancelProcess(
  engine: Engine,
  id: ProcessId,
  { reason, waitMs = CALL_WAIT_MS, key }: ProcessStop,
): Promise<CancelReceipt & Waited> {
  const receipt = await engine.cancel.process(id, reason, key);
  return receipt.kind === "stopping" ? waitForProcess(engine, id, receipt, waitMs) : receipt;
}

async function waitForProcess(
  engine: Engine,
  id: ProcessId,
  receipt: CancelReceipt,
  waitMs: number,
): Promise<CancelReceipt & Waited> {
  const result = await new ProcessHandle(engine.handles, id, sessionOf(id)).wait({ limitMs: waitMs });
  const ended = result === undefined ? ({ kind: "limit", waitMs } as const) : settledLike(result.outcome);
  return { ...receipt, ended };
}

const settledLike = (outcome: Outcome) => ({ kind: "settled", outcome }) as const;

/** The processes a cancel of their session covers. */
export async function waitForAll(
  engine: Engine,
  covered: readonly CoveredProcess[] | undefined,
  waitMs: number,
): Promise<readonly CoveredProcess[] | undefined> {
  if (covered === undefined) return undefined;
  return Promise.all(
    covered.map(async ({ processId, receipt }) => ({
      processId,
      receipt: receipt.kind === "stopping" ? await waitForProcess(engine, processId, receipt, waitMs) : receipt,
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
  waitMs: number | undefined,
): Promise<CancelReceipt & Waited> {
  if (waitMs === undefined || receipt.kind !== "stopping") return receipt;
  let takeBack = (): void => {};
  const limit = new Promise<undefined>((resolve) => {
    takeBack = engine.clock.after(waitMs, () => resolve(undefined));
  });
  const outcome = await Promise.race([engine.outcome(runId), limit]);
  takeBack();
  return { ...receipt, ended: outcome === undefined ? { kind: "limit", waitMs } : { kind: "settled", outcome } };
}
