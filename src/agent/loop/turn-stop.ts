// The stop of a turn, heard in one place. Whatever the turn waits for, it waits for it here, and not a moment longer.
//
// Invariants
// 1. A turn does one thing after the other, so at most one wait is going on, and one listener serves them all.
// 2. A wait ends in the tick of the stop, whatever becomes of what was waited for. That may fail later, unheard.

import type { Turn } from "../../ports/agent.ts";
import type { Clock } from "../../ports/clock.ts";

export class TurnStop {
  readonly #turn: Pick<Turn, "signal">;
  readonly #signal: AbortSignal;
  readonly #clock: Clock;
  #wake: (() => void) | undefined = undefined;

  constructor(turn: Pick<Turn, "signal" | "clock">) {
    const { signal, clock } = turn;
    this.#turn = turn;
    this.#signal = signal;
    this.#clock = clock;
    signal.addEventListener("abort", this);
  }

  /** Why it was stopped, as something to throw. */
  get reason(): unknown {
    return this.#signal.reason;
  }

  /** Read off the turn each time: of a bulk stop, the signal may fire a moment later unless it is looked at. */
  get asked(): boolean {
    return this.#turn.signal.aborted;
  }

  throwIfAsked(): void {
    this.#turn.signal.throwIfAborted();
  }

  /** Called by the signal. */
  handleEvent(): void {
    this.#wake?.();
  }

  /** The turn is over: nothing listens any more. */
  close(): void {
    this.#signal.removeEventListener("abort", this);
  }

  /** Calls once if the stop is asked for before the answer is used to take this back. */
  onStop(wake: () => void): () => void {
    this.#wake = wake;
    return () => {
      // A wait that was left behind must not take away the next one's.
      if (this.#wake === wake) this.#wake = undefined;
    };
  }

  /** What the work answers, unless the stop comes first. */
  until<T>(work: PromiseLike<T> | T): Promise<T> {
    return new Promise((resolve, reject) => {
      const dispose = this.onStop(() => reject(this.reason));
      Promise.resolve(work).then(resolve, reject).finally(dispose);
      if (this.asked) reject(this.reason);
    });
  }

  /** Time passes. */
  async pause(ms: number): Promise<void> {
    let cancelTimer = (): void => {};
    try {
      await this.until(
        new Promise<void>((resolve) => {
          cancelTimer = this.#clock.after(ms, resolve);
        }),
      );
    } finally {
      cancelTimer();
    }
  }
}
