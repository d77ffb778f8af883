// Idempotency of `cancelAll()`: the same request under the same key gets the same response, and stops nothing newer.
// No session can store that, because the request covers all of them. Responses are stored as memos under an id that
// no session can have.
//
// Invariants
// 1. A request under one key is carried out once, even while the first is still in progress.
// 2. The response is durable before it is returned. If it cannot be stored, the request fails; the stop was carried
//    out all the same, and each session has recorded it. A failure is not stored: the request may be repeated.
// 3. A response is kept for MEMO_MS and never evicted for space: beyond its sender's limit a stop is carried out, and
//    then refused.
// 4. A stop never waits for stored responses: while the store cannot load them, a repeated stop is carried out again.

import { ControlError } from "../core/errors.ts";
import { MEMO_MS } from "../core/limits.ts";
import type { SessionId } from "../core/model/ids.ts";
import type { Json } from "../core/model/prompt.ts";
import type { Engine } from "../engine/engine.ts";
import type { Clock } from "../ports/clock.ts";
import type { CoveredSession } from "../ports/control.ts";

/** Not a valid id, so that no caller can name it. */
const ALL: SessionId = "ses_*";

type Answer = readonly CoveredSession[];

interface Kept {
  /** By the monotonic clock. */
  readonly at: number;
  readonly content: string;
  readonly answer: Promise<Answer>;
}

export interface BulkStop {
  /** Undefined: the request is not repeated. */
  readonly key: string | undefined;
  /** Keys of different senders do not collide. */
  readonly sender: readonly (string | undefined)[];
  readonly content: string;
}

export class BulkStops {
  readonly #engine: Engine;
  readonly #clock: Pick<Clock, "elapsed">;
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>();
  #isLoaded = false;

  constructor(engine: Engine, clock: Pick<Clock, "elapsed">) {
    this.#engine = engine;
    this.#clock = clock;
  }

  /** Loads the responses of earlier processes. A store that fails here does not prevent the start. */
  async load(): Promise<void> {
    try {
      const loaded = await this.#engine.store.load(ALL);
      this.#isLoaded = true;
      for (const memo of loaded?.memos ?? []) {
        if (memo.kind !== "answer" || this.#kept.has(memo.key)) continue;
        const answer = Promise.resolve(memo.answer as unknown as Answer);
        this.#kept.set(memo.key, { at: this.#clock.elapsed(), content: memo.content, answer });
      }
    } catch {
      // The next stop loads them.
    }
  }

  /** Runs `act` in this tick, unless the request is a repetition. */
  once({ key, sender, content }: BulkStop, act: () => Promise<Answer>): Promise<Answer> {
    if (key === undefined) return act();
    if (!this.#isLoaded) void this.load();
    this.#expire();
    const name = JSON.stringify([...sender, key]);
    const before = this.#kept.get(name);
    if (before !== undefined) return before.content === content ? before.answer : Promise.reject(taken());
    const answer = act().then((covered) => this.#keep(covered, { key: name, content, sender }));
    const kept = { at: this.#clock.elapsed(), content, answer };
    this.#kept.set(name, kept);
    answer.catch(() => {
      if (this.#kept.get(name) === kept) this.#kept.delete(name);
    });
    return answer;
  }

  async #keep(
    covered: Answer,
    { key, content, sender }: Pick<BulkStop, "content" | "sender"> & { readonly key: string },
  ): Promise<Answer> {
    const { commit, lanes } = this.#engine;
    // Plain JSON data, without undefined fields.
    const answer = JSON.parse(JSON.stringify(covered)) as Json;
    const keep = { type: "keep-answer", answer, actor: JSON.stringify(sender), once: { key, content } } as const;
    // This fails while Belay is closing, perhaps because this stop ended its last run, and if the store is in
    // trouble, which the store reports itself.
    const refused = await commit.submit(lanes.get(ALL), keep).catch(() => undefined);
    if (refused !== undefined) throw new ControlError(refused.code, refused.message);
    return covered;
  }

  #expire(): void {
    for (const [name, { at }] of this.#kept) {
      if (at > this.#clock.elapsed() - MEMO_MS) return;
      this.#kept.delete(name);
    }
  }
}

const taken = (): ControlError =>
  new ControlError("conflict", "This idempotency key was used for a different request.");
