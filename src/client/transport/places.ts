// Limits concurrent short requests. All tabs of a browser share six connections to a server: one carries the shared
// stream, one the messages sent to it or a separate stop, and these the rest.
//
// Invariants
// 1. At most `SHORT_REQUESTS_MAX` requests hold a place at once, counted over all tabs where they can share locks.
// 2. Closing a tab frees its places: the browser releases its locks.
import { SHORT_REQUESTS_MAX } from "../limits.ts";

/** The part of Web Locks that is used here. */
interface Locks {
  request(name: string, options: { readonly signal: AbortSignal }, held: () => Promise<void> | void): Promise<void>;
}

type Release = () => void;

export class Places {
  readonly #waiting: (() => void)[] = [];
  readonly #locks: Locks | undefined;
  readonly #names: readonly string[];
  #free = SHORT_REQUESTS_MAX;

  constructor(base: string) {
    const { navigator, location } = globalThis as { navigator?: { locks?: Locks }; location?: object };
    this.#locks = location === undefined ? undefined : navigator?.locks;
    this.#names = Array.from({ length: SHORT_REQUESTS_MAX }, (_, index) => `belay ${base} short ${index}`);
  }

  /** Resolves with a function that releases the place; rejects with the signal's reason. */
  async take(signal: AbortSignal): Promise<Release> {
    if (this.#locks !== undefined) return this.#lock(this.#locks, signal);
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(signal);
    return () => this.#next();
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const left = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1);
        reject(signal.reason);
      };
      const turn = (): void => {
        signal.removeEventListener("abort", left);
        resolve();
      };
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener("abort", left, { once: true });
      this.#waiting.push(turn);
    });
  }

  #next(): void {
    const turn = this.#waiting.shift();
    if (turn === undefined) this.#free += 1;
    else turn();
  }

  /** Takes the first lock that is free. */
  #lock(locks: Locks, signal: AbortSignal): Promise<Release> {
    const others = new AbortController();
    return new Promise((resolve, reject) => {
      const left = (): void => {
        others.abort();
        reject(signal.reason);
      };
      const held = (): Promise<void> | undefined => {
        if (others.signal.aborted) return;
        others.abort();
        signal.removeEventListener("abort", left);
        return new Promise((release) => resolve(release));
      };
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener("abort", left, { once: true });
      // A rejection means that the request was aborted because another lock was granted first.
      for (const name of this.#names) locks.request(name, { signal: others.signal }, held).catch(() => {});
    });
  }
}
