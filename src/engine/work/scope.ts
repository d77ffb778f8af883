// Scopes of live work: what a stop cancels, and how an abort becomes a value.
//
// Each turn and call has a scope without children: `covers()` of the policy decides what else a stop reaches. Code
// inside one of them can divide it with `run`.
//
// Invariants
// 1. Cancelling a scope cancels every scope below it, and none above.
// 2. The first reason wins.
// 3. A child of a cancelled scope never begins.
// 4. An abort becomes a value here, and nowhere else.
// 5. The token is cancelled in the tick of the stop: `reason` and `until` take effect at once. Its signal may fire
//    later, at the latest when it is read.
import type { CancelReason } from "../../core/model/cancel.ts";

export type Ended<T> =
  | { readonly kind: "completed"; readonly value: T }
  /** `error`: what it threw, other than the abort itself. */
  | { readonly kind: "cancelled"; readonly reason: CancelReason; readonly error?: unknown }
  | { readonly kind: "failed"; readonly error: unknown };

/**
 * The reason of an aborted signal. Its name is the one that fetch and the model SDKs recognize; `reason` is Belay's.
 * One object per reason, shared by all signals: creating an error for each is most of the cost of an abort.
 */
export class Aborted extends Error {
  override readonly name = "AbortError";
  readonly reason: CancelReason;

  constructor(reason: CancelReason) {
    super(`Cancelled: ${reason.kind}`);
    this.reason = reason;
    this.stack = `AbortError: ${this.message}`;
  }
}

const aborted = new WeakMap<CancelReason, Aborted>();

function abortedFor(reason: CancelReason): Aborted {
  let error = aborted.get(reason);
  if (error === undefined) {
    error = withoutFrames(() => new Aborted(reason));
    aborted.set(reason, error);
  }
  return error;
}

/**
 * Creates an error without stack frames. Frames show nothing but the cancel, collecting them is a twentieth of the cost
 * of a bulk stop, and they retain everything on the stack as long as the reason is in a log in memory. They are
 * collected in a process that forbids the change (frozen intrinsics).
 */
function withoutFrames<E extends Error>(create: () => E): E {
  const { stackTraceLimit } = Error;
  if (!Reflect.set(Error, "stackTraceLimit", 0)) return create();
  try {
    return create();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** A cancelled scope whose signal must fire. */
export interface Firing {
  fire(): void;
}

/** Is called in the tick in which its work has returned or thrown. */
export interface Returns {
  returned(): void;
}

/** Decides when the signals of cancelled scopes fire: now, or, for a bulk stop, soon. */
export interface Signals {
  fire(scope: Firing): void;
}

const AT_ONCE: Signals = { fire: (scope) => scope.fire() };

export class Scope implements Firing {
  #reason: CancelReason | undefined; // @fault finished-work-called-cancelled:reason
  /** Created on first use: a plain token is an eighth of its size, and most work needs no signal. */
  #controller: AbortController | undefined;
  #children: Set<Scope> | undefined;
  #listeners: Set<(reason: CancelReason) => void> | undefined;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    // Even if it is still queued: code that reads the signal must not begin something.
    this.fire();
    return this.#controller.signal;
  }

  get reason(): CancelReason | undefined {
    return this.#reason;
  }

  /** Requests the stop; never waits. The token is cancelled now; `signals` decides when the abort signal fires. */
  cancel(reason: CancelReason, signals: Signals = AT_ONCE): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    if (this.#controller !== undefined) signals.fire(this);
    for (const child of this.#children ?? []) child.cancel(reason, signals);
    for (const listener of [...(this.#listeners ?? [])]) listener(reason);
  }

  /** Aborts the signal of a cancelled scope. Idempotent. */
  fire(): void {
    if (this.#reason !== undefined) this.#controller?.abort(abortedFor(this.#reason));
  }

  /**
   * Waits for a promise, but not longer than this scope: rejects when the scope is cancelled. Cancel beats completion
   * here, unlike in `execute`: a result that arrives in the tick of the stop is not waited for.
   */
  until<T>(coming: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const listener = (reason: CancelReason): void => reject(abortedFor(reason));
      const done = (): void => void this.#listeners?.delete(listener);
      void coming.then(resolve, reject).then(done);
      if (this.#reason !== undefined) return listener(this.#reason);
      this.#listeners ??= new Set();
      this.#listeners.add(listener);
    });
  }

  /** Runs work in a scope below this one. Never rejects. */
  async run<T>(work: (scope: Scope) => Promise<T> | T): Promise<Ended<T>> {
    const child = new Scope();
    if (this.#reason !== undefined) child.cancel(this.#reason);
    this.#children ??= new Set();
    this.#children.add(child);
    try {
      return await child.execute(work);
    } finally {
      this.#children.delete(child);
    }
  }

  /** Runs work in this scope itself. Never rejects. */
  async execute<T>(work: (scope: Scope) => Promise<T> | T, owner?: Returns): Promise<Ended<T>> {
    if (this.#reason !== undefined) return { kind: "cancelled", reason: this.#reason };
    try {
      // Work that finished in spite of its stop has finished: completion beats cancel.
      return { kind: "completed", value: await work(this) }; // @fault finished-work-called-cancelled
    } catch (error) {
      // Decided by whether it was stopped, not by the kind of error.
      return this.#reason === undefined ? { kind: "failed", error } : stopped(this.#reason, error);
    } finally {
      owner?.returned();
    }
  }
}

function stopped(reason: CancelReason, error: unknown): Ended<never> {
  if (isAbort(error)) return { kind: "cancelled", reason }; // @fault error-of-a-stop-dropped
  return { kind: "cancelled", reason, error };
}

/**
 * Whether a thrown value is only the abort itself: the signal's reason, or what fetch, Node and the SDKs make of it.
 * This decides whether an error is recorded beside the outcome, never the outcome.
 */
function isAbort(thrown: unknown): boolean {
  try {
    if (!(thrown instanceof Error)) return thrown === undefined;
    const code = "code" in thrown ? thrown.code : undefined;
    return thrown.name === "AbortError" || code === "ABORT_ERR" || code === "ERR_CANCELED";
  } catch {
    // A value that cannot be read.
    return false;
  }
}
