// How often each token may change something, and how many streams it has open.
//
// Invariants
// 1. A name is kept only as long as it matters: until its bucket is full again, until its last stream has ended.
import type { Clock } from "../../ports/clock.ts";
import { TOKENS_MAX } from "../limits.ts";

interface Bucket {
  readonly left: number;
  readonly at: number;
}

/** A bucket per name: `burst` at once, `perSecond` in the long run. */
export class Rates {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock, rate: { readonly perSecond: number; readonly burst: number }) {
    this.#clock = clock;
    this.#perSecond = rate.perSecond;
    this.#burst = rate.burst;
  }

  /** Takes one. Answers after how many milliseconds there is one, if there is none now. */
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

  /** Names of tokens that were revoked would pile up. A full bucket says nothing that a missing one does not. */
  #forget(now: number): void {
    for (const [name, bucket] of this.#buckets) {
      if (this.#leftOf(bucket, now) >= this.#burst) this.#buckets.delete(name);
    }
  }
}

/** Counts what each name holds, up to a maximum. */
export class Holdings {
  readonly #max: number;
  readonly #held = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Answers how to give it back; undefined if there are enough. */
  take(name: string): (() => void) | undefined {
    const held = this.#held.get(name) ?? 0;
    if (held >= this.#max) return undefined;
    this.#held.set(name, held + 1);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      const left = (this.#held.get(name) ?? 1) - 1;
      if (left > 0) this.#held.set(name, left);
      else this.#held.delete(name);
    };
  }
}
