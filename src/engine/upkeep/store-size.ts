// The size of the store. Counted a page at a time on request, and then cached for a while.
import { RETENTION_SESSIONS_MAX, STORE_SIZE_MS } from "../../core/limits.ts";
import type { StoreStatus, Upkeep } from "../../core/model/upkeep.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";

export class StoreSize {
  readonly #store: Store;
  readonly #clock: Clock;
  #last: StoreStatus | undefined;
  #until = Number.NEGATIVE_INFINITY;
  #counting: Promise<StoreStatus | undefined> | undefined;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The last count. */
  get last(): StoreStatus | undefined {
    return this.#last;
  }

  /** Undefined: the store does not report it, or fails and has never reported it. */
  async read(): Promise<StoreStatus | undefined> {
    const { upkeep } = this.#store;
    if (upkeep === undefined || this.#clock.elapsed() < this.#until) return this.#last;
    this.#counting ??= this.#count(upkeep).finally(() => {
      this.#counting = undefined;
    });
    return this.#counting;
  }

  async #count(upkeep: Upkeep): Promise<StoreStatus | undefined> {
    const from = this.#clock.elapsed();
    try {
      const usage = await upkeep.usage();
      let [sessions, events, after, isLast] = [0, 0, 0, false];
      while (!isLast) {
        const page = await upkeep.survey({ after, limit: RETENTION_SESSIONS_MAX });
        sessions += page.length;
        for (const { kept, head } of page) events += head - kept + 1;
        after = page.at(-1)?.cursor ?? after;
        isLast = page.length < RETENTION_SESSIONS_MAX;
      }
      this.#last = { ...usage, sessions, events };
    } catch {
      // The last count is still the best known.
    }
    // A store with very many sessions is counted less often, so that this takes at most a twentieth of its reader.
    this.#until = this.#clock.elapsed() + Math.max(STORE_SIZE_MS, 20 * (this.#clock.elapsed() - from));
    return this.#last;
  }
}
