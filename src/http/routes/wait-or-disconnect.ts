// Waiting on behalf of somebody who may leave, for something that may take long. Ends with what came first.
//
// Invariants
// 1. However often a run is asked about, one promise waits for its outcome.
// 2. Whoever stops waiting leaves nothing behind but that.

import { ControlError } from "../../core/errors.ts";
import type { Outcome } from "../../core/model/cancel.ts";
import type { Clock } from "../../ports/clock.ts";
import type { RunControl } from "../../ports/control.ts";
import { OUTCOMES_AWAITED_MAX } from "../limits.ts";

/** Who waits for one run. Not reactions of a promise: those stay until the run has ended, however long that takes. */
type Waiters = Set<PromiseWithResolvers<Outcome | undefined>>;

export class Waits {
  readonly #clock: Clock;
  readonly #runs = new Map<string, Waiters>();
  readonly #closing = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Nobody is made to wait any longer, nor from now on. */
  close(): void {
    this.#closing.abort(CLOSING);
  }

  get closing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** How a run ends, if it does within `limitMs` and somebody still wants to know. And how long that took. */
  async outcome(
    run: RunControl,
    limitMs: number,
    gone: AbortSignal,
  ): Promise<{ readonly outcome: Outcome | undefined; readonly waitedMs: number }> {
    const from = this.#clock.elapsed();
    const outcome = await this.#within(run, limitMs, gone);
    return { outcome, waitedMs: Math.round(this.#clock.elapsed() - from) };
  }

  /** Until the first of these runs ends. One that cannot be waited for is no reason not to wait for the others. */
  async anyOf(runs: readonly RunControl[], limitMs: number, gone: AbortSignal): Promise<void> {
    const over = new AbortController();
    const signal = AbortSignal.any([gone, over.signal]);
    try {
      await Promise.any(runs.map((run) => this.#within(run, limitMs, signal)));
    } catch (thrown) {
      throw thrown instanceof AggregateError ? thrown.errors[0] : thrown;
    } finally {
      over.abort(OVER);
    }
  }

  #waitersOf({ id, outcome }: RunControl): Waiters {
    const known = this.#runs.get(id);
    if (known !== undefined) return known;
    if (this.#runs.size >= OUTCOMES_AWAITED_MAX) {
      throw new ControlError("overloaded", "The outcomes of too many runs are being waited for.");
    }
    const waiters: Waiters = new Set();
    this.#runs.set(id, waiters);
    const over = (tell: (waiter: PromiseWithResolvers<Outcome | undefined>) => void): void => {
      this.#runs.delete(id);
      for (const waiter of waiters) tell(waiter);
    };
    outcome.then(
      (ended) => over(({ resolve }) => resolve(ended)),
      (error) => over(({ reject }) => reject(error)),
    );
    return waiters;
  }

  async #within(run: RunControl, limitMs: number, gone: AbortSignal): Promise<Outcome | undefined> {
    const { signal: closing } = this.#closing;
    if (gone.aborted || closing.aborted || limitMs === 0) return undefined;
    const waiters = this.#waitersOf(run);
    const waiter = Promise.withResolvers<Outcome | undefined>();
    const stop = (): void => waiter.resolve(undefined);
    const dispose = this.#clock.after(limitMs, stop);
    waiters.add(waiter);
    gone.addEventListener("abort", stop);
    closing.addEventListener("abort", stop);
    try {
      return await waiter.promise;
    } finally {
      dispose();
      waiters.delete(waiter);
      gone.removeEventListener("abort", stop);
      closing.removeEventListener("abort", stop);
    }
  }
}

const OVER = { name: "Over", message: "Another run has ended." } as const;
const CLOSING = { name: "Closing", message: "The server is shutting down." } as const;
