// The tree of live work.
//
// Invariants
// 1. Cancelling a scope cancels every scope below it, and none above.
// 2. The first reason wins.
// 3. A child of a cancelled scope never begins.
// 4. An abort becomes a value here, and nowhere else.
// 5. The token is cancelled in the tick of the stop: `reason` and `until` see it at once. Its signal may fire later,
//    at the latest when it is looked at.
import type { CancelReason } from "../../core/model/cancel.ts";

export type Ended<T> =
  | { readonly kind: "completed"; readonly value: T }
  /** `error`: what it threw, if that is more than the stop itself. */
  | { readonly kind: "cancelled"; readonly reason: CancelReason; readonly error?: unknown }
  | { readonly kind: "failed"; readonly error: unknown };

/**
 * What an aborted signal carries. Its name is what fetch and the model SDKs know; `reason` is ours.
 * One object per reason, shared by all signals: making an error for each is most of the cost of an abort.
 */
export class Aborted extends Error {
  override readonly name = "AbortError";
  readonly reason: CancelReason;

  constructor(reason: CancelReason) {
    super(`Cancelled: ${reason.kind}`);
    this.reason = reason;
    // The frames of a stack hold all that was on it, a lane and its promises, for as long as the reason is in a log
    // that is kept in memory. They would only say that somebody has cancelled.
    this.stack = `AbortError: ${this.message}`;
  }
}

const aborted = new WeakMap<CancelReason, Aborted>();

function abortedFor(reason: CancelReason): Aborted {
  let error = aborted.get(reason);
  if (error === undefined) {
    error = new Aborted(reason);
    aborted.set(reason, error);
  }
  return error;
}

/** A cancelled scope whose signal is to fire. */
export interface Firing {
  fire(): void;
}

/** Is called in the tick in which its work has returned or thrown. */
export interface Returns {
  returned(): void;
}

/** When the signals of cancelled scopes fire: now, or, of a bulk stop, soon. */
export interface Signals {
  fire(scope: Firing): void;
}

const AT_ONCE: Signals = { fire: (scope) => scope.fire() };

export class Scope implements Firing {
  #reason: CancelReason | undefined; // @fault finished-work-called-cancelled:reason
  /** Made when somebody asks for a signal: a plain token is an eighth of its size, and most work never asks. */
  #controller: AbortController | undefined;
  #children: Set<Scope> | undefined;
  #hearers: Set<(reason: CancelReason) => void> | undefined;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    // Also if its turn to fire has not come: what looks at it must not begin something.
    this.fire();
    return this.#controller.signal;
  }

  get reason(): CancelReason | undefined {
    return this.#reason;
  }

  /** Requests; never waits. The token is cancelled now, and `signals` says when the abort signal fires. */
  cancel(reason: CancelReason, signals: Signals = AT_ONCE): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    if (this.#controller !== undefined) signals.fire(this);
    for (const child of this.#children ?? []) child.cancel(reason, signals);
    for (const hear of [...(this.#hearers ?? [])]) hear(reason);
  }

  /** Aborts the signal of a cancelled scope. Does nothing the second time. */
  fire(): void {
    if (this.#reason !== undefined) this.#controller?.abort(abortedFor(this.#reason));
  }

  /** Waits for something, but not longer than this scope: rejects when it is cancelled, whatever comes later. */
  until<T>(coming: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const hear = (reason: CancelReason): void => reject(abortedFor(reason));
      const done = (): void => void this.#hearers?.delete(hear);
      void coming.then(resolve, reject).then(done);
      if (this.#reason !== undefined) return hear(this.#reason);
      this.#hearers ??= new Set();
      this.#hearers.add(hear);
    });
  }

  /** Carries out work below this scope. Never rejects. */
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

  /** Carries out work as this scope itself. Never rejects. */
  async execute<T>(work: (scope: Scope) => Promise<T> | T, owner?: Returns): Promise<Ended<T>> {
    if (this.#reason !== undefined) return { kind: "cancelled", reason: this.#reason };
    try {
      // Work that finished although it was asked to stop has finished: completion beats cancel.
      return { kind: "completed", value: await work(this) }; // @fault finished-work-called-cancelled
    } catch (error) {
      // Not "does this error smell of an abort?" but "had we asked it to stop?".
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
 * Whether something thrown says no more than that it was stopped: the signal's reason, or what fetch, Node and the SDKs
 * make of it. This decides what is kept beside the outcome, never the outcome.
 */
function isAbort(thrown: unknown): boolean {
  try {
    if (!(thrown instanceof Error)) return thrown === undefined;
    const code = "code" in thrown ? thrown.code : undefined;
    return thrown.name === "AbortError" || code === "ABORT_ERR" || code === "ERR_CANCELED";
  } catch {
    // Something that cannot be looked at.
    return false;
  }
}
