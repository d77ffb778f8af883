// The sessions that a host follows. Each is read from its log as fast as the host reads lines.
//
// Invariants
// 1. Events are not buffered for a host that does not read: one is held, the rest stays in the log.
// 2. A session is followed once. A second subscription replaces the first, from its own position.

import { ControlError, messageOf } from "../../core/errors.ts";
import type { Delta, Gap } from "../../core/model/delta.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { Seq, SessionId } from "../../core/model/ids.ts";
import type { SessionControl } from "../../ports/control.ts";
import { SUBSCRIPTIONS_MAX } from "./limits.ts";
import { notificationLine, rpcError } from "./message.ts";
import type { Outlet } from "./outlet.ts";
import { invalid } from "./params.ts";

export interface SubscribeOptions {
  readonly after: Seq;
  readonly deltas: "with" | "without";
}

/** An explicit reason: by default each abort creates an error with a stack. */
const OVER = { name: "Over", message: "The subscription has ended." } as const;

export class Subscriptions {
  readonly #outlet: Outlet;
  readonly #open = new Map<SessionId, Subscription>();

  constructor(outlet: Outlet) {
    this.#outlet = outlet;
  }

  /** Registers the subscription synchronously, so that the next line finds it. Call the result to start it. */
  async add(session: SessionControl, options: SubscribeOptions): Promise<() => void> {
    if (!this.#open.has(session.id) && this.#open.size >= SUBSCRIPTIONS_MAX) {
      throw new ControlError("overloaded", `${SUBSCRIPTIONS_MAX} sessions are followed already.`, {
        hint: "Unsubscribe from one of them first.",
      });
    }
    this.remove(session.id);
    const subscription = new Subscription(session, options);
    this.#open.set(session.id, subscription);
    try {
      const { asOf } = await session.explain();
      if (options.after > asOf) throw invalid(`\`after\` is ${options.after}, and the log ends at ${asOf}.`);
      return () => void this.#follow(subscription);
    } catch (error) {
      this.#drop(subscription);
      throw error;
    }
  }

  remove(id: SessionId): boolean {
    const subscription = this.#open.get(id);
    if (subscription === undefined) return false;
    this.#drop(subscription);
    return true;
  }

  /** Resolves when the host has received everything up to a position, if it follows the session. */
  async delivered(id: SessionId, seq: Seq): Promise<void> {
    await this.#open.get(id)?.reached(seq);
  }

  close(): void {
    for (const subscription of [...this.#open.values()]) this.#drop(subscription);
  }

  async #follow(subscription: Subscription): Promise<void> {
    const { session, options, stop } = subscription;
    let ended: object = {};
    try {
      for await (const event of session.events({ ...options, signal: stop.signal })) {
        await this.#outlet.event(() =>
          stop.signal.aborted ? undefined : notificationLine("event", { sessionId: session.id, event }),
        );
        if (stop.signal.aborted) return;
        subscription.passed(positionOf(event));
      }
    } catch (error) {
      ended = { error: rpcError(error), reason: messageOf(error) };
    }
    if (stop.signal.aborted) return;
    this.#drop(subscription);
    await this.#outlet.event(() => notificationLine("subscription/ended", { sessionId: session.id, ...ended }));
  }

  #drop(subscription: Subscription): void {
    if (this.#open.get(subscription.session.id) === subscription) this.#open.delete(subscription.session.id);
    subscription.end();
  }
}

class Subscription {
  readonly session: SessionControl;
  readonly options: SubscribeOptions;
  readonly stop = new AbortController();
  #cursor: Seq;
  #waiting: { readonly seq: Seq; readonly reached: () => void }[] = [];

  constructor(session: SessionControl, options: SubscribeOptions) {
    this.session = session;
    this.options = options;
    this.#cursor = options.after;
  }

  reached(seq: Seq): Promise<void> {
    if (this.#cursor >= seq || this.stop.signal.aborted) return Promise.resolve();
    return new Promise((reached) => this.#waiting.push({ seq, reached }));
  }

  passed(seq: Seq | undefined): void {
    if (seq === undefined) return;
    this.#cursor = seq;
    for (const { reached } of this.#waiting.filter((one) => one.seq <= seq)) reached();
    this.#waiting = this.#waiting.filter((one) => one.seq > seq);
  }

  end(): void {
    this.stop.abort(OVER);
    for (const { reached } of this.#waiting.splice(0)) reached();
  }
}

/** The event's position in the log. Deltas have none. */
function positionOf(event: Recorded | Delta | Gap): Seq | undefined {
  if ("seq" in event) return event.seq;
  return event.type === "gap" ? event.to : undefined;
}
