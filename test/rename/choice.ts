// Choices that a seed repeats.

export class Choice {
  #state: number;

  constructor(seed: number) {
    this.#state = (Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995) >>> 0;
  }

  /** Up to `count` different ones. */
  some<T>(from: readonly T[], count: number): readonly T[] {
    const left = [...from];
    const chosen: T[] = [];
    while (chosen.length < count && left.length > 0) chosen.push(...left.splice(this.#below(left.length), 1));
    return chosen;
  }

  #below(limit: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    this.#state >>>= 0;
    return this.#state % limit;
  }
}
