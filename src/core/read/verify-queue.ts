// The part of the history checker that knows who stands where in the queue.
import type { CancelReason } from "../model/cancel.ts";
import type { RunId, Seq } from "../model/ids.ts";
import type { Delivery } from "../model/prompt.ts";

/** A run that has not begun. */
export interface WaitingCheck {
  readonly id: RunId;
  readonly delivery: Delivery;
  readonly acceptedAt: Seq;
  /** Why it must end without beginning, once a cancel of the session has named it. */
  reason: CancelReason | undefined;
}

/** One that was just accepted: behind all others, unless it interrupts; then behind those that do. */
export function joined(queue: readonly WaitingCheck[], run: WaitingCheck): WaitingCheck[] {
  const first = queue.findIndex((one) => one.delivery !== "interrupt");
  return queue.toSpliced(run.delivery !== "interrupt" || first === -1 ? queue.length : first, 0, run);
}

/** One that could not be taken in: where it would have stood, had it waited. */
export function returned(queue: readonly WaitingCheck[], run: WaitingCheck): WaitingCheck[] {
  const after = queue.findIndex((one) => one.delivery !== "interrupt" && one.acceptedAt > run.acceptedAt);
  return queue.toSpliced(after === -1 ? queue.length : after, 0, run);
}
