// Everything after a position, and then everything as it happens. Every subscriber reads through here.
import type { Delta, Gap } from "../core/delta.ts";
import type { Recorded } from "../core/event.ts";
import type { Seq, SessionId } from "../core/ids.ts";
import { PAGE_EVENTS_MAX } from "../core/limits.ts";
import type { Store } from "../ports.ts";
import { Ear, type Feed, type Feeds, type Sleeper } from "./feed.ts";

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

/** What a follower is given: facts in their order, with what was said between them. */
export type Heard = Recorded | Delta | Gap;

/**
 * Yields each event once, in order, without gaps, as many at a time as there are, until `signal` aborts.
 *
 * There is no buffer of events to overflow: a slow reader reads later pages later, and slows nobody.
 */
export async function* followPages(
  store: Store,
  feeds: Feeds,
  session: SessionId,
  following: Following,
): AsyncGenerator<readonly Heard[], void> {
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
        // @fault event-skipped-at-the-page-edge, gap-told-again-at-the-next-page:page
        // @fault short-page-taken-for-the-end:page
        const page = await store.read(session, { after: cursor, limit: PAGE_EVENTS_MAX });
        const { gapTo = 0 } = page;
        if (gapTo > cursor) {
          yield [{ type: "gap", from: cursor + 1, to: gapTo }]; // @fault gap-not-announced, gap-told-twice
          cursor = gapTo;
        }
        caughtUp = page.events.length === 0; // @fault short-page-taken-for-the-end
        for (const event of page.events) if (event.type === "turn.settled") ear.forget(event.turnId);
        cursor = page.events.at(-1)?.seq ?? cursor; // @fault gap-told-again-at-the-next-page
        if (!caughtUp) yield withDeltas(page.events, ear);
        continue;
      }
      cursor = near.at(-1)?.seq ?? cursor;
      const heard = [...withDeltas(near, ear), ...ear.take()];
      if (heard.length > 0) yield heard;
      // Between the look and the wait nothing may come in unnoticed.
      else caughtUp = await grown(store, sleeper, session, { ...following, after: cursor });
    }
    // What was recorded before the end is told also to whoever was busy with something else. The store may be closed.
    const last = signal?.aborted !== true && feed.covers(cursor) ? feed.after(cursor) : undefined;
    const heard = last === undefined ? [] : [...withDeltas(last, ear), ...ear.take()];
    if (heard.length > 0) yield heard;
  } finally {
    stopListening?.();
    sleeper.leave(); // @fault follower-listens-for-ever
    feeds.close(session); // @fault feed-left-open, leak-listener
  }
}

export async function* oneByOne(pages: AsyncGenerator<readonly Heard[], void>): AsyncGenerator<Heard, void> {
  for await (const page of pages) for (const heard of page) yield heard;
}

/** Each event with what was said before it. */
function withDeltas(events: readonly Recorded[], ear: Ear): readonly Heard[] {
  return ear.empty ? events : events.flatMap((event) => [...ear.take(event.seq), event]);
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
    await sleeper.woken();
    return true;
  }
  // Either may come first; the other must not be left waiting for ever. The sleeper is woken by the follower's signal.
  const either = new AbortController();
  await Promise.race([sleeper.woken(), store.grown(session, following.after, either.signal)]);
  either.abort(OVER);
  return false;
}

/** A reason of our own: without one, each abort makes an error with a stack, for nobody. */
export const OVER = { name: "Over", message: "Nobody follows any more." } as const;
