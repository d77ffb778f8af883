// A map for entries that come and go all the time.
//
// A map of V8 makes a new table whenever enough of its entries were deleted, and the old table keeps its entries and
// refers to the new one. As soon as one table is old enough for the old generation, everything that was ever in the map
// afterwards survives until the next major collection: under load that was half of the cost of a run. A new map has no
// such past.

/** So many deletions, and at least as many as there are entries, before the entries move to a new map. */
const DELETIONS_MIN = 256;

export class RenewedMap<K, V> {
  #entries = new Map<K, V>();
  #deletions = 0;

  get size(): number {
    return this.#entries.size;
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  set(key: K, value: V): void {
    this.#entries.set(key, value);
  }

  delete(key: K): boolean {
    if (!this.#entries.delete(key)) return false;
    this.#deletions += 1;
    if (this.#deletions >= Math.max(DELETIONS_MIN, this.#entries.size)) {
      this.#entries = new Map(this.#entries);
      this.#deletions = 0;
    }
    return true;
  }

  clear(): void {
    this.#entries = new Map();
    this.#deletions = 0;
  }

  /** In the order in which they were added. */
  keys(): MapIterator<K> {
    return this.#entries.keys();
  }

  values(): MapIterator<V> {
    return this.#entries.values();
  }
}
