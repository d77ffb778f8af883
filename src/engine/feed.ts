// The live end of sessions that somebody follows: recent facts and deltas. Droppable; the log has everything.
import type { Recorded } from "../core/event.ts";
import type { RunId, Seq, SessionId, TurnId } from "../core/ids.ts";
import { DELTA_BYTES_MAX, TAIL_EVENTS_MAX } from "../core/limits.ts";

/** A live-only fragment. May be dropped; never needed to rebuild anything. */
export interface Delta {
  readonly type: "delta";
  readonly runId: RunId;
  readonly turnId: TurnId;
  readonly text: string;
}

export class Feeds {
  readonly #feeds = new Map<SessionId, Feed>();
  closed = false;

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

  delta(session: SessionId, delta: Delta): void {
    this.#feeds.get(session)?.delta(delta);
  }
}

export class Feed {
  followers = 0;
  #recent: Recorded[] = [];
  readonly #wakers = new Set<() => void>();
  readonly #ears = new Set<Ear>();

  push(events: readonly Recorded[]): void {
    this.#recent.push(...events);
    if (this.#recent.length > TAIL_EVENTS_MAX) this.#recent = this.#recent.slice(-TAIL_EVENTS_MAX);
    this.wake();
  }

  delta(delta: Delta): void {
    if (this.#ears.size === 0) return;
    for (const ear of this.#ears) ear.hear(delta);
    this.wake();
  }

  /** What has come in after `after`. Undefined: some of it is not here any more; the store has it. */
  after(after: Seq): readonly Recorded[] | undefined {
    const first = this.#recent[0];
    if (first === undefined) return [];
    return first.seq > after + 1 ? undefined : this.#recent.slice(after + 1 - first.seq);
  }

  /** Resolves at the next push or delta, or when `signal` aborts. */
  next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#wakers.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.#wakers.add(done);
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
    });
  }

  listen(ear: Ear): () => void {
    this.#ears.add(ear);
    return () => this.#ears.delete(ear);
  }

  wake(): void {
    for (const wake of [...this.#wakers]) wake();
  }
}

/** The deltas waiting for one follower: bounded, oldest dropped first. */
export class Ear {
  #waiting: Delta[] = [];
  #bytes = 0;
  dropped = 0;

  hear(delta: Delta): void {
    this.#waiting.push(delta);
    this.#bytes += delta.text.length * 2;
    while (this.#bytes > DELTA_BYTES_MAX) {
      const oldest = this.#waiting.shift();
      if (oldest === undefined) break;
      this.#bytes -= oldest.text.length * 2;
      this.dropped += 1;
    }
  }

  /** Forgets what a turn said that is in the log by now. */
  forget(turn: TurnId): void {
    this.#waiting = this.#waiting.filter((delta) => delta.turnId !== turn);
    this.#bytes = this.#waiting.reduce((sum, delta) => sum + delta.text.length * 2, 0);
  }

  take(): readonly Delta[] {
    if (this.#waiting.length === 0) return NONE;
    const taken = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    return taken;
  }
}

const NONE: readonly Delta[] = [];
