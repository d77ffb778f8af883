// A first-in, first-out queue. `Array.shift()` moves all remaining elements; this one moves none.

/** Every operation takes amortised constant time. Elements that were shifted out are not referenced any more. */
export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  /** The oldest element is at 0. */
  at(index: number): T | undefined {
    return this.#items[this.#head + index];
  }

  get last(): T | undefined {
    return this.length === 0 ? undefined : this.#items.at(-1);
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head += 1;
    // Compacting pays off once at least half of the array was shifted out.
    if (this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** The elements starting at `index`, oldest first. */
  from(index: number): T[] {
    // All slots between head and end are filled.
    return this.#items.slice(this.#head + index) as T[];
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }
}
