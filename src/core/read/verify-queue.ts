// The part of the history checker that knows the order of the queue.
import type { CancelReason } from "../model/cancel.ts";
import type { RunId, Seq } from "../model/ids.ts";
import type { Delivery } from "../model/prompt.ts";

/** A run that has not begun. */
export interface WaitingCheck {
  readonly id: RunId;
  readonly delivery: Delivery;
  readonly acceptedAt: Seq;
  /** Why it must end without beginning, once a cancel of the session covers it. */
  reason: CancelReason | undefined;
}

/** Adds an accepted run: at the end, unless it interrupts; then after the other interrupts. */
export function joined(queue: readonly WaitingCheck[], run: WaitingCheck): WaitingCheck[] {
  const first = queue.findIndex((one) => one.delivery !== "interrupt");
  return queue.toSpliced(run.delivery !== "interrupt" || first === -1 ? queue.length : first, 0, run);
}

/** Adds a steer that was not taken in, at the position that its acceptance gives it. */
export function returned(queue: readonly WaitingCheck[], run: WaitingCheck): WaitingCheck[] {
  const after = queue.findIndex((one) => one.delivery !== "interrupt" && one.acceptedAt > run.acceptedAt);
  return queue.toSpliced(after === -1 ? queue.length : after, 0, run);
}
