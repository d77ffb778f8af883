// Stops of everything, by the caller's key: the same request again gets the same answer, and stops nothing newer. No
// session could remember that, because it is about all of them. Kept as memos under an id that no session can have.
//
// Invariants
// 1. What is asked under one key is done once, even while the first is still being answered.
// 2. The answer is durable before it is given, or cannot be kept: then the stop was carried out all the same, and each
//    session has recorded it. What has failed is not kept: it may be tried again.

import { ControlError } from "../core/errors.ts";
import { ANSWERS_KEPT } from "../core/limits.ts";
import type { SessionId } from "../core/model/ids.ts";
import type { Json } from "../core/model/prompt.ts";
import type { Engine } from "../engine/engine.ts";
import type { CoveredSession } from "../ports/control.ts";

/** Not well-formed as an id, so that no caller can name it. */
const ALL: SessionId = "ses_*";

type Answer = readonly CoveredSession[];

interface Kept {
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
  /** The oldest first. */
  readonly #kept = new Map<string, Kept>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Reads what was answered before a restart. A store that cannot tell keeps nothing from starting. */
  async load(): Promise<void> {
    const loaded = await this.#engine.store.load(ALL).catch(() => undefined);
    for (const memo of loaded?.memos ?? []) {
      if (memo.kind !== "answer") continue;
      const answer = Promise.resolve(memo.answer as unknown as Answer);
      this.#kept.set(memo.key, { content: memo.content, answer });
    }
  }

  /** Acts in this tick, unless this was asked before. */
  once({ key, sender, content }: BulkStop, act: () => Promise<Answer>): Promise<Answer> {
    if (key === undefined) return act();
    const name = JSON.stringify([...sender, key]);
    const before = this.#kept.get(name);
    if (before !== undefined) return before.content === content ? before.answer : Promise.reject(taken());
    const answer = act().then((covered) => this.#keep(name, content, covered));
    const kept = { content, answer };
    this.#kept.set(name, kept);
    answer.catch(() => {
      if (this.#kept.get(name) === kept) this.#kept.delete(name);
    });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > ANSWERS_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    return answer;
  }

  async #keep(key: string, content: string, covered: Answer): Promise<Answer> {
    const { commit, lanes } = this.#engine;
    // Plain data, without what is undefined.
    const answer = JSON.parse(JSON.stringify(covered)) as Json;
    try {
      await commit.submit(lanes.get(ALL), { type: "keep-answer", answer, once: { key, content } });
    } catch {
      // Belay is closing, perhaps because this stop ended its last run; or the store is in trouble, and reports it.
    }
    return covered;
  }
}

const taken = (): ControlError =>
  new ControlError("conflict", "This idempotency key was used for a different request.");
