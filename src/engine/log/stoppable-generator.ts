// An async generator that can be stopped while it waits. `return()` of a plain generator is queued behind a pending
// `next()`, so a reader that leaves would stay registered until the next event, or forever.
//
// Invariants
// 1. Nothing runs and nothing is registered before the first `next()`.
// 2. `return()`, `throw()` and an aborted signal take effect at once: registrations are removed, a pending `next()`
//    resolves, and nothing more is yielded, whether or not the reader returns.
// 3. Registrations are also removed when the generator ends by itself or fails.

/** Whether a reader has left, and the cleanup to run then. */
export class Stop {
  stopped = false;
  #tasks: (() => void)[] = [];
  #signal: AbortSignal | undefined;

  /** Runs `task` once, when it stops; at once if it has stopped. */
  onStop(task: () => void): void {
    if (this.stopped) task();
    else this.#tasks.push(task);
  }

  /** Stops when this signal aborts. */
  when(signal: AbortSignal | undefined): void {
    if (signal?.aborted === true) this.stop();
    if (this.stopped || signal === undefined) return;
    this.#signal = signal;
    signal.addEventListener("abort", this);
  }

  stop(): void {
    if (this.stopped) return;
    this.stopped = true;
    this.#signal?.removeEventListener("abort", this); // @fault follower-listens-for-ever
    const tasks = this.#tasks;
    this.#tasks = [];
    for (const task of tasks) task();
  }

  /** The listener of the signal. */
  handleEvent(): void {
    this.stop();
  }
}

type Step<T> = IteratorResult<T, void>;

interface Waiting<T> {
  readonly resolve: (step: Step<T>) => void;
  readonly reject: (error: unknown) => void;
}

export class Stoppable<T> implements AsyncGenerator<T, void> {
  readonly #start: (stop: Stop) => AsyncGenerator<T, void>;
  readonly #stop = new Stop();
  #running: AsyncGenerator<T, void> | undefined;
  /** Pending calls of `next()`, oldest first. Usually one. */
  #waiting: Waiting<T>[] = [];

  constructor(start: (stop: Stop) => AsyncGenerator<T, void>) {
    this.#start = start;
    this.#stop.onStop(() => this.#end());
  }

  /** Whether it yields nothing more: its reader has left, its signal has aborted, or it has ended. */
  get stopped(): boolean {
    return this.#stop.stopped;
  }

  next(): Promise<Step<T>> {
    if (this.stopped) return Promise.resolve(DONE);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      try {
        this.#running ??= this.#start(this.#stop);
      } catch (error) {
        return this.#fail(error);
      }
      this.#running.next().then(this.#answer, this.#fail);
    });
  }

  return(): Promise<Step<T>> {
    this.#stop.stop();
    return Promise.resolve(DONE);
  }

  throw(error: unknown): Promise<Step<T>> {
    this.#stop.stop();
    return Promise.reject(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  readonly #answer = (step: Step<T>): void => {
    if (this.stopped) return;
    if (step.done === true) this.#stop.stop();
    else this.#waiting.shift()?.resolve(step);
  };

  readonly #fail = (error: unknown): void => {
    if (this.stopped) return;
    this.#waiting.shift()?.reject(error);
    this.#stop.stop();
  };

  #end(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { resolve } of waiting) resolve(DONE);
    // It runs to its end when its current wait is over; the result is ignored.
    this.#running?.return().catch(() => undefined);
  }
}

const DONE = { done: true, value: undefined } as const;
