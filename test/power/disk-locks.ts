// The locks of a database on the simulated disk: those on its file, and those of its write-ahead log in shared memory.
// All in one thread, so a lock that cannot be had is refused at once.

/** As SQLite numbers them: none, shared, reserved, pending, exclusive. */
const NONE = 0;
const SHARED = 1;
const RESERVED = 2;
const PENDING = 3;
const EXCLUSIVE = 4;
const LOG_LOCKS = 8;

/** Whoever holds a lock: an opened file. */
export type Holder = number;

export class FileLocks {
  readonly #levels = new Map<Holder, number>();

  /** False: somebody else has one that rules it out. */
  take(holder: Holder, level: number): boolean {
    const others = this.#highestOther(holder);
    if (level === SHARED && others >= PENDING) return false;
    if (level >= RESERVED && others >= RESERVED) return false;
    if (level === EXCLUSIVE && others >= SHARED) {
      this.#levels.set(holder, PENDING);
      return false;
    }
    this.#levels.set(holder, Math.max(level, this.#levels.get(holder) ?? NONE));
    return true;
  }

  drop(holder: Holder, to: number): void {
    if (to === NONE) this.#levels.delete(holder);
    else this.#levels.set(holder, to);
  }

  get reserved(): boolean {
    return [...this.#levels.values()].some((level) => level >= RESERVED);
  }

  #highestOther(holder: Holder): number {
    let highest = NONE;
    for (const [other, level] of this.#levels) if (other !== holder) highest = Math.max(highest, level);
    return highest;
  }
}

export class LogLocks {
  readonly #shared: Set<Holder>[] = Array.from({ length: LOG_LOCKS }, () => new Set());
  readonly #exclusive: (Holder | undefined)[] = Array.from({ length: LOG_LOCKS }, () => undefined);

  take(holder: Holder, slots: readonly number[], kind: "shared" | "exclusive"): boolean {
    const free = slots.every((slot) => {
      const owner = this.#exclusive[slot];
      if (owner !== undefined && owner !== holder) return false;
      return kind === "shared" || [...(this.#shared[slot] ?? [])].every((other) => other === holder);
    });
    if (!free) return false;
    for (const slot of slots) {
      if (kind === "exclusive") this.#exclusive[slot] = holder;
      else this.#shared[slot]?.add(holder);
    }
    return true;
  }

  drop(holder: Holder, slots: readonly number[]): void {
    for (const slot of slots) {
      this.#shared[slot]?.delete(holder);
      if (this.#exclusive[slot] === holder) this.#exclusive[slot] = undefined;
    }
  }
}
