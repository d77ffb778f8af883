// A batch in flight: how it is sent to the store, and how it is found in the log.

import { PAGE_EVENTS_MAX, SNAPSHOT_EVENTS } from "../../core/limits.ts";
import type { Event, Recorded } from "../../core/model/event.ts";
import { memoName } from "../../core/model/memo.ts";
import type { Batch, Store } from "../../ports/store.ts";
import type { Flight, Pending, SessionState } from "./session-state.ts";

/** Whether the batch includes a snapshot: at intervals, and on request. */
export const hasSnapshot = ({ snapshotAt }: SessionState, { after, entries }: Flight): boolean =>
  after.head - snapshotAt >= SNAPSHOT_EVENTS || asksForSnapshot(entries);

export const asksForSnapshot = (entries: readonly Pending[]): boolean =>
  entries.some(({ also }) => also === "snapshot");

export function batchOf(lane: SessionState, flight: Flight): Batch {
  const { entries, events, memos, after, at } = flight;
  const unless = entries.flatMap(unknownMemos);
  return {
    session: lane.id,
    expected: lane.durable.head,
    events,
    at,
    ...(lane.epoch === undefined ? {} : { epoch: lane.epoch }),
    ...(hasSnapshot(lane, flight) ? { snapshot: after } : {}),
    ...(memos.length === 0 ? {} : { memos }),
    ...(unless.length === 0 ? {} : { unless }),
  };
}

/** The memos that an entry was decided without: another worker may have kept them. */
function unknownMemos({ command, events, memos }: Pending): readonly string[] {
  if (command === undefined || events.length + memos.length === 0) return [];
  const { once } = command;
  const answer = once === undefined ? [] : [memoName({ kind: "answer", key: once.key })];
  if (command.type !== "accept" || command.key === undefined) return answer;
  const { key, actor = "" } = command;
  const name = memoName({ kind: "prompt", key, actor });
  return memos.some((change) => change.type === "drop" && change.name === name) ? answer : [...answer, name];
}

/** The events of a batch as they will be in the log. */
export function numbered(lane: SessionState, { events, at }: Flight): readonly Recorded[] {
  const first = lane.durable.head + 1;
  return events.map((event, index): Recorded => ({ ...event, seq: first + index, at }));
}

/** The events in the log after the last position known here. */
export async function readNews(store: Store, lane: SessionState): Promise<readonly Recorded[]> {
  const answered = [...(lane.flight?.entries ?? []), ...lane.pending]
    .flatMap(({ flights = [] }) => flights)
    .filter(({ isAnswered }) => isAnswered);
  const news: Recorded[] = [];
  for (;;) {
    const after = news.at(-1)?.seq ?? lane.durable.head;
    // @fault catch-up-ends-at-a-short-page:read
    const { events } = await store.read(lane.id, { after, limit: PAGE_EVENTS_MAX });
    if (events.length === 0) break;
    news.push(...events); // @fault catch-up-ends-at-a-short-page
  }
  // A batch that was answered before is in what was read, or not in the log.
  for (const flight of answered) flight.isUnwritten = true;
  return news;
}

/**
 * Resolves the entries that were written, instead of deciding them again: a stop would cover what was accepted after
 * it. Returns the others. A batch is written as a whole, as it was sent; its commands may have been decided again
 * since, in another order or another batch.
 */
export function answerWritten(
  lane: SessionState,
  unanswered: readonly Pending[],
  { news, now }: { readonly news: readonly Recorded[]; readonly now: number },
): readonly Pending[] {
  const entries = [...unanswered, ...lane.pending];
  const sent = entries.flatMap(({ flights = [] }) => flights); // @fault late-batch-sought-as-sent-last
  const [landed] = sent.filter((flight) => isIn(news, flight)).sort((a, b) => b.events.length - a.events.length);
  if (landed === undefined) return entries; // @fault lost-answer-decided-again
  lane.durable = { ...lane.durable, memos: lane.durable.memos.with(landed.memos, now) };
  for (const [index, entry] of landed.entries.entries()) entry.resolve(landed.answers[index]);
  return entries.filter((entry) => !landed.entries.includes(entry));
}

/** Ids are made once, so comparing the ids in events suffices. */
const isIn = (news: readonly Recorded[], { events }: Flight): boolean =>
  events.length > 0 && events.every((event, index) => nameOf(event) === nameOf(news[index]));

const nameOf = (event: Event | undefined): string =>
  JSON.stringify(event, ["type", "runId", "turnId", "callId", "questionId", "processId", "covers"]) ?? "";
