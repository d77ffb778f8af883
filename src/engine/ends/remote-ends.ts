// Ends that another worker records. Its events do not pass through this engine, so a session that it drives and that
// has waiters here is followed in the store: once, however many waiters there are.
//
// Invariants
// 1. A session has at most one follower here, and none without a waiter.
// 2. What a waiter looks up after it has joined, and what the follower reads, leave no gap between them.
import type { Recorded } from "../../core/model/event.ts";
import type { Seq, SessionId } from "../../core/model/ids.ts";
import type { Store } from "../../ports/store.ts";
import type { FollowItem, Following } from "../log/follow.ts";
import type { Stoppable } from "../log/stoppable-generator.ts";
import type { Waiters } from "./waiters.ts";

export interface RemoteParts {
  readonly waiters: Waiters;
  readonly store: Store;
  readonly pages: (
    session: SessionId,
    from: () => Pick<Following, "after" | "signal" | "deltas">,
  ) => Stoppable<readonly FollowItem[]>;
  readonly drives: (session: SessionId) => boolean;
}

export interface RemoteWaiter {
  /** Its end may be in what retention has removed: it must be looked up again. */
  again(): void;
  fail(error: unknown): void;
}

interface Watched {
  readonly waiters: Set<RemoteWaiter>;
  pages: Stoppable<readonly FollowItem[]> | undefined;
  /** Resolves when everything recorded later is read by the follower. */
  ready: Promise<unknown>;
}

export class RemoteEnds {
  readonly #parts: RemoteParts;
  readonly #watched = new Map<SessionId, Watched>();

  constructor(parts: RemoteParts) {
    this.#parts = parts;
  }

  /** From `ready` on the waiter misses no end of this session, whichever worker records it. */
  join(session: SessionId, waiter: RemoteWaiter): { readonly ready: Promise<unknown>; readonly leave: () => void } {
    let watched = this.#watched.get(session);
    if (watched === undefined) {
      watched = { waiters: new Set(), pages: undefined, ready: Promise.resolve() };
      this.#watched.set(session, watched);
    }
    watched.waiters.add(waiter);
    if (watched.pages === undefined && !this.#parts.drives(session)) {
      this.#follow(session, watched, this.#head(session));
    }
    return { ready: watched.ready, leave: () => this.#leave(session, waiter) };
  }

  /** This worker no longer drives the session. `after`: the last position that it knows. */
  fenced(session: SessionId, after: Seq): void {
    const watched = this.#watched.get(session);
    if (watched !== undefined && watched.pages === undefined) this.#follow(session, watched, after);
  }

  /** The current head of its log. */
  async #head(session: SessionId): Promise<Seq> {
    return (await this.#parts.store.session(session))?.head ?? 0;
  }

  #follow(session: SessionId, watched: Watched, after: Seq | Promise<Seq>): void {
    const pages = this.#parts.pages(session, () => ({ after, signal: undefined, deltas: "without" }));
    watched.pages = pages;
    watched.ready = Promise.resolve(after).catch(ignore);
    void this.#read(watched, pages);
  }

  async #read(watched: Watched, pages: Stoppable<readonly FollowItem[]>): Promise<void> {
    try {
      for await (const page of pages) {
        this.#parts.waiters.recorded(page.filter(isRecorded));
        if (page.some(({ type }) => type === "gap")) for (const waiter of [...watched.waiters]) waiter.again();
      }
    } catch (error) {
      for (const waiter of [...watched.waiters]) waiter.fail(error);
    } finally {
      watched.pages = undefined;
    }
  }

  #leave(session: SessionId, waiter: RemoteWaiter): void {
    const watched = this.#watched.get(session);
    watched?.waiters.delete(waiter);
    if (watched === undefined || watched.waiters.size > 0) return;
    this.#watched.delete(session);
    void watched.pages?.return();
  }
}

const isRecorded = (heard: FollowItem): heard is Recorded => "seq" in heard;
const ignore = (): void => {};
