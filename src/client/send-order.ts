// The order in which requests leave. Two requests on two connections may overtake each other; what a caller did first
// must still count first.
//
// Invariants
// 1. The prompts of a session are sent one after the other, in the order of the calls.
// 2. A cancel waits for nobody. What was prompted before it and is not answered yet is named, so that it can be covered
//    when it is; what is prompted after it is sent when the cancel is answered.
import type { Accepted } from "../core/command.ts";
import { ControlError } from "../core/control-error.ts";
import type { SessionId } from "../core/ids.ts";
import { CANCELS_KEPT, UNSENT_PROMPTS_MAX } from "./limits.ts";

/** What the server answers to a prompt. */
export interface AcceptedIn extends Accepted {
  readonly sessionId: SessionId;
}

/** A prompt that is on its way. */
export interface OnItsWay {
  readonly accepted: Promise<AcceptedIn>;
}

interface Lane {
  /** Settles when everything before has been answered. Undefined: nothing is. */
  tail: Promise<unknown> | undefined;
  readonly prompts: Set<OnItsWay>;
}

export class SendOrder {
  readonly #lanes = new Map<SessionId, Lane>();
  /** Prompts whose session is not known yet. */
  readonly #elsewhere = new Set<OnItsWay>();
  /** Cancels of sessions that were sent, by session and key, oldest first. */
  readonly #cancels = new Set<string>();
  /** Cancels of everything that have not been answered. */
  #all: Promise<unknown> | undefined = undefined;

  /** Sends a prompt, in this very tick if nothing is before it. */
  prompt(session: SessionId | undefined, send: () => Promise<AcceptedIn>): Promise<AcceptedIn> {
    const lane = session === undefined ? { tail: undefined, prompts: this.#elsewhere } : this.#lane(session);
    if (lane.prompts.size >= UNSENT_PROMPTS_MAX) return Promise.reject(tooMany());
    const before = [lane.tail, this.#all].filter((one) => one !== undefined);
    const accepted = before.length === 0 ? send() : Promise.all(before).then(send);
    const onItsWay = { accepted };
    lane.prompts.add(onItsWay);
    this.#after(session, lane, accepted, () => lane.prompts.delete(onItsWay));
    return accepted;
  }

  /**
   * Sends a cancel at once. `overtaken`: the prompts before it that it may have overtaken. One that is sent again under
   * the key it had before is that cancel, and not a newer one: it has overtaken nothing.
   */
  cancel<T>(
    session: SessionId,
    key: string,
    send: () => Promise<T>,
  ): { receipt: Promise<T>; overtaken: readonly OnItsWay[] } {
    const lane = this.#lane(session);
    const overtaken = this.#isNew(`${session} ${key}`) ? [...lane.prompts] : [];
    const receipt = send();
    this.#after(session, lane, receipt, () => undefined);
    return { receipt, overtaken };
  }

  /** The same for all sessions. */
  cancelAll<T>(send: () => Promise<T>): { receipt: Promise<T>; overtaken: readonly OnItsWay[] } {
    const overtaken = [...[...this.#lanes.values()].flatMap(({ prompts }) => [...prompts]), ...this.#elsewhere];
    const receipt = send();
    const all = settled([this.#all, receipt]).then(() => {
      if (this.#all === all) this.#all = undefined;
    });
    this.#all = all;
    return { receipt, overtaken };
  }

  #isNew(cancel: string): boolean {
    if (this.#cancels.has(cancel)) return false;
    this.#cancels.add(cancel);
    const [oldest] = this.#cancels;
    if (this.#cancels.size > CANCELS_KEPT && oldest !== undefined) this.#cancels.delete(oldest);
    return true;
  }

  #lane(session: SessionId): Lane {
    const lane = this.#lanes.get(session) ?? { tail: undefined, prompts: new Set() };
    this.#lanes.set(session, lane);
    return lane;
  }

  /** What follows in this lane waits for this too. A lane in which nothing is under way is forgotten. */
  #after(session: SessionId | undefined, lane: Lane, answered: Promise<unknown>, done: () => void): void {
    const tail = settled([lane.tail, answered.then(done, done)]).then(() => {
      if (lane.tail !== tail) return;
      lane.tail = undefined;
      if (session !== undefined) this.#lanes.delete(session);
    });
    lane.tail = tail;
  }
}

const settled = (promises: readonly unknown[]): Promise<unknown> => Promise.allSettled(promises);

const tooMany = (): ControlError =>
  new ControlError("overloaded", `${UNSENT_PROMPTS_MAX} prompts are on their way to this session already.`, {
    hint: "Await `accepted` of the earlier ones first.",
  });
