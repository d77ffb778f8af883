// Waits for the outcomes of runs for clients: until the outcome, the timeout, the disconnect or the shutdown.
//
// Invariants
// 1. However many requests wait for a run, one promise listens for its outcome.
// 2. A request that stops waiting leaves nothing else behind.

import { ControlError } from "../../core/errors.ts";
import type { Outcome } from "../../core/model/cancel.ts";
import type { Clock } from "../../ports/clock.ts";
import type { RunControl } from "../../ports/control.ts";
import { OUTCOMES_AWAITED_MAX } from "../limits.ts";

/** The requests that wait for one run. Not promise reactions: those would stay until the run has ended. */
type Waiters = Set<PromiseWithResolvers<Outcome | undefined>>;

export class Waits {
  readonly #clock: Clock;
  readonly #runs = new Map<string, Waiters>();
  readonly #closing = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends all waits, now and in the future. */
  close(): void {
    this.#closing.abort(CLOSING);
  }

  get closing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Waits for the outcome of a run until the timeout or the disconnect. Returns the waited time, too. */
  async outcome(
    run: RunControl,
    limitMs: number,
    gone: AbortSignal,
  ): Promise<{ readonly outcome: Outcome | undefined; readonly waitedMs: number }> {
    const from = this.#clock.elapsed();
    const outcome = await this.#within(run, limitMs, gone);
    return { outcome, waitedMs: Math.round(this.#clock.elapsed() - from) };
  }

  /** Waits for the first outcome of several runs. An error of one run does not end the wait for the others. */
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
      throw new ControlError("overloaded", "Too many runs are awaited.");
    }
    const waiters: Waiters = new Set();
    this.#runs.set(id, waiters);
    const settle = (notify: (waiter: PromiseWithResolvers<Outcome | undefined>) => void): void => {
      this.#runs.delete(id);
      for (const waiter of waiters) notify(waiter);
    };
    outcome.then(
      (ended) => settle(({ resolve }) => resolve(ended)),
      (error) => settle(({ reject }) => reject(error)),
    );
    return waiters;
  }

  async #within(run: RunControl, limitMs: number, gone: AbortSignal): Promise<Outcome | undefined> {
    const { signal: closing } = this.#closing;
    if (gone.aborted || closing.aborted || limitMs === 0) return undefined;
    const waiters = this.#waitersOf(run);
    const waiter = Promise.withResolvers<Outcome | undefined>();
    const stop = (): void => waiter.resolve(undefined);
    const cancelTimer = this.#clock.after(limitMs, stop);
    waiters.add(waiter);
    gone.addEventListener("abort", stop);
    closing.addEventListener("abort", stop);
    try {
      return await waiter.promise;
    } finally {
      cancelTimer();
      waiters.delete(waiter);
      gone.removeEventListener("abort", stop);
      closing.removeEventListener("abort", stop);
    }
  }
}

const OVER = { name: "Over", message: "Another run has ended." } as const;
const CLOSING = { name: "Closing", message: "The server is shutting down." } as const;
