// Dice that fall the same way for the same seed.

export interface Chance {
  /** A whole number from 0 on, below this. */
  below(end: number): number;
  pick<T>(from: readonly [T, ...T[]]): T;
  /** Dice of their own, for somebody who goes his own way. */
  fork(): Chance;
}

export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  // Mulberry32: small, and good enough to choose with.
  const next = (): number => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number): number => Math.floor(next() * end);
  return {
    below,
    pick: (from) => from[below(from.length)] ?? from[0],
    fork: () => chanceOf(below(2 ** 32)),
  };
}
