// The tree of live work.
//
// Invariants
// 1. Cancelling a scope cancels every scope below it, and none above.
// 2. The first reason wins.
// 3. A child of a cancelled scope never begins.
// 4. An abort becomes a value here, and nowhere else.
import type { CancelReason } from "../core/cancel.ts";

export type Ended<T> =
  | { readonly kind: "completed"; readonly value: T }
  | { readonly kind: "cancelled"; readonly reason: CancelReason }
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

export class Scope {
  #reason: CancelReason | undefined; // @fault finished-work-called-cancelled:reason
  /** Made when somebody asks for a signal: a plain token is an eighth of its size, and most work never asks. */
  #controller: AbortController | undefined;
  #children: Set<Scope> | undefined;
  #hearers: Set<(reason: CancelReason) => void> | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(abortedFor(this.#reason));
    }
    return this.#controller.signal;
  }

  get reason(): CancelReason | undefined {
    return this.#reason;
  }

  /** Requests; never waits. */
  cancel(reason: CancelReason): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#controller?.abort(abortedFor(reason));
    for (const child of this.#children ?? []) child.cancel(reason);
    for (const hear of [...(this.#hearers ?? [])]) hear(reason);
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
      return await child.carryOut(work);
    } finally {
      this.#children.delete(child);
    }
  }

  /** Carries out work as this scope itself. Never rejects. */
  async carryOut<T>(work: (scope: Scope) => Promise<T> | T): Promise<Ended<T>> {
    if (this.#reason !== undefined) return { kind: "cancelled", reason: this.#reason };
    try {
      // Work that finished although it was asked to stop has finished: completion beats cancel.
      return { kind: "completed", value: await work(this) }; // @fault finished-work-called-cancelled
    } catch (error) {
      // Not "does this error smell of an abort?" but "had we asked it to stop?".
      return this.#reason === undefined ? { kind: "failed", error } : { kind: "cancelled", reason: this.#reason };
    }
  }
}
