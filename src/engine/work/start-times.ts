// Start times of a live run and its calls. Kept in memory for sessions driven here, so that an explanation needs no
// store; otherwise read from the log.

import { PAGE_EVENTS_MAX } from "../../core/limits.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { CallId, RunId, Seq } from "../../core/model/ids.ts";
import type { Run } from "../../core/model/run.ts";
import type { Store } from "../../ports/store.ts";
import type { SessionState } from "../log/session-state.ts";

/** Wall clock, ms. */
export type Times = ReadonlyMap<RunId | CallId, number>;

/** How far back calls are searched: a call that began earlier in such a long run has no start time. */
const LOOK_BACK_EVENTS = 16 * PAGE_EVENTS_MAX;

/** Notes when the live run began. Calls know their own times. */
export function noteTimes(lane: SessionState, events: readonly Recorded[]): void {
  for (const event of events) {
    if (event.type === "run.started" || event.type === "run.recovered") lane.runSince = event.at;
    else if (event.type === "run.settled") lane.runSince = undefined;
  }
}

/** If the store fails, the times are missing, but the explanation succeeds. */
export async function runningSince(store: Store, lane: SessionState): Promise<Times> {
  const { live } = lane.durable;
  const times = new Map<RunId | CallId, number>();
  if (live === undefined) return times;
  if (lane.runSince !== undefined) {
    times.set(live.id, lane.runSince);
    for (const { id, since } of lane.works) if (since !== undefined) times.set(id as CallId, since);
    return times;
  }
  await readTimes(store, lane, times).catch(() => undefined);
  return times;
}

async function readTimes(
  store: Store,
  { id, durable }: SessionState,
  times: Map<RunId | CallId, number>,
): Promise<void> {
  const { live, head } = durable;
  if (live === undefined) return;
  const wanted = new Set<CallId>(live.live.map((call) => call.id));
  let after = live.acceptedAt - 1;
  while (after < head) {
    const { events, gapTo } = await store.read(id, { after, limit: PAGE_EVENTS_MAX });
    for (const event of events) note(times, event, { run: live, wanted });
    // An empty page is the end, whatever the head is.
    const last: Seq = events.at(-1)?.seq ?? gapTo ?? head;
    // The start of the run is near its acceptance, and live calls are near the end.
    after = Math.max(last, times.has(live.id) ? head - LOOK_BACK_EVENTS : last);
  }
}

type Read = Awaited<ReturnType<Store["read"]>>["events"][number];

function note(
  times: Map<RunId | CallId, number>,
  event: Read,
  { run, wanted }: { readonly run: Run; readonly wanted: ReadonlySet<CallId> },
): void {
  const began = event.type === "run.started" || event.type === "run.recovered";
  if (began && event.runId === run.id) times.set(run.id, event.at);
  if (event.type === "call.requested" && wanted.has(event.callId)) times.set(event.callId, event.at);
}
