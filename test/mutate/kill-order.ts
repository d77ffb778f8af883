// In which order tests look for a mutant: those that found its neighbours first, then those that are quick.
//
// Mutants come in the order of the code. What noticed the last one often notices the next, and a test of a millisecond
// that might notice it is worth a try before one of a second.

export class KillOrder<T extends { readonly id: string }> {
  readonly #ms = new Map<string, number>();
  /** By test: when it last found one. */
  readonly #found = new Map<string, number>();
  #count = 0;

  /** A test has been run; `found`: it has noticed the mutant. */
  ran({ id }: T, ms: number, found: boolean): void {
    if (found) {
      this.#count += 1;
      this.#found.set(id, this.#count);
    } else {
      // How long it takes when nothing is wrong: the least so far, without what else the machine was busy with.
      this.#ms.set(id, Math.min(ms, this.#ms.get(id) ?? Number.POSITIVE_INFINITY));
    }
  }

  /** How long it takes as a rule; undefined: it has not been run yet. */
  usualMs({ id }: T): number | undefined {
    return this.#ms.get(id);
  }

  sorted(tests: readonly T[]): readonly T[] {
    const recent = (id: string): number => {
      const at = this.#found.get(id);
      return at === undefined || at <= this.#count - RECENT ? 0 : at;
    };
    const ms = (id: string): number => this.#ms.get(id) ?? 0;
    return tests.toSorted((one, other) => recent(other.id) - recent(one.id) || ms(one.id) - ms(other.id));
  }
}

/** So many finds later, a find says little about where we are now. */
const RECENT = 12;
