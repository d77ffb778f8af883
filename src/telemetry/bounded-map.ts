// A map with a maximum size. Adding an entry beyond it evicts the oldest one.
//
// Invariant: it never has more than `max` entries, even if callers never remove any.

export class BoundedMap<K, V> {
  readonly #max: number;
  readonly #release: (value: V) => void;
  readonly #values = new Map<K, V>();

  /** `release` is called with each evicted value. */
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

  /** Removes the entry and returns its value. */
  take(key: K): V | undefined {
    const value = this.#values.get(key);
    this.#values.delete(key);
    return value;
  }

  /** Removes all entries and returns their values, oldest first. */
  takeAll(): readonly V[] {
    const values = [...this.#values.values()];
    this.#values.clear();
    return values;
  }
}
