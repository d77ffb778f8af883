// A clock that moves only when the test moves it.
//
// Invariants
// 1. Timers fire in the order of their time; timers with the same time fire in the order in which they were set.
// 2. While a timer fires, the clock shows that timer's time; after `wakeAfter`, the time of waking.
import type { Clock } from "../ports/clock.ts";

/** A timer that has not fired. */
export interface PendingTimer {
  /** Milliseconds from now. */
  readonly inMs: number;
  /** True for a timer that does not keep a program alive, such as the renewal of leases. */
  readonly idle: boolean;
}

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly idle: boolean;
  readonly call: () => void;
}

/** Creates a clock that starts at `startMs` and stands still until it is moved. */
export function manualClock(startMs = 1_000_000): ManualClock {
  return new ManualClock(startMs);
}

export class ManualClock implements Clock {
  #wall: number;
  #elapsed = 0;
  #order = 0;
  readonly #timers = new Set<Timer>();

  constructor(startMs: number) {
    this.#wall = startMs;
  }

  now(): number {
    return this.#wall;
  }

  elapsed(): number {
    return this.#elapsed;
  }

  after(ms: number, call: () => void, kind?: "idle"): () => void {
    this.#order += 1;
    const timer: Timer = { at: this.#elapsed + Math.max(0, ms), order: this.#order, idle: kind === "idle", call };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** A real turn of the event loop, whatever time this clock shows. */
  immediate(call: () => void): void {
    immediates += 1;
    setImmediate(() => {
      immediates -= 1;
      call();
    });
  }

  /** The timers that have not fired, soonest first. */
  get pending(): readonly PendingTimer[] {
    return [...this.#timers].toSorted(soonest).map(({ at, idle }) => ({ inMs: at - this.#elapsed, idle }));
  }

  /** Moves forward by `ms`, fires due timers, and waits for all promises that follow from them before it resolves. */
  async advance(ms: number): Promise<void> {
    const until = this.#elapsed + ms;
    await settled();
    for (let timer = this.#next(until); timer !== undefined; timer = this.#next(until)) {
      this.#fire(timer);
      // The effects of a timer may set timers that are due within the same move.
      await settled();
    }
    this.#moveTo(until);
  }

  /** The same in one tick: effects of a timer happen after this call, not during it. */
  tick(ms: number): void {
    const until = this.#elapsed + ms;
    for (let timer = this.#next(until); timer !== undefined; timer = this.#next(until)) this.#fire(timer);
    this.#moveTo(until);
  }

  /**
   * Simulates a machine that slept, or was too busy to run its timers: both clocks move by `ms` first, and due timers
   * fire late, in one tick, in the order of their time.
   */
  wakeAfter(ms: number): void {
    this.#moveTo(this.#elapsed + ms);
    for (let timer = this.#next(this.#elapsed); timer !== undefined; timer = this.#next(this.#elapsed)) {
      this.#fire(timer);
    }
  }

  /** Sets the wall clock, as an administrator or daylight saving does. No duration changes, so no timer fires. */
  jump(ms: number): void {
    this.#wall += ms;
  }

  #next(until: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= until && (first === undefined || soonest(timer, first) < 0)) first = timer;
    }
    return first;
  }

  #fire(timer: Timer): void {
    this.#timers.delete(timer);
    this.#moveTo(timer.at);
    timer.call();
  }

  #moveTo(elapsed: number): void {
    this.#wall += Math.max(0, elapsed - this.#elapsed);
    this.#elapsed = Math.max(this.#elapsed, elapsed);
  }
}

/** Turns of the event loop that are scheduled and have not run, on all clocks. */
let immediates = 0;

/** More turns than this mean an endless loop. */
const TURNS_MAX = 1_000;

/** Resolves when every promise that can settle has settled. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns === 0 || (immediates > 0 && turns < TURNS_MAX); turns += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const soonest = (one: Timer, other: Timer): number => one.at - other.at || one.order - other.order;
