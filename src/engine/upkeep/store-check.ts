// Checks whether the store would accept a write, for health checks and load balancers.
//
// Invariants
// 1. One check at a time, whose answer is shared for a second: it costs the store a write.
// 2. A store that does not answer has failed: no caller waits longer than the limit.
// 3. While nothing is recorded, the store is still polled every few seconds: if it was removed, this is reported once,
//    and again after it was back.
import { type ControlCode, toControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Notify } from "../../ports/hooks.ts";
import type { Store } from "../../ports/store.ts";

/** How long an answer is cached. Monitoring asks every few seconds; an unknown client may ask all the time. */
const ANSWER_MS = 1_000;

/** The timeout of the store. Longer than a write that waits for another program, whose error has the reason. */
const WAIT_MS = 3_000;

/** How often a store is polled that can report whether it is still in place. It costs no write. */
const LOOK_EVERY_MS = 2_000;

export class StoreCheck {
  readonly #store: Store;
  readonly #clock: Clock;
  #asked: Promise<ControlCode | undefined> | undefined;
  /** The check that the store has not answered yet; no other is started meanwhile. */
  #open: Promise<ControlCode | undefined> | undefined;
  #answeredAt: number | undefined;
  #cancelLook: () => void = () => {};
  #isWatched = false;
  #reported: ControlCode | undefined;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Why nothing new can be recorded now; undefined: it can, as far as the store knows. */
  trouble(): Promise<ControlCode | undefined> {
    const old = this.#answeredAt !== undefined && this.#clock.elapsed() - this.#answeredAt >= ANSWER_MS;
    if (this.#asked === undefined || old) {
      this.#answeredAt = undefined;
      this.#asked = this.#ask();
    }
    return this.#asked;
  }

  /** Reports to `notify` when the store is no longer in place, until `unwatch`. */
  watch(notify: Notify): void {
    if (this.#store.inPlace === undefined) return;
    this.#isWatched = true;
    this.#cancelLook = this.#clock.after(LOOK_EVERY_MS, () => void this.#look(notify), "idle");
  }

  unwatch(): void {
    this.#isWatched = false;
    this.#cancelLook();
  }

  async #look(notify: Notify): Promise<void> {
    try {
      await this.#store.inPlace?.();
      this.#reported = undefined;
    } catch (error) {
      const { code, message } = toControlError(error);
      if (this.#isWatched && this.#reported !== code) notify({ type: "store", code, message });
      this.#reported = code;
    }
    if (this.#isWatched) this.watch(notify);
  }

  async #ask(): Promise<ControlCode | undefined> {
    let dispose = (): void => {};
    const limit = new Promise<ControlCode>((resolve) => {
      dispose = this.#clock.after(WAIT_MS, () => resolve("unavailable"), "idle");
    });
    this.#open ??= this.#answer();
    const answer = await Promise.race([this.#open, limit]);
    dispose();
    this.#answeredAt = this.#clock.elapsed();
    return answer;
  }

  async #answer(): Promise<ControlCode | undefined> {
    try {
      await this.#store.ready?.();
      return undefined;
    } catch (error) {
      return toControlError(error).code;
    } finally {
      this.#open = undefined;
    }
  }
}
