// What this client has sent and not seen answered, and the order in which prompts leave. Two requests on two
// connections may overtake each other; what a caller did first must still count first.
//
// Invariants
// 1. The prompts of a session are sent one after the other, in the order of the calls.
// 2. A stop waits for nothing. One of a whole session names the prompts before it that have no answer, so that it
//    covers them even if it arrives first. What is prompted after any stop is sent when that is answered.
// 3. A prompt has an answer if it was accepted, or refused by the server itself. Any other failure is no answer.

import { ControlError } from "../core/errors.ts";
import type { Accepted } from "../core/model/command.ts";
import type { SessionId } from "../core/model/ids.ts";
import { UNSENT_PROMPTS_MAX } from "./limits.ts";
import { isRefusal } from "./transport/reply.ts";

/** What the server answers to a prompt. */
export interface AcceptedIn extends Accepted {
  readonly sessionId: SessionId;
}

/** A prompt without an answer. Without a session: it has one to itself, whose id the server makes from the key. */
export interface Unanswered {
  readonly sessionId?: SessionId;
  readonly key: string;
}

export class SendOrder {
  /** `lost`: it is not sent again, and may have been accepted. */
  readonly #unanswered = new Map<Unanswered, "sent" | "lost">();
  /** What the next prompt of a session waits for; under undefined, what every prompt waits for. */
  readonly #tails = new Map<SessionId | undefined, Promise<unknown>>();

  /** The prompts that a stop called now has to name: of one session, or of all. */
  unanswered(session?: SessionId): readonly Unanswered[] {
    return [...this.#unanswered.keys()].filter(({ sessionId }) => session === undefined || sessionId === session);
  }

  /** Sends a prompt, in this very tick if nothing is before it. */
  prompt(prompt: Unanswered, send: () => Promise<AcceptedIn>): Promise<AcceptedIn> {
    const { sessionId } = prompt;
    const waiting = [...this.#unanswered].filter(([one, how]) => one.sessionId === sessionId && how === "sent").length;
    if (waiting >= UNSENT_PROMPTS_MAX) return Promise.reject(tooMany());
    this.#unanswered.set(prompt, "sent");
    const before = [this.#tails.get(undefined), sessionId && this.#tails.get(sessionId)].filter(Boolean);
    const accepted = before.length === 0 ? send() : Promise.all(before).then(send);
    accepted.then(
      () => this.#unanswered.delete(prompt),
      (thrown: unknown) => (isRefusal(thrown) ? this.#unanswered.delete(prompt) : this.#lose(prompt)),
    );
    if (sessionId !== undefined) this.#after(sessionId, accepted);
    return accepted;
  }

  /**
   * Sends a stop of one thing in a session at once. Undefined: it is not known in which, so prompts of all wait.
   * `named` is the server's to remember once it answers.
   */
  stop<T>(session: SessionId | undefined, send: () => Promise<T>, named: readonly Unanswered[] = []): Promise<T> {
    const receipt = send();
    this.#after(
      session,
      receipt.then(() => this.#forgetLost(named)),
    );
    return receipt;
  }

  /** The same of everything in a session, or in all. */
  stopAll<T>(session: SessionId | undefined, send: (named: readonly Unanswered[]) => Promise<T>): Promise<T> {
    const named = this.unanswered(session);
    return this.stop(session, () => send(named), named);
  }

  #lose(prompt: Unanswered): void {
    this.#unanswered.set(prompt, "lost");
    const lost = [...this.#unanswered].filter(([, how]) => how === "lost").map(([one]) => one);
    this.#forgetLost(lost.slice(0, -UNSENT_PROMPTS_MAX));
  }

  #forgetLost(prompts: readonly Unanswered[]): void {
    for (const one of prompts) if (this.#unanswered.get(one) === "lost") this.#unanswered.delete(one);
  }

  /** What follows waits for this too. What nothing waits for is forgotten. */
  #after(session: SessionId | undefined, answered: Promise<unknown>): void {
    const tail = Promise.allSettled([this.#tails.get(session), answered]).then(() => {
      if (this.#tails.get(session) === tail) this.#tails.delete(session);
    });
    this.#tails.set(session, tail);
  }
}

const tooMany = (): ControlError =>
  new ControlError("overloaded", `${UNSENT_PROMPTS_MAX} prompts are on their way to this session already.`, {
    hint: "Await `accepted` of the earlier ones first.",
  });
