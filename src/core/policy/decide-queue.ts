// Changes of the queue by its users. Each is atomic against the start of a run (G6).

import { QUEUE_BYTES_MAX } from "../limits.ts";
import type { CancelReason } from "../model/cancel.ts";
import type { CommandOf, QueuePlace, QueueReceipt, Refused } from "../model/command.ts";
import type { Event } from "../model/event.ts";
import type { RunId } from "../model/ids.ts";
import type { Lane, Waiting } from "../model/lane.ts";
import { promptBytes } from "../model/prompt.ts";
import { settledRun } from "../read/run-end.ts";
import type { Decided } from "./decide-run.ts";

/** Applies to steers too: the live run takes in the new text. */
export function editQueued(lane: Lane, { runId, prompt }: CommandOf<"edit">): Decided<QueueReceipt> {
  return changeWaiting(lane, runId, () => {
    const isOther = (run: Waiting): boolean => run.id !== runId;
    const others = { ...lane, queue: lane.queue.filter(isOther), steers: lane.steers.filter(isOther) };
    if (queueBytes(others) + promptBytes(prompt) <= QUEUE_BYTES_MAX) {
      return changed(lane, [{ type: "run.edited", runId, prompt }]);
    }
    return nothing(refused("queue_full", `The prompts waiting in ${lane.id} would exceed ${QUEUE_BYTES_MAX} bytes.`));
  });
}

/** A steer that is moved becomes a queued run at that place. */
export function moveQueued(lane: Lane, { runId, to }: CommandOf<"move">): Decided<QueueReceipt> {
  return changeWaiting(lane, runId, () => {
    if (typeof to === "object" && to.before === runId) return nothing({ kind: "unchanged" });
    const rest = lane.queue.filter((run) => run.id !== runId);
    const index = placeIndex(rest, to);
    if (index === -1) return nothing({ kind: "unknown" });
    if (lane.queue[index]?.id === runId) return nothing({ kind: "unchanged" });
    const moved: Event = { type: "run.moved", runId, index };
    return changed(lane, isSteer(lane, runId) ? [{ type: "run.requeued", runId }, moved] : [moved]);
  });
}

export function withdraw(lane: Lane, { runId, reason }: CommandOf<"withdraw">): Decided<QueueReceipt> {
  return changeWaiting(lane, runId, (run) => changed(lane, [withdrawn(run, reason)]));
}

/** The run stays queued unless the live run will have another turn. */
export function steerQueued(lane: Lane, { runId }: CommandOf<"steer">): Decided<QueueReceipt> {
  return changeWaiting(lane, runId, () => {
    if (lane.live?.phase !== "running" || isSteer(lane, runId)) return nothing({ kind: "unchanged" });
    return changed(lane, [{ type: "run.steered", runId }]);
  });
}

function changeWaiting(lane: Lane, id: RunId, change: (run: Waiting) => Decided<QueueReceipt>): Decided<QueueReceipt> {
  const run = [...lane.steers, ...lane.queue].find((one) => one.id === id);
  if (run !== undefined) return change(run); // @fault edit-after-start
  return nothing({ kind: lane.live?.id === id ? "started" : "unknown" });
}

const isSteer = (lane: Lane, id: RunId): boolean => lane.steers.some((run) => run.id === id);

function placeIndex(rest: readonly Waiting[], to: QueuePlace): number {
  if (to === "front") return 0;
  if (to === "back") return rest.length;
  return rest.findIndex((run) => run.id === to.before);
}

const changed = (lane: Lane, events: readonly Event[]): Decided<QueueReceipt> => ({
  events,
  // The change itself is the last event.
  answer: { kind: "changed", seq: lane.head + events.length },
});

export const nothing = <A>(answer: A): Decided<A> => ({ events: [], answer });
export const refused = (code: Refused["code"], message: string): Refused => ({ kind: "refused", code, message });
export const withdrawn = (run: Pick<Waiting, "id" | "key">, reason: CancelReason): Event =>
  settledRun(run, { kind: "cancelled", reason });

export const queueBytes = (lane: Lane): number => sumBytes(lane.queue) + sumBytes(lane.steers);
const sumBytes = (runs: readonly Waiting[]): number => runs.reduce((sum, run) => sum + run.bytes, 0);
