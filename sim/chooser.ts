// Where a schedule's choices come from: a seed, or a list. Nothing else in a simulation is random.

export interface Chooser {
  /** A whole number from 0 to `count` - 1. */
  below(count: number): number;
}

/** The same seed makes the same choices. (Mulberry32: small, fast, and good enough to pick with.) */
export class SeededChooser implements Chooser {
  #state: number;

  constructor(seed: number) {
    // Neighbouring seeds must not make neighbouring schedules.
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
    this.below(2);
  }

  below(count: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * count);
  }
}

/** Makes the choices it was given, then always the first; and remembers how many there were to choose from. */
export class ListedChooser implements Chooser {
  readonly #given: readonly number[];
  readonly made: number[] = [];
  readonly widths: number[] = [];

  constructor(given: readonly number[]) {
    this.#given = given;
  }

  below(count: number): number {
    const choice = this.#given[this.made.length] ?? 0;
    this.made.push(choice);
    this.widths.push(count);
    return choice;
  }
}

export function pick<T>(chooser: Chooser, from: readonly T[]): T {
  const picked = from[chooser.below(from.length)];
  if (picked === undefined) throw new RangeError("there is nothing to pick from");
  return picked;
}

/** True in `percent` of all cases. */
export const chance = (chooser: Chooser, percent: number): boolean => chooser.below(100) < percent;

/** One of them, in proportion to its weight. */
export function weighted<T>(chooser: Chooser, from: readonly (readonly [weight: number, T])[]): T {
  let left = chooser.below(from.reduce((sum, [weight]) => sum + weight, 0));
  for (const [weight, one] of from) {
    if (left < weight) return one;
    left -= weight;
  }
  throw new RangeError("there is nothing to pick from");
}
