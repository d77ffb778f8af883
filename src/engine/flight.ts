// One batch on its way to the store: how it is sent, and how it is found in the log.
import type { Event, Recorded } from "../core/event.ts";
import { PAGE_EVENTS_MAX, SNAPSHOT_EVENTS } from "../core/limits.ts";
import type { Batch, Store } from "../ports.ts";
import type { Entry, Flight, LiveLane } from "./live-lane.ts";

export function batchOf(lane: LiveLane, { events, after, at }: Flight): Batch {
  return {
    session: lane.id,
    expected: lane.durable.head,
    events,
    at,
    ...(lane.epoch === undefined ? {} : { epoch: lane.epoch }),
    ...(after.head - lane.snapshotAt >= SNAPSHOT_EVENTS ? { snapshot: after } : {}),
  };
}

/** Its events as the log has them. */
export function numbered(lane: LiveLane, { events, at }: Flight): readonly Recorded[] {
  const first = lane.durable.head + 1;
  return events.map((event, index): Recorded => ({ ...event, seq: first + index, at }));
}

/** What is in the log after the last position known here. */
export async function readNews(store: Store, lane: LiveLane): Promise<readonly Recorded[]> {
  const news: Recorded[] = [];
  for (;;) {
    const after = news.at(-1)?.seq ?? lane.durable.head;
    // @fault catch-up-ends-at-a-short-page:read
    const { events } = await store.read(lane.id, { after, limit: PAGE_EVENTS_MAX });
    if (events.length === 0) return news;
    news.push(...events); // @fault catch-up-ends-at-a-short-page
  }
}

/**
 * How many of these entries, from the first on, the log has behind the position they were decided on. A batch is
 * written as a whole, but it may have been sent again with others. Ids are made once, so the ids in events suffice.
 */
export function writtenOf(entries: readonly Entry[], read: readonly Recorded[]): number {
  let found = 0;
  let at = 0;
  for (const [index, { events }] of entries.entries()) {
    if (!events.every((event, offset) => nameOf(event) === nameOf(read[at + offset]))) return found;
    at += events.length;
    // One without events counts if one behind it is there.
    if (events.length > 0) found = index + 1;
  }
  return found;
}

const nameOf = (event: Event | undefined): string =>
  JSON.stringify(event, ["type", "runId", "turnId", "callId", "questionId", "processId", "covers"]) ?? "";
