// The work that must be running for a state to hold. Derived rather than stored, so it cannot be lost: after a crash
// the same state has the same demand.
import type { CancelReason } from "../model/cancel.ts";
import type { Event } from "../model/event.ts";
import type { Work } from "../model/ids.ts";
import type { Run } from "../model/run.ts";

export type Effect =
  | { readonly type: "begin"; readonly work: Work }
  | { readonly type: "stop"; readonly work: Work; readonly reason: CancelReason };

export function demand(run: Run): readonly Effect[] {
  switch (run.phase) {
    case "parked":
      return [];
    case "running":
      return [
        ...(run.turn === undefined ? [] : [{ type: "begin", work: run.turn } as const]),
        ...run.live.map(
          (call): Effect =>
            call.phase === "stopping"
              ? { type: "stop", work: call.id, reason: call.reason }
              : { type: "begin", work: call.id },
        ),
      ];
    case "ending": // The turn that requested these calls has ended, so their results are not needed.
      return stopAll(run, { kind: "parent", id: run.id });
    case "stopping":
      return stopAll(run, run.reason);
  }
}

/** The part of the demand that these events may have changed. The rest was demanded before. */
export function demandAfter(run: Run, events: readonly Event[]): readonly Effect[] {
  const touched = new Set<Work>();
  for (const event of events) {
    const works = touchedBy(event);
    if (works === "all") return demand(run);
    for (const work of works) touched.add(work);
  }
  if (touched.size === 0) return NOTHING;
  return demand(run).filter(({ work }) => touched.has(work));
}

function touchedBy(event: Event): readonly Work[] | "all" {
  switch (event.type) {
    case "call.requested":
    case "call.cancel_requested":
      return [event.callId]; // @fault touched-work-overlooked
    case "turn.requested":
      return [event.turnId];
    case "turn.extended":
    case "call.settled":
    case "question.asked":
    case "question.settled":
    case "process.requested":
    case "process.started":
    case "process.detached":
    case "process.cancel_requested":
    case "process.settled":
    case "inbox.added":
    case "inbox.taken":
    case "request.answered":
      return [];
    default:
      return "all";
  }
}

const NOTHING: readonly Effect[] = [];

function stopAll(run: Run, reason: CancelReason): readonly Effect[] {
  const stops: Effect[] = run.live.map((call) => ({
    type: "stop",
    work: call.id,
    // The first reason wins, even for a call that was cancelled before its run.
    reason: call.phase === "stopping" ? call.reason : reason,
  }));
  if (run.turn !== undefined) stops.push({ type: "stop", work: run.turn, reason });
  return stops;
}
