// Stops of everything, by the caller's key: the same request again gets the same answer, and stops nothing newer. No
// session could remember that, because it is about all of them. Kept as memos under an id that no session can have.
//
// Invariants
// 1. What is asked under one key is done once, even while the first is still being answered.
// 2. The answer is durable before it is given, or cannot be kept: then the stop was carried out all the same, and each
//    session has recorded it. What has failed is not kept: it may be tried again.
// 3. An answer is kept for MEMO_MS. None is dropped for room: beyond the limit of its sender a stop is carried out, and
//    refused after that.
// 4. A stop never waits for what was answered before: while the store cannot tell, a stop that is sent again is carried
//    out again.

import { ControlError } from "../core/errors.ts";
import { MEMO_MS } from "../core/limits.ts";
import type { SessionId } from "../core/model/ids.ts";
import type { Json } from "../core/model/prompt.ts";
import type { Engine } from "../engine/engine.ts";
import type { Clock } from "../ports/clock.ts";
import type { CoveredSession } from "../ports/control.ts";

/** Not well-formed as an id, so that no caller can name it. */
const ALL: SessionId = "ses_*";

type Answer = readonly CoveredSession[];

interface Kept {
  /** By a clock that never jumps. */
  readonly at: number;
  readonly content: string;
  readonly answer: Promise<Answer>;
}

export interface BulkStop {
  /** Undefined: it is not sent again. */
  readonly key: string | undefined;
  /** A key is its sender's own. */
  readonly sender: readonly (string | undefined)[];
  readonly content: string;
}

export class BulkStops {
  readonly #engine: Engine;
  readonly #clock: Pick<Clock, "elapsed">;
  /** The oldest first. */
  readonly #kept = new Map<string, Kept>();
  #isLoaded = false;

  constructor(engine: Engine, clock: Pick<Clock, "elapsed">) {
    this.#engine = engine;
    this.#clock = clock;
  }

  /** Reads what was answered before a restart. A store that cannot tell keeps nothing from starting. */
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
      // It is read with the next stop.
    }
  }

  /** Acts in this tick, unless this was asked before. */
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
    // Plain data, without what is undefined.
    const answer = JSON.parse(JSON.stringify(covered)) as Json;
    const keep = { type: "keep-answer", answer, actor: JSON.stringify(sender), once: { key, content } } as const;
    // It fails while Belay is closing, perhaps because this stop ended its last run; or because the store is in
    // trouble, and reports it.
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
