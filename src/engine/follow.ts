// Everything after a position, and then everything as it happens. Every subscriber reads through here.
import type { Recorded } from "../core/event.ts";
import type { Seq, SessionId } from "../core/ids.ts";
import { PAGE_EVENTS_MAX } from "../core/limits.ts";
import type { Store } from "../ports.ts";
import { type Delta, Ear, type Feed, type Feeds, type Sleeper } from "./feed.ts";

/** Said once, in place of events that retention has removed: the next event follows `to`. */
export interface Gap {
  readonly type: "gap";
  readonly from: Seq;
  readonly to: Seq;
}

export interface Following {
  /** May be known only later; what happens until then is not missed. */
  readonly after: Seq | Promise<Seq>;
  /** Ends the following while it waits. Whoever leaves between two events need not have one. */
  readonly signal: AbortSignal | undefined;
  /** With deltas: the text of live turns as it comes. */
  readonly deltas: "with" | "without";
  /** Whether this worker drives the session; else only the store knows that it grows. */
  readonly drives: () => boolean;
  /** What the live turn has said so far. */
  readonly said: () => { readonly delta: Delta; readonly at: Seq } | undefined;
}

/**
 * Yields each event once, in order, without gaps, until `signal` aborts.
 *
 * There is no buffer of events to overflow: a slow reader reads later pages later, and slows nobody.
 */
export async function* follow(
  store: Store,
  feeds: Feeds,
  session: SessionId,
  following: Following,
): AsyncGenerator<Recorded | Delta | Gap, void> {
  const { signal } = following;
  // The feed is opened before the first read, so nothing falls between history and live tail.
  const feed = feeds.open(session);
  const ear = new Ear();
  const sleeper = feed.sleeper(signal);
  const stopListening = following.deltas === "with" ? listen(feed, ear, following) : undefined;
  try {
    let cursor = await following.after;
    let caughtUp = feed.covers(cursor);
    let { resets } = feed;
    while (signal?.aborted !== true && !feeds.closed) {
      if (feed.resets !== resets) caughtUp = false;
      resets = feed.resets;
      const near = feed.after(cursor);
      if (!caughtUp || near === undefined) {
        const page = await store.read(session, { after: cursor, limit: PAGE_EVENTS_MAX });
        if (page.gapTo !== undefined && page.gapTo > cursor) {
          yield { type: "gap", from: cursor + 1, to: page.gapTo };
          cursor = page.gapTo;
        }
        caughtUp = page.events.length === 0;
        for (const event of page.events) {
          cursor = event.seq;
          if (event.type === "turn.settled") ear.forget(event.turnId);
          for (const delta of ear.take(event.seq)) yield delta;
          yield event;
        }
        continue;
      }
      for (const event of near) {
        cursor = event.seq;
        for (const delta of ear.take(event.seq)) yield delta;
        yield event;
      }
      const said = ear.take();
      for (const delta of said) yield delta;
      // Not `yield*`, which waits even for nothing: between the look and the wait nothing may come in unnoticed.
      if (near.length === 0 && said.length === 0)
        caughtUp = await grown(store, sleeper, session, { ...following, after: cursor });
    }
  } finally {
    stopListening?.();
    sleeper.leave();
    feeds.close(session);
  }
}

/** Whoever joins in the middle of a turn first hears what was said before, in one piece. */
function listen(feed: Feed, ear: Ear, following: Following): () => void {
  const said = following.said();
  if (said !== undefined) ear.hear(said.delta, said.at);
  return feed.listen(ear);
}

/** Waits until there may be more. False: the store must be asked, since another worker writes. */
async function grown(
  store: Store,
  sleeper: Sleeper,
  session: SessionId,
  following: Following & { readonly after: Seq },
): Promise<boolean> {
  if (following.drives()) {
    await sleeper.sleep();
    return true;
  }
  // Either may come first; the other must not be left waiting for ever.
  const either = new AbortController();
  const signal = following.signal === undefined ? either.signal : AbortSignal.any([following.signal, either.signal]);
  await Promise.race([sleeper.sleep(), store.grown(session, following.after, signal)]);
  either.abort(OVER);
  return false;
}

/** A reason of our own: without one, each abort makes an error with a stack, for nobody. */
export const OVER = { name: "Over", message: "Nobody follows any more." } as const;
