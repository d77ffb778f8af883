// The latest events of all sessions, for followers of a whole server over one connection.
//
// Invariants
// 1. Nothing is kept before the first follower: without followers the feed costs nothing.
// 2. What is kept is bounded, in number and in size. A follower has no buffer, only a position.
// 3. A follower that has fallen behind gets one `missed` item, and continues with the newest events.

import { ALL_SESSIONS_CHARS_MAX, ALL_SESSIONS_EVENTS_MAX } from "../../core/limits.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { SessionId } from "../../core/model/ids.ts";
import { heapBytes } from "../../core/size.ts";
import type { AllSessionsEvent } from "../../ports/control.ts";
import { type Stop, Stoppable } from "./stoppable-generator.ts";

interface Kept {
  readonly sessionId: SessionId;
  readonly event: Recorded;
  readonly chars: number;
}

export interface Watching {
  readonly after: string | undefined;
  /** The prefix of the ids of its sessions. */
  readonly prefix: string;
  readonly signal: AbortSignal | undefined;
}

export class AllSessionsFeed {
  readonly #life: string;
  #kept: Kept[] = [];
  #chars = 0;
  /** The position of the first event that is kept. */
  #first = 0;
  #watched = false;
  #closed = false;
  /** Followers that wait for the next event. */
  readonly #watchers = new Set<Watcher>();

  /** `life`: identifies this worker; cursors of another one are unknown here. */
  constructor(life: string) {
    this.#life = life;
  }

  get kept(): number {
    return this.#kept.length;
  }

  push(sessionId: SessionId, events: readonly Recorded[]): void {
    if (!this.#watched) return;
    for (const event of events) {
      const chars = heapBytes(event) / 2;
      this.#kept.push({ sessionId, event, chars });
      this.#chars += chars;
    }
    this.#shorten();
    this.#wake();
  }

  close(): void {
    this.#closed = true;
    this.#wake();
  }

  watch(watching: Watching): AsyncGenerator<AllSessionsEvent, void> {
    return new Stoppable((stop) => this.#watch(watching, stop));
  }

  async *#watch({ after, prefix, signal }: Watching, stop: Stop): AsyncGenerator<AllSessionsEvent, void> {
    this.#watched = true;
    const watcher = new Watcher();
    stop.when(signal);
    stop.onStop(() => this.#watchers.delete(watcher));
    const asked = after === undefined ? this.#end : this.#position(after);
    let at = asked ?? this.#end;
    // The position comes first, so that a follower that is disconnected before the first event misses nothing either.
    yield { type: asked === undefined ? "missed" : "here", cursor: this.#cursor(at) };
    while (!stop.stopped && !this.#closed) {
      if (at < this.#first) {
        at = this.#end;
        yield { type: "missed", cursor: this.#cursor(at) };
      }
      if (at === this.#end) await this.#grown(watcher);
      // Not an iterator over the list, which may be shortened while the follower is busy.
      for (let next = this.#at(at); next !== undefined && !this.#closed; next = this.#at(at)) {
        at += 1;
        const { sessionId, event } = next;
        if (sessionId.startsWith(prefix)) yield { type: "event", cursor: this.#cursor(at), sessionId, event };
      }
    }
  }

  get #end(): number {
    return this.#first + this.#kept.length;
  }

  #at(position: number): Kept | undefined {
    return this.#kept[position - this.#first];
  }

  #cursor(position: number): string {
    return `${this.#life}.${position}`;
  }

  /** Undefined: the cursor is of another worker, or no longer kept. */
  #position(cursor: string): number | undefined {
    const dot = cursor.lastIndexOf(".");
    const position = Number(cursor.slice(dot + 1));
    const ours = cursor.slice(0, dot) === this.#life && Number.isInteger(position);
    return ours && position >= this.#first && position <= this.#end ? position : undefined;
  }

  /** Drops half of the list at once: dropping one per event would move the whole list each time. */
  #shorten(): void {
    if (this.#kept.length <= ALL_SESSIONS_EVENTS_MAX && this.#chars <= ALL_SESSIONS_CHARS_MAX) return;
    let drop = 0;
    for (const { chars } of this.#kept) {
      if (this.#kept.length - drop <= ALL_SESSIONS_EVENTS_MAX / 2 && this.#chars <= ALL_SESSIONS_CHARS_MAX / 2) break;
      this.#chars -= chars;
      drop += 1;
    }
    this.#kept = this.#kept.slice(drop);
    this.#first += drop;
  }

  #grown(watcher: Watcher): Promise<void> {
    this.#watchers.add(watcher);
    return new Promise((resolve) => {
      watcher.wake = resolve;
    });
  }

  #wake(): void {
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    for (const { wake } of watchers) wake();
  }
}

/** A follower that waits for the next event. */
class Watcher {
  wake: () => void = () => undefined;
}
