// Answers to requests that no session could remember, because they are about all of them. Kept by the caller's key, so
// that a request whose answer was lost on the way can be sent again and does nothing twice.
//
// Invariants
// 1. What is asked under one key is done once, also while the first is still being answered.
// 2. What has failed is not kept: it may be tried again.
import { ControlError } from "../core/control-error.ts";
import type { Actor } from "./exchange.ts";
import { ANSWERS_KEPT_MAX } from "./limits.ts";

interface Kept<T> {
  readonly content: string;
  readonly answer: Promise<T>;
}

export class KeptAnswers<T> {
  /** The oldest first. */
  readonly #kept = new Map<string, Kept<T>>();

  /** Acts, unless this was asked before. A key is its holder's own. */
  once(actor: Actor, key: string | undefined, body: unknown, act: () => Promise<T>): Promise<T> {
    if (key === undefined) return act();
    const name = JSON.stringify([actor.name, key]);
    const content = JSON.stringify(body);
    const before = this.#kept.get(name);
    if (before !== undefined) return before.content === content ? before.answer : Promise.reject(taken());
    const answer = act();
    const kept = { content, answer };
    this.#kept.set(name, kept);
    answer.catch(() => {
      if (this.#kept.get(name) === kept) this.#kept.delete(name);
    });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > ANSWERS_KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest);
    return answer;
  }
}

const taken = (): ControlError =>
  new ControlError("conflict", "This idempotency key was used for a different request.");
