// Stops a tree step by step: SIGTERM, the grace, SIGKILL, a last wait, then a report that it escaped.
//
// Invariants
// 1. `stop` and `force` send their signal in the same tick.
// 2. The ladder is climbed once and only upwards. A second stop can only shorten the wait.
import type { Clock } from "../../ports/clock.ts";
import { ESCAPED_AFTER_MS, GRACE_MS_MAX } from "../limits.ts";

export interface Rung {
  readonly signal: "SIGTERM" | "SIGKILL";
  readonly waitMs: number;
}

/** SIGTERM first, so that programs can clean up. Without a grace, SIGKILL at once. */
export function rungs(graceMs: number): readonly [Rung, ...Rung[]] {
  const force: Rung = { signal: "SIGKILL", waitMs: ESCAPED_AFTER_MS };
  const waitMs = Number.isNaN(graceMs) ? 0 : Math.min(graceMs, GRACE_MS_MAX);
  return waitMs > 0 ? [{ signal: "SIGTERM", waitMs }, force] : [force];
}

export interface LadderOptions {
  readonly clock: Clock;
  readonly send: (signal: Rung["signal"]) => void;
  /** Called when the tree outlives the last rung: it is uninterruptible, or we may not signal it. */
  readonly escaped: () => void;
}

export class StopLadder {
  readonly #options: LadderOptions;
  readonly #forced = Promise.withResolvers<void>();
  #on: Rung["signal"] | undefined;
  /** The rungs after the current one. */
  #next: readonly Rung[] = [];
  #until = 0;
  #dispose = (): void => undefined;
  #over = false;

  constructor(options: LadderOptions) {
    this.#options = options;
  }

  /** The current rung; undefined before the first stop. */
  get on(): Rung["signal"] | undefined {
    return this.#on;
  }

  /** Resolves when SIGKILL is sent. */
  get forced(): Promise<void> {
    return this.#forced.promise;
  }

  /** The time left on the current rung. */
  get leftMs(): number {
    return Math.max(0, this.#until - this.#options.clock.elapsed());
  }

  stop(graceMs: number): void {
    if (this.#over || this.#on === "SIGKILL") return;
    const [first, ...rest] = rungs(graceMs);
    if (this.#on === undefined || first.signal === "SIGKILL") this.#take(first, rest);
    else if (this.#options.clock.elapsed() + first.waitMs < this.#until) this.#wait(first.waitMs);
  }

  force(): void {
    this.stop(0);
  }

  /** Call when the tree has ended: no further signal is sent. */
  end(): void {
    this.#over = true;
    this.#dispose();
  }

  #take(rung: Rung, next: readonly Rung[]): void {
    this.#on = rung.signal;
    this.#next = next;
    // The timer starts before the signal is sent, so the next rung follows even if sending fails.
    this.#wait(rung.waitMs);
    this.#options.send(rung.signal);
    if (rung.signal === "SIGKILL") this.#forced.resolve();
  }

  #wait(ms: number): void {
    this.#dispose();
    this.#until = this.#options.clock.elapsed() + ms;
    this.#dispose = this.#options.clock.after(ms, () => {
      if (this.#over) return;
      const [next, ...rest] = this.#next;
      if (next === undefined) this.#options.escaped();
      else this.#take(next, rest);
    });
  }
}
