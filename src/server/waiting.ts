// Waiting on behalf of somebody who may leave, for something that may take long. Ends with what came first.
//
// Invariants
// 1. However often a run is asked about, one promise waits for its outcome.
// 2. Whoever stops waiting leaves nothing behind but that.
import type { RunControl } from "../control.ts";
import type { Outcome } from "../core/cancel.ts";
import { ControlError } from "../core/control-error.ts";
import type { Clock } from "../ports.ts";
import { OUTCOMES_AWAITED_MAX } from "./limits.ts";

export class Waiting {
  readonly #clock: Clock;
  readonly #outcomes = new Map<string, Promise<Outcome>>();
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
    const outcome = await this.#within(this.#outcomeOf(run), limitMs, gone);
    return { outcome, waitedMs: Math.round(this.#clock.elapsed() - from) };
  }

  #outcomeOf(run: RunControl): Promise<Outcome> {
    const known = this.#outcomes.get(run.id);
    if (known !== undefined) return known;
    if (this.#outcomes.size >= OUTCOMES_AWAITED_MAX) {
      throw new ControlError("overloaded", "The outcomes of too many runs are being waited for.");
    }
    const { id, outcome } = run;
    const forget = (): void => void this.#outcomes.delete(id);
    this.#outcomes.set(id, outcome);
    outcome.then(forget, forget);
    return outcome;
  }

  #within<T>(coming: Promise<T>, limitMs: number, gone: AbortSignal): Promise<T | undefined> {
    const { signal: closing } = this.#closing;
    if (gone.aborted || closing.aborted || limitMs === 0) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        takeBack();
        gone.removeEventListener("abort", stop);
        closing.removeEventListener("abort", stop);
      };
      const stop = (): void => {
        leave();
        resolve(undefined);
      };
      const takeBack = this.#clock.after(limitMs, stop);
      gone.addEventListener("abort", stop);
      closing.addEventListener("abort", stop);
      coming.finally(leave).then(resolve, reject);
    });
  }
}

const CLOSING = { name: "Closing", message: "The server is shutting down." } as const;
