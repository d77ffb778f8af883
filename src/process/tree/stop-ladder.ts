// How a tree is stopped: ask, wait, force, wait, and then say honestly what happened.
//
// Invariants
// 1. What `stop` and `force` do, they do in the same tick.
// 2. It is climbed once and only upwards. A second stop can shorten the wait, and nothing else.
import type { Clock } from "../../ports/clock.ts";
import { ESCAPED_AFTER_MS, GRACE_MS_MAX } from "../limits.ts";

export interface Rung {
  readonly signal: "SIGTERM" | "SIGKILL";
  readonly waitMs: number;
}

/** Polite first, so that programs can tidy up. Without a grace there is nothing to be polite about. */
export function rungs(graceMs: number): readonly [Rung, ...Rung[]] {
  const force: Rung = { signal: "SIGKILL", waitMs: ESCAPED_AFTER_MS };
  const waitMs = Number.isNaN(graceMs) ? 0 : Math.min(graceMs, GRACE_MS_MAX);
  return waitMs > 0 ? [{ signal: "SIGTERM", waitMs }, force] : [force];
}

export interface Climb {
  readonly clock: Clock;
  readonly send: (signal: Rung["signal"]) => void;
  /** It outlived the last rung: uninterruptible, or not ours to signal. */
  readonly escaped: () => void;
}

export class StopLadder {
  readonly #climb: Climb;
  readonly #forced = Promise.withResolvers<void>();
  #on: Rung["signal"] | undefined;
  /** What comes after the rung it is on. */
  #next: readonly Rung[] = [];
  #until = 0;
  #dispose = (): void => undefined;
  #over = false;

  constructor(climb: Climb) {
    this.#climb = climb;
  }

  /** The rung it is on. */
  get on(): Rung["signal"] | undefined {
    return this.#on;
  }

  /** Resolves once it is forced. */
  get forced(): Promise<void> {
    return this.#forced.promise;
  }

  /** How long it stays on the rung it is on. */
  get leftMs(): number {
    return Math.max(0, this.#until - this.#climb.clock.elapsed());
  }

  stop(graceMs: number): void {
    if (this.#over || this.#on === "SIGKILL") return;
    const [first, ...rest] = rungs(graceMs);
    if (this.#on === undefined || first.signal === "SIGKILL") this.#take(first, rest);
    else if (this.#climb.clock.elapsed() + first.waitMs < this.#until) this.#wait(first.waitMs);
  }

  force(): void {
    this.stop(0);
  }

  /** It has ended: nothing is sent any more. */
  end(): void {
    this.#over = true;
    this.#dispose();
  }

  #take(rung: Rung, next: readonly Rung[]): void {
    this.#on = rung.signal;
    this.#next = next;
    // Armed before the signal: whatever sending does, the next rung follows.
    this.#wait(rung.waitMs);
    this.#climb.send(rung.signal);
    if (rung.signal === "SIGKILL") this.#forced.resolve();
  }

  #wait(ms: number): void {
    this.#dispose();
    this.#until = this.#climb.clock.elapsed() + ms;
    this.#dispose = this.#climb.clock.after(ms, () => {
      if (this.#over) return;
      const [next, ...rest] = this.#next;
      if (next === undefined) this.#climb.escaped();
      else this.#take(next, rest);
    });
  }
}
