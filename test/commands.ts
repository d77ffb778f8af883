// Commands and events in short, for tests of the core.
import type { CancelReason, Outcome } from "../src/core/cancel.ts";
import type { Accept, Command } from "../src/core/command.ts";
import type { CallEnd, Resume, TurnEnd } from "../src/core/decide-run.ts";
import type { Event } from "../src/core/event.ts";
import type { CallId, RunId, TurnId } from "../src/core/ids.ts";

export const user: CancelReason = { kind: "user" };
export const policy: CancelReason = { kind: "policy", note: "too expensive" };
export const completed: Outcome = { kind: "completed" };
export const failed: Outcome = { kind: "failed", code: "model", message: "The model said no." };
export const lost: Outcome = { kind: "lost" };
export const cancelledBy = (reason: CancelReason): Outcome => ({ kind: "cancelled", reason });
export const abandonedBy = (reason: CancelReason, ...names: readonly string[]): Outcome => ({
  kind: "cancelled",
  reason,
  abandoned: names,
});

export const start: Command = { type: "start" };
export const park: Command = { type: "park" };

export function accept(runId: RunId, more: Partial<Omit<Accept, "type" | "runId">> = {}): Accept {
  return { type: "accept", runId, prompt: { text: `prompt of ${runId}` }, delivery: "queue", ...more };
}

/** Accepted, and under way with its first turn. */
export const running = (runId: RunId): readonly Command[] => [accept(runId), start];

export const call = (callId: CallId, name = "tool") => ({ type: "call", callId, name, input: null }) as const;

export function settleTurn(turnId: TurnId, end: Partial<Omit<TurnEnd, "turnId">> = {}) {
  return { type: "settle-turn", end: { turnId, outcome: completed, next: "end", text: "", ...end } } as const;
}

export function settleCall(callId: CallId, end: Partial<Omit<CallEnd, "callId">> = {}) {
  return { type: "settle-call", end: { callId, outcome: completed, ...end } } as const;
}

export const recover = (resume: Resume = "resume") => ({ type: "recover", resume }) as const;
export const cancelSession = (reason: CancelReason = user) => ({ type: "cancel-session", reason }) as const;
export const cancelRun = (runId: RunId, reason: CancelReason = user) =>
  ({ type: "cancel-run", runId, reason }) as const;
export const cancelCall = (callId: CallId, reason: CancelReason = user) =>
  ({ type: "cancel-call", callId, reason }) as const;
export const cancelKey = (key: string, reason: CancelReason = user) => ({ type: "cancel-key", key, reason }) as const;
export const close = (reason: CancelReason = { kind: "closed" }) => ({ type: "close", reason }) as const;

export const runSettled = (runId: RunId, outcome: Outcome): Event => ({ type: "run.settled", runId, outcome });
export const cancelRequested = (runId: RunId, reason: CancelReason = user): Event => ({
  type: "run.cancel_requested",
  runId,
  reason,
});
export const turnRequested = (runId: RunId, turnId: TurnId): Event => ({ type: "turn.requested", runId, turnId });
export const requeued = (runId: RunId): Event => ({ type: "run.requeued", runId });

/** A steer that was taken in, and its own outcome. */
export const taken = (runId: RunId, into: RunId, turnId: TurnId): readonly Event[] => [
  { type: "run.taken", runId, into, turnId },
  runSettled(runId, { kind: "completed", into }),
];
