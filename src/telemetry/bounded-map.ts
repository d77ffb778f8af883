// What is remembered of the newest so many: the oldest is let go of for each that is too many.
//
// Invariant: never more than `max`, whoever forgets to forget.

export class BoundedMap<K, V> {
  readonly #max: number;
  readonly #release: (value: V) => void;
  readonly #values = new Map<K, V>();

  /** `letGo` is told of each that had to make room. */
  constructor(max: number, release: (value: V) => void = () => undefined) {
    this.#max = max;
    this.#release = release;
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: K): V | undefined {
    return this.#values.get(key);
  }

  set(key: K, value: V): void {
    this.#values.set(key, value);
    if (this.#values.size <= this.#max) return;
    for (const [oldest, one] of this.#values) {
      this.#values.delete(oldest);
      this.#release(one);
      return;
    }
  }

  /** Forgets it, and answers what it was. */
  take(key: K): V | undefined {
    const value = this.#values.get(key);
    this.#values.delete(key);
    return value;
  }

  /** Forgets everything, and answers what it was, oldest first. */
  takeAll(): readonly V[] {
    const values = [...this.#values.values()];
    this.#values.clear();
    return values;
  }
}
