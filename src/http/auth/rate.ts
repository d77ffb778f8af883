// The limits of the guard: the rate of changes and the open streams of each token, and the lockout after wrong tokens.
//
// Invariants
// 1. A name is kept only until its bucket is full again, or its last stream has ended.
// 2. Fewer than `TOKEN_FAILURES_MAX` failures are remembered: the last one starts a lockout.
// 3. A failure during a lockout does not prolong it. Otherwise one program that never waits would keep all others from
//    finding out that their token is wrong.
import type { Clock } from "../../ports/clock.ts";
import { LOCKOUT_MS, LOCKOUT_WINDOW_MS, TOKEN_FAILURES_MAX, TOKENS_MAX } from "../limits.ts";

interface Bucket {
  readonly left: number;
  readonly at: number;
}

/** A token bucket for each name: bursts of `burst`, and `perSecond` on average. */
export class RateLimits {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock, rate: { readonly perSecond: number; readonly burst: number }) {
    this.#clock = clock;
    this.#perSecond = rate.perSecond;
    this.#burst = rate.burst;
  }

  /** Takes one from the bucket. Returns the milliseconds to wait if the bucket is empty. */
  take(name: string): number | undefined {
    const now = this.#clock.elapsed();
    const left = this.#leftOf(this.#buckets.get(name), now);
    if (left < 1) return ((1 - left) / this.#perSecond) * 1000;
    if (this.#buckets.size >= TOKENS_MAX && !this.#buckets.has(name)) this.#forget(now);
    this.#buckets.set(name, { left: left - 1, at: now });
    return undefined;
  }

  get size(): number {
    return this.#buckets.size;
  }

  #leftOf(bucket: Bucket | undefined, now: number): number {
    if (bucket === undefined) return this.#burst;
    return Math.min(this.#burst, bucket.left + ((now - bucket.at) / 1000) * this.#perSecond);
  }

  /** Removes full buckets, which mean the same as missing ones. Otherwise names of revoked tokens would accumulate. */
  #forget(now: number): void {
    for (const [name, bucket] of this.#buckets) {
      if (this.#leftOf(bucket, now) >= this.#burst) this.#buckets.delete(name);
    }
  }
}

/** Counts concurrent uses for each name, up to a maximum. */
export class ConcurrencyLimits {
  readonly #max: number;
  readonly #counts = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns a function that releases the use, or undefined if the name is at its maximum. */
  take(name: string): (() => void) | undefined {
    const count = this.#counts.get(name) ?? 0;
    if (count >= this.#max) return undefined;
    this.#counts.set(name, count + 1);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const left = (this.#counts.get(name) ?? 1) - 1;
      if (left > 0) this.#counts.set(name, left);
      else this.#counts.delete(name);
    };
  }
}

/**
 * Slows down guesses after too many wrong tokens. There is one count for the whole server. A count by address would be
 * worthless: behind a proxy and on the loopback all clients share one, and an attacker with many addresses has many
 * counts. A count by the prefix of the token would be the guesser's to choose.
 *
 * With one count an attacker can trigger the lockout at will, so it must not affect anyone else: valid tokens are
 * accepted during a lockout, and only requests that would have been denied anyway get 429 instead of 401. That is safe,
 * because 256 bits cannot be guessed at any speed. The lockout makes a program with a wrong token wait, and the log
 * reports it once instead of ten thousand times.
 */
export class Lockout {
  readonly #clock: Clock;
  /** The times of the last failures, oldest first. */
  #failures: number[] = [];
  #until = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a wrong token. During a lockout it returns the milliseconds that are left. */
  failed(): number | undefined {
    const now = this.#clock.elapsed();
    if (now < this.#until) return this.#until - now;
    this.#failures = [...this.#failures.filter((at) => now - at < LOCKOUT_WINDOW_MS), now];
    if (this.#failures.length >= TOKEN_FAILURES_MAX) {
      this.#failures = [];
      this.#until = now + LOCKOUT_MS;
    }
    return undefined;
  }
}
