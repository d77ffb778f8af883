// Events that follow from other events, whatever command caused them: a new turn takes in steers and the inbox, the end
// of a run requeues its steers, no process outlives its call, and a result may begin a run.

import type { Event } from "../model/event.ts";
import { type RunId, runOf, type TurnId, wakeRunId } from "../model/ids.ts";
import { type PendingItem, takeable, wakes } from "../model/inbox.ts";
import { evolve, type Lane } from "../model/lane.ts";
import { settledRun } from "../read/run-end.ts";
import { withProcesses } from "./decide-process.ts";
import type { Decided } from "./decide-run.ts";

/** Adds everything that follows, and leaves the answer as it is. */
export function complete<A>(lane: Lane, decided: Decided<A>): Decided<A> {
  const { events, ...rest } = decided;
  return { events: withWake(lane, withProcesses(lane, events)), ...rest }; // @fault call-settles-before-its-process
}

/** A new turn takes in the steers and the inbox. The end of a run requeues its steers. */
export function follow(lane: Lane, events: readonly Event[]): readonly Event[] {
  const at = events.findIndex((event) => event.type === "turn.requested");
  const turn = events[at];
  if (turn?.type !== "turn.requested") return lane.steers.length === 0 ? events : withRequeued(lane, events);
  const before = events.slice(0, at);
  const items = inboxAfter(lane, before); // @fault own-reminder-missed
  if (lane.steers.length === 0 && items.length === 0) return events;
  // Before the turn, so that the log has the order of the conversation: messages first, then the answer.
  return [...before, ...takeAll(lane, items, turn.turnId), ...events.slice(at)];
}

/** The items that a turn can take once these events are recorded. */
function inboxAfter(lane: Lane, events: readonly Event[]): readonly PendingItem[] {
  if (lane.inbox.length === 0 && !events.some(({ type }) => type === "inbox.added")) return lane.inbox;
  const after = events.reduce(evolve, lane);
  return takeable(after.inbox, after.live);
}

/** A result with `wake` begins a run if no run is live or waiting. One run is enough for the whole inbox. */
function withWake(lane: Lane, events: readonly Event[]): readonly Event[] {
  // @fault no-wake-after-a-busy-run
  const wants = lane.inbox.some(wakes) || events.some((event) => event.type === "inbox.added" && wakes(event));
  if (!wants || events.length === 0) return events;
  const after = events.reduce(evolve, lane);
  // @fault woken-while-busy
  const rests = after.phase === "open" && after.live === undefined && after.queue.length === 0;
  if (!rests || !after.inbox.some(wakes)) return events;
  const runId = wakeRunId(lane.id, after.head + 1);
  return [...events, { type: "run.accepted", runId, prompt: { text: WAKE_TEXT }, delivery: "queue", wake: true }];
}

/** Takes the place of the user's message. */
const WAKE_TEXT = "A background process has ended.";

export function withRequeued(lane: Lane, events: readonly Event[]): readonly Event[] {
  const ended = events.some((event) => event.type === "run.settled" && event.runId === lane.live?.id);
  if (!ended) return events;
  // @fault steer-lost-at-the-end
  return [...events, ...lane.steers.map((run): Event => ({ type: "run.requeued", runId: run.id }))];
}

/** Users' messages come last, after the inbox items. */
export const takeAll = (lane: Lane, items: readonly PendingItem[], id: TurnId): readonly Event[] => [
  ...takeItems(items, id), // @fault steers-pass-the-inbox
  ...takeSteers(lane, runOf(id), id),
];

function takeItems(inbox: readonly PendingItem[], id: TurnId): readonly Event[] {
  if (inbox.length === 0) return [];
  return [{ type: "inbox.taken", runId: runOf(id), turnId: id, items: inbox.map(({ item }) => item) }];
}

/** A steer has its own outcome: it completes by being taken in. */
function takeSteers(lane: Lane, into: RunId, id: TurnId): readonly Event[] {
  return lane.steers.flatMap((run): Event[] => [
    { type: "run.taken", runId: run.id, into, turnId: id },
    // @fault steer-taken-twice, steer-loses-its-identity
    settledRun(run, { kind: "completed", into }),
  ]);
}
