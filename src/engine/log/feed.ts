// The latest events and deltas of sessions that have followers. A cache: the log has everything.
//
// Invariants
// 1. A session without followers keeps nothing here.
// 2. What is kept for all followers of a session is bounded in number and in bytes.
// 3. An event or delta costs constant time for each follower, however many wait for it.

import { TAIL_BYTES_MAX, TAIL_EVENTS_MAX } from "../../core/limits.ts";
import type { Delta } from "../../core/model/delta.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { Seq, SessionId } from "../../core/model/ids.ts";
import { heapBytes } from "../../core/size.ts";
import { DeltaBuffer } from "./delta-buffer.ts";
import { Fifo } from "./fifo.ts";

export class Feeds {
  readonly #feeds = new Map<SessionId, Feed>();
  closed = false;

  /** Number of sessions with followers. */
  get size(): number {
    return this.#feeds.size;
  }

  subscribe(session: SessionId, deltas: "with" | "without"): Subscriber {
    let feed = this.#feeds.get(session);
    if (feed === undefined) {
      feed = new Feed();
      this.#feeds.set(session, feed);
    }
    return feed.subscribe(deltas);
  }

  /** Removes a subscriber, and the feed with its last one. Idempotent. */
  unsubscribe(session: SessionId, subscriber: Subscriber): void {
    const { feed } = subscriber;
    feed.unsubscribe(subscriber);
    if (feed.followers === 0 && this.#feeds.get(session) === feed) this.#feeds.delete(session);
  }

  /** Ends all subscriptions. */
  closeAll(): void {
    this.closed = true;
    for (const feed of this.#feeds.values()) feed.wake();
  }

  push(session: SessionId, events: readonly Recorded[]): void {
    this.#feeds.get(session)?.push(events);
  }

  /** Events may have been recorded that did not pass through here: followers must read the store. */
  reset(session: SessionId): void {
    this.#feeds.get(session)?.reset();
  }

  /** The session was deleted: its followers end. */
  remove(session: SessionId): void {
    this.#feeds.get(session)?.remove();
  }

  /** `at`: the last durable position; the delta comes right after it. */
  delta(session: SessionId, delta: Delta, at: Seq): void {
    this.#feeds.get(session)?.delta(delta, at);
  }
}

interface Kept {
  readonly event: Recorded;
  readonly bytes: number;
}

export class Feed {
  /** Its session was deleted. */
  removed = false;
  /** Number of times that events may have been missed. */
  resets = 0;
  readonly #tail = new Fifo<Kept>();
  #bytes = 0;
  /** The position of the first event that is kept, or of the next one. Undefined: none has arrived yet. */
  #first: Seq | undefined = undefined;
  readonly #subscribers = new Set<Subscriber>();

  get followers(): number {
    return this.#subscribers.size;
  }

  subscribe(deltas: "with" | "without"): Subscriber {
    const subscriber = new Subscriber(this, deltas === "with" ? new DeltaBuffer() : undefined);
    this.#subscribers.add(subscriber);
    return subscriber;
  }

  unsubscribe(subscriber: Subscriber): void {
    this.#subscribers.delete(subscriber);
    subscriber.wake();
  }

  push(events: readonly Recorded[]): void {
    for (const event of events) this.#keep(event);
    this.wake();
  }

  reset(): void {
    this.resets += 1;
    this.#tail.clear();
    this.#bytes = 0;
    this.#first = undefined;
    this.wake();
  }

  remove(): void {
    this.removed = true;
    this.reset();
  }

  delta(delta: Delta, at: Seq): void {
    for (const subscriber of this.#subscribers) subscriber.delta(delta, at);
  }

  /** Whether everything after `after` has arrived here, so that the store need not be read. */
  covers(after: Seq): boolean {
    return this.#first !== undefined && this.#first <= after + 1;
  }

  /** The events after `after`. Undefined: some of them are no longer cached, and must be read from the store. */
  after(after: Seq): readonly Recorded[] | undefined {
    const first = this.#first;
    if (first === undefined || after + 1 >= first + this.#tail.length) return NONE;
    // @fault follower-misses-events
    return first > after + 1 ? undefined : this.#tail.from(after + 1 - first).map(({ event }) => event);
  }

  wake(): void {
    for (const subscriber of this.#subscribers) subscriber.wake();
  }

  #keep(event: Recorded): void {
    const bytes = heapBytes(event);
    this.#tail.push({ event, bytes });
    this.#bytes += bytes;
    this.#first ??= event.seq;
    while (this.#tail.length > TAIL_EVENTS_MAX || this.#bytes > TAIL_BYTES_MAX) {
      this.#bytes -= this.#tail.shift()?.bytes ?? 0;
      this.#first += 1;
    }
  }
}

const NONE: readonly Recorded[] = [];

/** One follower: it is woken by new events, and has a buffer of deltas if it wants them. */
export class Subscriber {
  readonly feed: Feed;
  readonly deltas: DeltaBuffer | undefined;
  #wake: (() => void) | undefined = undefined;

  constructor(feed: Feed, deltas: DeltaBuffer | undefined) {
    this.feed = feed;
    this.deltas = deltas;
  }

  delta(delta: Delta, at: Seq): void {
    if (this.deltas === undefined) return;
    this.deltas.add(delta, at);
    this.wake();
  }

  /** Resolves with the next event or delta, and when the subscription ends. */
  woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
