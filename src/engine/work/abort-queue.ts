// Fires the abort signals of cancelled scopes. A few fire in the tick of their stop. Those of a bulk stop fire in
// slices between which the event loop runs: closing a connection costs far more than cancelling its token, and neither
// receipts nor other sessions wait for it.
//
// Invariants
// 1. Every signal fires, once, in the order in which the scopes were cancelled.
// 2. A slice ends with the first signal after its time is up.
// 3. A stop fires its signal in its own tick, unless a hundred have fired in this turn of the event loop.
import { ABORT_SLICE_MS, ABORTS_AT_ONCE_MAX } from "../../core/limits.ts";
import type { Clock } from "../../ports/clock.ts";
import { systemImmediate } from "../../system/system-clock.ts";
import { Fifo } from "../log/fifo.ts";
import type { Firing, Signals } from "./scope.ts";

export class AbortQueue implements Signals {
  readonly #clock: Clock;
  readonly #waiting = new Fifo<Firing>();
  /** How many have fired in this turn of the event loop. */
  #fired = 0;
  #cancelTimer: (() => void) | undefined = undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many are still waiting. */
  get size(): number {
    return this.#waiting.length;
  }

  fire(scope: Firing): void {
    if (this.#waiting.length > 0 || this.#fired >= ABORTS_AT_ONCE_MAX) {
      this.#waiting.push(scope);
      this.#cancelTimer ??= this.#clock.after(0, () => this.#drain());
      return;
    }
    if (this.#fired === 0) (this.#clock.immediate ?? systemImmediate).call(this.#clock, () => this.#turned());
    this.#fired += 1;
    scope.fire();
  }

  #turned(): void {
    this.#fired = 0;
  }

  /** Fires all that are waiting, at once: the worker closes. */
  flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    while (this.#waiting.length > 0) this.#waiting.shift()?.fire();
  }

  #drain(): void {
    this.#cancelTimer = undefined;
    const until = this.#clock.elapsed() + ABORT_SLICE_MS;
    do this.#waiting.shift()?.fire();
    while (this.#waiting.length > 0 && this.#clock.elapsed() < until);
    if (this.#waiting.length > 0) this.#cancelTimer = this.#clock.after(0, () => this.#drain());
  }
}
