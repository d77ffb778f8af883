// All events after a position, then new events as they are recorded. Every subscriber reads through here.
//
// Invariants
// 1. Each event once, in order, without gaps; with deltas between them on request.
// 2. Backpressure: there is no buffer of events that can overflow. A slow follower reads later pages later, delays
//    nothing else, and holds one page, bounded in bytes.
// 3. A follower that left, or whose signal aborted, receives nothing more and holds nothing (`stoppable-generator.ts`).

import { PAGE_CHARS_MAX, PAGE_EVENTS_MAX } from "../../core/limits.ts";
import type { Delta, Gap } from "../../core/model/delta.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { Seq, SessionId, TurnId } from "../../core/model/ids.ts";
import { heapBytes } from "../../core/size.ts";
import type { Store } from "../../ports/store.ts";
import type { DeltaBuffer } from "./delta-buffer.ts";
import type { Feeds, Subscriber } from "./feed.ts";
import { type Stop, Stoppable } from "./stoppable-generator.ts";

export interface Following {
  /** May be resolved later; events until then are not missed. */
  readonly after: Seq | Promise<Seq>;
  /** Ends the subscription. Not needed by a follower that leaves between two events. */
  readonly signal: AbortSignal | undefined;
  /** With deltas: the text of live turns as it is produced. */
  readonly deltas: "with" | "without";
  /** Whether this worker drives the session; otherwise only the store notices that it grows. */
  readonly drives: () => boolean;
  /** The text of the live turn so far. */
  readonly outputSoFar: () => { readonly delta: Delta; readonly at: Seq } | undefined;
}

/** The items of a follower: events in order, with deltas between them. */
export type FollowItem = Recorded | Delta | Gap;

/** Yields pages of the events available, until `signal` aborts. */
export function followPages(
  store: Store,
  feeds: Feeds,
  session: SessionId,
  following: () => Following,
): Stoppable<readonly FollowItem[]> {
  return new Stoppable((stop) => pages(store, feeds, session, following(), stop));
}

async function* pages(
  store: Store,
  feeds: Feeds,
  session: SessionId,
  following: Following,
  stop: Stop,
): AsyncGenerator<readonly FollowItem[], void> {
  stop.when(following.signal);
  if (stop.stopped) return;
  // Subscribed before the first read, so that no event is lost between history and live tail.
  const subscriber = subscribe(feeds, session, following);
  stop.onStop(() => {
    feeds.unsubscribe(session, subscriber); // @fault feed-left-open, leak-listener
  });
  const { feed, deltas } = subscriber;
  const log = boundedLog(store);
  let cursor = await following.after;
  let caughtUp = feed.covers(cursor);
  let { resets } = feed;
  while (!stop.stopped && !feeds.closed && !feed.removed) {
    if (feed.resets !== resets) caughtUp = false;
    resets = feed.resets;
    const near = feed.after(cursor);
    if (!caughtUp || near === undefined) {
      // @fault event-skipped-at-the-page-edge, gap-told-again-at-the-next-page:page
      // @fault short-page-taken-for-the-end:page
      const page = await log.read(session, { after: cursor, limit: PAGE_EVENTS_MAX });
      const { gapTo = 0 } = page;
      if (gapTo > cursor) {
        yield [{ type: "gap", from: cursor + 1, to: gapTo }]; // @fault gap-not-announced, gap-told-twice
        cursor = gapTo;
      }
      caughtUp = page.events.length === 0; // @fault short-page-taken-for-the-end
      deltas?.forget(settledTurns(page.events));
      cursor = page.events.at(-1)?.seq ?? cursor; // @fault gap-told-again-at-the-next-page
      if (!caughtUp) yield withDeltas(page.events, deltas);
      continue;
    }
    cursor = near.at(-1)?.seq ?? cursor;
    const heard = withDeltas(near, deltas, "all");
    if (heard.length > 0) yield heard;
    // No `await` between reading the feed and waiting, so that no event is missed.
    else if (following.drives()) await subscriber.woken();
    else {
      await grown(store, subscriber, session, cursor);
      caughtUp = false;
    }
  }
  // A busy follower also gets what was recorded before the end. The store may be closed.
  const last = feed.covers(cursor) ? (feed.after(cursor) ?? []) : [];
  const heard = withDeltas(last, deltas, "all");
  if (heard.length > 0) yield heard;
}

/** A follower that joins during a turn first gets the text so far, in one piece. */
function subscribe(feeds: Feeds, session: SessionId, { deltas, outputSoFar }: Following): Subscriber {
  const subscriber = feeds.subscribe(session, deltas);
  const before = deltas === "with" ? outputSoFar() : undefined;
  if (before !== undefined) subscriber.deltas?.add(before.delta, before.at);
  return subscriber;
}

/** Limits the pages of a store to what a follower may hold in memory. */
const boundedLog = (store: Store): Pick<Store, "read"> => ({
  read: async (session, range) => {
    const { events, ...gap } = await store.read(session, range);
    return { events: bounded(events), ...gap };
  },
});

/** At least one event, however large it is. The others are read again later. */
function bounded(events: readonly Recorded[]): readonly Recorded[] {
  let bytes = 0;
  const end = events.findIndex((event, index) => {
    bytes += heapBytes(event);
    return index > 0 && bytes > 2 * PAGE_CHARS_MAX;
  });
  return end === -1 ? events : events.slice(0, end);
}

function settledTurns(events: readonly Recorded[]): ReadonlySet<TurnId> {
  const turns = new Set<TurnId>();
  for (const event of events) if (event.type === "turn.settled") turns.add(event.turnId);
  return turns;
}

/** Puts deltas before the event that they precede; with `all`, also those after the last event. */
function withDeltas(
  events: readonly Recorded[],
  deltas: DeltaBuffer | undefined,
  which: "between" | "all" = "between",
): readonly FollowItem[] {
  if (deltas === undefined || deltas.empty) return events;
  if (events.length === 0) return which === "all" ? deltas.take() : events;
  const heard: FollowItem[] = [];
  for (const event of events) heard.push(...deltas.take(event.seq), event);
  if (which === "all") heard.push(...deltas.take());
  return heard;
}

/** Waits until the session may have grown, by the writes of another worker. */
async function grown(store: Store, subscriber: Subscriber, session: SessionId, after: Seq): Promise<void> {
  // Either may come first; the other must not stay pending forever.
  const either = new AbortController();
  await Promise.race([subscriber.woken(), store.grown(session, after, either.signal)]);
  either.abort(OVER);
}

/** A constant reason: without one, each abort creates an error with a stack that is never read. */
export const OVER = { name: "Over", message: "The follower has left." } as const;
