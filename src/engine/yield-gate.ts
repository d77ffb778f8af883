// The gate behind which every promise settles that Belay gives to an agent, a tool or a program. Code that awaits such
// promises in a loop would otherwise stay in the microtask queue, and starve timers, I/O and other sessions.
//
// Invariants
// 1. In one turn of the event loop a limited number of promises settle, for a limited time. The others wait.
// 2. A promise of stopped work waits for a turn of the event loop; after many of them, for a pause.
// 3. A rejection that no caller handles does not end the program.
import { LOOP_TURN_MS, LOOP_TURN_PROMISES_MAX, STOPPED_PAUSE_MS, STOPPED_PROMISES_MAX } from "../core/limits.ts";
import type { Clock } from "../ports/clock.ts";
import { systemImmediate } from "../system/system-clock.ts";
import type { LoopWatch, Watched } from "./loop-watch.ts";
import type { Scope } from "./work/scope.ts";

/** The promises that may settle in one turn of the event loop. One for all work of an engine, which shares the loop. */
export class LoopBudget {
  readonly clock: Clock;
  readonly watch: LoopWatch | undefined;
  #counting = false;
  #settled = 0;
  #since = 0;
  #waiting: (() => void)[] = [];

  constructor(clock: Clock, watch?: LoopWatch) {
    this.clock = clock;
    this.watch = watch;
  }

  /** Counts one more. False: it must wait for the next turn of the event loop. */
  hasRoom(): boolean {
    this.#count();
    return this.#settled <= LOOP_TURN_PROMISES_MAX && this.clock.elapsed() - this.#since < LOOP_TURN_MS;
  }

  /** Calls in the next turn of the event loop. */
  afterTurn(settle: () => void): void {
    this.#count();
    this.#waiting.push(settle);
  }

  #count(): void {
    this.#settled += 1;
    if (this.#counting) return;
    this.#counting = true;
    this.#settled = 1;
    this.#since = this.clock.elapsed();
    (this.clock.immediate ?? systemImmediate).call(this.clock, () => this.#turned());
  }

  #turned(): void {
    this.#counting = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const settle of waiting) settle();
  }
}

/** A turn or call. */
export interface GateOwner extends Watched {
  readonly scope: Pick<Scope, "reason">;
}

/** The gate of one turn or call; without an owner, of the host. */
export class YieldGate {
  readonly #budget: LoopBudget;
  readonly #owner: GateOwner | undefined;
  #afterStop = 0;

  constructor(budget: LoopBudget, owner?: GateOwner) {
    this.#budget = budget;
    this.#owner = owner;
  }

  /** Calls `method` in this tick. If it throws or rejects, the returned promise rejects behind the gate. */
  settle<T>(method: () => Promise<T>): Promise<T> {
    const behind = this.#owner === undefined ? this.answer(called(method)) : this.#settle(called(method));
    behind.catch(ignore);
    return behind;
  }

  #settle<T>(promise: Promise<T>): Promise<T> {
    return promise.then(
      (value) => (this.#opens() ? value : this.#opened().then(() => value)),
      (error: unknown) => {
        if (this.#opens()) throw error;
        return this.#opened().then(() => Promise.reject(error));
      },
    );
  }

  /**
   * Returns the promise itself while there is room, otherwise one that follows it after the event loop has turned. Code
   * that loops over promises calls this for each of them, so counting the calls is enough.
   */
  answer<T>(promise: Promise<T>): Promise<T> {
    if (this.#opens()) return promise;
    promise.catch(ignore);
    return this.#opened().then(() => promise);
  }

  /** Calls when code of an agent or tool may run: now, or in the next turn of the event loop. */
  pass(call: () => void): void {
    if (this.#opens()) call();
    else this.#later(call);
  }

  #opens(): boolean {
    // @fault retries-starve-the-loop
    const opens = this.#owner?.scope.reason === undefined && this.#budget.hasRoom();
    if (opens) this.#enter();
    return opens;
  }

  #opened(): Promise<void> {
    return new Promise((resolve) => this.#later(resolve));
  }

  /** Code of its owner continues in this tick. */
  #enter(): void {
    if (this.#owner !== undefined) this.#budget.watch?.entered(this.#owner);
  }

  #later(call: () => void): void {
    const enter = (): void => {
      this.#enter();
      call();
    };
    if (this.#owner?.scope.reason !== undefined) this.#afterStop += 1;
    // Code that has called this often since its stop is in a loop. It is throttled, and does not keep the program
    // alive.
    if (this.#afterStop > STOPPED_PROMISES_MAX) this.#budget.clock.after(STOPPED_PAUSE_MS, enter, "idle");
    else this.#budget.afterTurn(enter);
  }
}

function called<T>(method: () => Promise<T>): Promise<T> {
  try {
    return method();
  } catch (error) {
    return Promise.reject(error);
  }
}

/** A generator whose every step settles behind a gate. */
export class GatedPages<T> implements AsyncGenerator<T, void> {
  readonly #gate: YieldGate;
  readonly #pages: AsyncGenerator<T, void>;

  constructor(gate: YieldGate, pages: AsyncGenerator<T, void>) {
    this.#gate = gate;
    this.#pages = pages;
  }

  next(): Promise<IteratorResult<T, void>> {
    return this.#gate.settle(() => this.#pages.next());
  }

  return(): Promise<IteratorResult<T, void>> {
    return this.#gate.settle(() => this.#pages.return());
  }

  throw(error: unknown): Promise<IteratorResult<T, void>> {
    return this.#gate.settle(() => this.#pages.throw(error));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}

const ignore = (): void => {};
