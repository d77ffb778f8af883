// The stop of a turn. Everything that a turn awaits goes through here, so that a stop ends any wait at once.
//
// Invariants
// 1. A turn does one thing at a time, so there is at most one wait, and one listener serves all of them.
// 2. A wait ends in the tick of the stop, whatever happens to the awaited work. A later failure of that work is
//    ignored.

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

  /** The reason of the stop, to be thrown. */
  get reason(): unknown {
    return this.#signal.reason;
  }

  /** Read from the turn each time: in a bulk stop the signal may fire a moment later unless it is read. */
  get isRequested(): boolean {
    return this.#turn.signal.aborted;
  }

  throwIfRequested(): void {
    this.#turn.signal.throwIfAborted();
  }

  /** Listener for the signal's abort event. */
  handleEvent(): void {
    this.#wake?.();
  }

  /** Ends the turn: removes the listener. */
  close(): void {
    this.#signal.removeEventListener("abort", this);
  }

  /** Calls `wake` when the turn is stopped, unless the returned disposer is called first. */
  onStop(wake: () => void): () => void {
    this.#wake = wake;
    return () => {
      // The disposer of an earlier wait must not remove the handler of the current one.
      if (this.#wake === wake) this.#wake = undefined;
    };
  }

  /** The result of the work; rejects if the stop comes first. */
  until<T>(work: PromiseLike<T> | T): Promise<T> {
    return new Promise((resolve, reject) => {
      const dispose = this.onStop(() => reject(this.reason));
      Promise.resolve(work).then(resolve, reject).finally(dispose);
      if (this.isRequested) reject(this.reason);
    });
  }

  /** Resolves after `ms`; rejects if the stop comes first. */
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
