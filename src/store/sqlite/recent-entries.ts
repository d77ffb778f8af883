// A map with a maximum size that evicts the entry that was set longest ago.

import { RenewedMap } from "../../core/renewed-map.ts";

export class RecentEntries<K, V> {
  readonly #entries = new RenewedMap<K, V>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  set(key: K, value: V): void {
    // A map keeps insertion order: deleting and inserting an entry makes it the newest.
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#max) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}
