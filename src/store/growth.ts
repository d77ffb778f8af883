// Waiting for a log to grow. Level-triggered: a waiter gives its position, so a repeated notification is harmless,
// and a waiter that registers before it reads the head cannot miss one.
//
// Invariants
// 1. A waiter that has resolved has no listener left on its signal.
// 2. `end` resolves all waiters, because waking early is allowed and never waking is not. Their next call reports
//    that the store is closed.
import type { Seq, SessionId } from "../core/model/ids.ts";

interface Waiter {
  readonly after: Seq;
  readonly resolve: () => void;
}

export class Growth {
  readonly #waiting = new Map<SessionId, Set<Waiter>>();

  /** Resolves once `note` reports a head past `after`, or `signal` aborts. */
  wait(session: SessionId, after: Seq, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((done) => {
      const leave = (): void => {
        signal.removeEventListener("abort", leave);
        this.#remove(session, waiter);
        done();
      };
      const waiter: Waiter = { after, resolve: leave };
      signal.addEventListener("abort", leave);
      this.#add(session, waiter);
    });
  }

  note(session: SessionId, head: Seq): void {
    const waiting = this.#waiting.get(session);
    if (waiting === undefined) return;
    for (const waiter of waiting) if (head > waiter.after) waiter.resolve();
  }

  end(): void {
    for (const waiting of this.#waiting.values()) for (const waiter of waiting) waiter.resolve();
  }

  #add(session: SessionId, waiter: Waiter): void {
    const waiting = this.#waiting.get(session);
    if (waiting === undefined) this.#waiting.set(session, new Set([waiter]));
    else waiting.add(waiter);
  }

  #remove(session: SessionId, waiter: Waiter): void {
    const waiting = this.#waiting.get(session);
    waiting?.delete(waiter);
    if (waiting?.size === 0) this.#waiting.delete(session);
  }
}
