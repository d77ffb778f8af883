// Logs of a given length, written as a long life would have written them.
import type { Event } from "../../src/core/model/event.ts";
import type { RunId, SessionId } from "../../src/core/model/ids.ts";
import { emptyLane, evolve, type Lane } from "../../src/core/model/lane.ts";
import type { Store } from "../../src/ports/store.ts";

const TEXT = "A turn's text of ordinary length, as it would stand in a log of a working day.";

function pastRun(session: SessionId, index: number): readonly Event[] {
  const suffix = `${session.slice(4)}x${index}`;
  const runId: RunId = `run_${suffix}`;
  const turnId = `turn_${suffix}.1` as const;
  return [
    { type: "run.accepted", runId, prompt: { text: "Do the next thing." }, delivery: "queue" },
    { type: "run.started", runId },
    { type: "turn.requested", runId, turnId },
    { type: "turn.settled", runId, turnId, outcome: { kind: "completed" }, next: "end", text: TEXT },
    { type: "run.settled", runId, outcome: { kind: "completed" } },
  ];
}

/** A session of about `events` events; `open` leaves a run live at its end. */
export async function writeHistory(
  store: Store,
  session: SessionId,
  events: number,
  open: "open" | "closed",
): Promise<void> {
  let lane: Lane = emptyLane(session);
  let batch: Event[] = [{ type: "session.created", sessionId: session }];
  // The last stretch has no snapshot: a load has as much to fold as it ever has.
  const flush = async (last: "snapshot" | "tail"): Promise<void> => {
    const expected = lane.head;
    for (const event of batch) lane = evolve(lane, event);
    await store.append({ session, expected, events: batch, at: 1, ...(last === "snapshot" ? { snapshot: lane } : {}) });
    batch = [];
  };
  for (let index = 0; lane.head + batch.length < events; index += 1) {
    batch.push(...pastRun(session, index));
    if (batch.length >= 250 && lane.head + batch.length < events - 250) await flush("snapshot");
  }
  if (open === "open") batch.push(...pastRun(session, events).slice(0, 3));
  if (batch.length > 0) await flush("tail");
}
