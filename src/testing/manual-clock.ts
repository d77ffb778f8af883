// Time that moves when the test says so.
//
// Invariants
// 1. Timers fire in the order of their time; those of one moment in the order in which they were set.
// 2. While a timer fires, the clock shows that timer's time; after a sleep, the time of the awakening.
import type { Clock } from "../ports/clock.ts";

/** A timer that has not fired. */
export interface PendingTimer {
  /** Milliseconds from now. */
  readonly inMs: number;
  /** Set by something that waits for nothing in particular, like the renewal of leases. */
  readonly idle: boolean;
}

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly idle: boolean;
  readonly call: () => void;
}

/** A clock that starts at `startMs` and stands still until it is moved. */
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

  /** What would fire if the clock went on, soonest first. */
  get pending(): readonly PendingTimer[] {
    return [...this.#timers].toSorted(soonest).map(({ at, idle }) => ({ inMs: at - this.#elapsed, idle }));
  }

  /** Moves on by `ms`, fires what falls due, and lets everything that follows from it happen before it resolves. */
  async advance(ms: number): Promise<void> {
    const until = this.#elapsed + ms;
    await settled();
    for (let timer = this.#next(until); timer !== undefined; timer = this.#next(until)) {
      this.#fire(timer);
      // What a timer sets in motion may set timers that fall due within the same move.
      await settled();
    }
    this.#moveTo(until);
  }

  /** The same in one tick: what follows from a timer happens after this call, not during it. */
  tick(ms: number): void {
    const until = this.#elapsed + ms;
    for (let timer = this.#next(until); timer !== undefined; timer = this.#next(until)) this.#fire(timer);
    this.#moveTo(until);
  }

  /**
   * The machine sleeps, or is too busy to look at its timers: both clocks move on by `ms` first, and what fell due
   * meanwhile fires late, in one tick, in the order of its time.
   */
  wakeAfter(ms: number): void {
    this.#moveTo(this.#elapsed + ms);
    for (let timer = this.#next(this.#elapsed); timer !== undefined; timer = this.#next(this.#elapsed)) {
      this.#fire(timer);
    }
  }

  /** The wall clock is set, by an administrator or by daylight. No duration changes, so nothing may fire. */
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

/** Turns of the event loop that are asked for and have not come, on all clocks. */
let immediates = 0;

/** Beyond this, what asks for turns of the event loop is a loop without end. */
const TURNS_MAX = 1_000;

/** Resolves when nothing is left to do but to wait: every promise that could settle has settled. */
export async function settled(): Promise<void> {
  for (let turns = 0; turns === 0 || (immediates > 0 && turns < TURNS_MAX); turns += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const soonest = (one: Timer, other: Timer): number => one.at - other.at || one.order - other.order;
