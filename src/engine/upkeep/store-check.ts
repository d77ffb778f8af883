// Whether the store would take something new, for whoever decides where prompts are sent.
//
// Invariants
// 1. One question at a time, and its answer serves everybody who asks within a second: it costs the store a write.
// 2. A store that says nothing is in trouble: nobody waits for it longer than the limit.
// 3. While nothing is recorded, the store is still looked at every few seconds: one that was removed is reported once,
//    and again after it was back.
import { type ControlCode, toControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Notify } from "../../ports/hooks.ts";
import type { Store } from "../../ports/store.ts";

/** How long an answer counts. Whoever watches a house asks every few seconds; a stranger may ask all the time. */
const ANSWER_MS = 1_000;

/** How long the store may take. Longer than a write that waits for another program, which says why. */
const WAIT_MS = 3_000;

/** How often a store is looked at that can say whether it is still in its place. It costs no write. */
const LOOK_EVERY_MS = 2_000;

export class StoreCheck {
  readonly #store: Store;
  readonly #clock: Clock;
  #asked: Promise<ControlCode | undefined> | undefined;
  /** What the store has not answered yet; it is not asked a second time meanwhile. */
  #open: Promise<ControlCode | undefined> | undefined;
  #answeredAt: number | undefined;
  #cancelLook: () => void = () => {};
  #isWatched = false;
  #reported: ControlCode | undefined;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Why nothing new can be recorded just now; undefined: it can, as far as the store knows. */
  trouble(): Promise<ControlCode | undefined> {
    const old = this.#answeredAt !== undefined && this.#clock.elapsed() - this.#answeredAt >= ANSWER_MS;
    if (this.#asked === undefined || old) {
      this.#answeredAt = undefined;
      this.#asked = this.#ask();
    }
    return this.#asked;
  }

  /** Reports to `notify` when the store is not in its place any more, until `unwatch`. */
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
