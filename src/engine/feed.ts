// The live end of sessions that somebody follows: recent facts and deltas. Droppable; the log has everything.
import type { Delta } from "../core/delta.ts";
import type { Recorded } from "../core/event.ts";
import type { Seq, SessionId, TurnId } from "../core/ids.ts";
import { DELTA_BYTES_MAX, TAIL_EVENTS_MAX } from "../core/limits.ts";

export class Feeds {
  readonly #feeds = new Map<SessionId, Feed>();
  closed = false;

  /** How many sessions somebody follows. */
  get size(): number {
    return this.#feeds.size;
  }

  open(session: SessionId): Feed {
    let feed = this.#feeds.get(session);
    if (feed === undefined) {
      feed = new Feed();
      this.#feeds.set(session, feed);
    }
    feed.followers += 1;
    return feed;
  }

  close(session: SessionId): void {
    const feed = this.#feeds.get(session);
    if (feed === undefined) return;
    feed.followers -= 1;
    if (feed.followers === 0) this.#feeds.delete(session);
  }

  /** Ends everybody's following. */
  closeAll(): void {
    this.closed = true;
    for (const feed of this.#feeds.values()) feed.wake();
  }

  push(session: SessionId, events: readonly Recorded[]): void {
    this.#feeds.get(session)?.push(events);
  }

  /** What was recorded meanwhile did not come by here: whoever follows must look into the store. */
  reset(session: SessionId): void {
    this.#feeds.get(session)?.reset();
  }

  /** `at`: the last position that is durable; the delta belongs right after it. */
  delta(session: SessionId, delta: Delta, at: Seq): void {
    this.#feeds.get(session)?.delta(delta, at);
  }
}

export class Feed {
  followers = 0;
  /** How often something may have been missed. */
  resets = 0;
  #recent: Recorded[] = [];
  readonly #sleepers = new Set<Sleeper>();
  readonly #ears = new Set<Ear>();

  push(events: readonly Recorded[]): void {
    this.#recent.push(...events);
    if (this.#recent.length > TAIL_EVENTS_MAX) this.#recent = this.#recent.slice(-TAIL_EVENTS_MAX);
    this.wake();
  }

  reset(): void {
    this.resets += 1;
    this.#recent = [];
    this.wake();
  }

  delta(delta: Delta, at: Seq): void {
    if (this.#ears.size === 0) return;
    for (const ear of this.#ears) ear.hear(delta, at);
    this.wake();
  }

  /** Whether everything after `after` has come in here, so that the store need not be asked for it. */
  covers(after: Seq): boolean {
    const first = this.#recent[0];
    return first !== undefined && first.seq <= after + 1;
  }

  /** What has come in after `after`. Undefined: some of it is not here any more; the store has it. */
  after(after: Seq): readonly Recorded[] | undefined {
    const first = this.#recent[0];
    if (first === undefined) return [];
    // @fault follower-misses-events
    return first.seq > after + 1 ? undefined : this.#recent.slice(after + 1 - first.seq);
  }

  /** Somebody who will wait for the next push or delta, again and again; not longer than `signal`, if there is one. */
  sleeper(signal: AbortSignal | undefined): Sleeper {
    const sleeper = new Sleeper(signal, () => this.#sleepers.delete(sleeper));
    this.#sleepers.add(sleeper);
    return sleeper;
  }

  listen(ear: Ear): () => void {
    this.#ears.add(ear);
    return () => this.#ears.delete(ear);
  }

  wake(): void {
    for (const sleeper of this.#sleepers) sleeper.wake();
  }
}

/** One listener on the signal for a whole following: one for each wait would cost more than the wait. */
export class Sleeper {
  readonly #signal: AbortSignal | undefined;
  readonly #left: () => void;
  #wake: (() => void) | undefined = undefined;

  constructor(signal: AbortSignal | undefined, left: () => void) {
    this.#signal = signal;
    this.#left = left;
    signal?.addEventListener("abort", this);
  }

  /** Resolves at the next push or delta, or when the signal aborts. */
  woken(): Promise<void> {
    if (this.#signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Called by the signal. */
  handleEvent(): void {
    this.wake();
  }

  leave(): void {
    this.#signal?.removeEventListener("abort", this);
    this.#left();
  }
}

/** The deltas waiting for one follower: bounded, oldest dropped first. */
export class Ear {
  #waiting: Heard[] = [];
  #bytes = 0;
  dropped = 0;

  hear(delta: Delta, at: Seq): void {
    this.#waiting.push({ delta, at });
    this.#bytes += sizeOf(delta);
    while (this.#bytes > DELTA_BYTES_MAX) {
      const oldest = this.#waiting.shift();
      if (oldest === undefined) break;
      this.#bytes -= sizeOf(oldest.delta);
      this.dropped += 1;
    }
  }

  get empty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Forgets what a turn said that is in the log by now. */
  forget(turn: TurnId): void {
    this.#waiting = this.#waiting.filter(({ delta }) => delta.type !== "delta" || delta.turnId !== turn);
    this.#count();
  }

  /** What belongs before the event at `seq`; without one, all there is. */
  take(seq: Seq = Number.POSITIVE_INFINITY): readonly Delta[] {
    const first = this.#waiting[0];
    if (first === undefined || first.at >= seq) return NONE;
    const end = this.#waiting.findIndex(({ at }) => at >= seq);
    const taken = this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
    this.#count();
    return taken.map(({ delta }) => delta);
  }

  #count(): void {
    this.#bytes = this.#waiting.reduce((sum, { delta }) => sum + sizeOf(delta), 0);
  }
}

interface Heard {
  readonly delta: Delta;
  readonly at: Seq;
}

const sizeOf = (delta: Delta): number =>
  2 * (delta.type === "delta" ? delta.text.length : JSON.stringify(delta).length);

const NONE: readonly Delta[] = [];
