// Requests that this client has sent without a response, and the order in which prompts are sent. Requests on two
// connections can overtake each other; the order of the caller's calls must still hold.
//
// Invariants
// 1. The prompts of a session are sent one after the other, in the order of the calls.
// 2. A stop waits for nothing. A stop of a whole session names the earlier prompts that have no response, so that it
//    covers them even if it arrives first. A prompt called after any stop is sent when that stop has a response.
// 3. A prompt counts as answered if it was accepted, or refused by the server itself. Any other failure leaves it
//    unanswered.

import { ControlError } from "../core/errors.ts";
import type { Accepted } from "../core/model/command.ts";
import type { SessionId } from "../core/model/ids.ts";
import { UNSENT_PROMPTS_MAX } from "./limits.ts";
import { isRefusal } from "./transport/reply.ts";

/** The server's response to a prompt. */
export interface AcceptedIn extends Accepted {
  readonly sessionId: SessionId;
}

/**
 * A prompt without a response. Without a session id, the prompt creates its own session, whose id the server derives
 * from the key.
 */
export interface Unanswered {
  readonly sessionId?: SessionId;
  readonly key: string;
}

export class SendOrder {
  /** `lost`: it is not sent again, and may have been accepted. */
  readonly #unanswered = new Map<Unanswered, "sent" | "lost">();
  /** What the next prompt of a session waits for. The entry under undefined holds up every prompt. */
  readonly #tails = new Map<SessionId | undefined, Promise<unknown>>();

  /** The prompts that a stop called now must name: those of one session, or all. */
  unanswered(session?: SessionId): readonly Unanswered[] {
    return [...this.#unanswered.keys()].filter(({ sessionId }) => session === undefined || sessionId === session);
  }

  /** Sends a prompt, in the same tick if no request precedes it. */
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
   * Sends a stop of one thing at once. With no session id, the session is unknown, and prompts of all sessions wait.
   * Once the server has responded, it remembers the prompts in `named`.
   */
  stop<T>(session: SessionId | undefined, send: () => Promise<T>, named: readonly Unanswered[] = []): Promise<T> {
    const receipt = send();
    this.#after(
      session,
      receipt.then(() => this.#forgetLost(named)),
    );
    return receipt;
  }

  /** The same for a stop of everything in a session, or in all sessions. */
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

  /** Makes the next prompt wait for this request too, and removes the entry once it is done. */
  #after(session: SessionId | undefined, answered: Promise<unknown>): void {
    const tail = Promise.allSettled([this.#tails.get(session), answered]).then(() => {
      if (this.#tails.get(session) === tail) this.#tails.delete(session);
    });
    this.#tails.set(session, tail);
  }
}

const tooMany = (): ControlError =>
  new ControlError("overloaded", `${UNSENT_PROMPTS_MAX} prompts to this session are already in flight.`, {
    hint: "Await `accepted` of the earlier ones first.",
  });
