// A call: one tool invocation of a run, from request to outcome.
//
// Invariants
// 1. Cancelling a call touches neither its run nor its siblings.
// 2. The first cancel reason wins.
// 3. A settled call leaves the state; the log keeps it.
import type { CancelReason, CancelReceipt } from "./cancel.ts";
import type { CallEvent } from "./event.ts";
import type { CallId, RunId, Seq } from "./ids.ts";

export type Call =
  | { readonly phase: "running"; readonly id: CallId; readonly name: string }
  | {
      readonly phase: "stopping";
      readonly id: CallId;
      readonly name: string;
      readonly reason: CancelReason;
      readonly since: Seq;
    };

/** What the log says happened next to a call; undefined once it has settled. */
export function evolveCall(call: Call, event: CallEvent, seq: Seq): Call | undefined {
  switch (event.type) {
    case "call.requested":
      return call;
    case "call.cancel_requested":
      return { phase: "stopping", id: call.id, name: call.name, reason: event.reason, since: seq };
    case "call.settled":
      return undefined;
  }
}

/** The facts that follow from cancelling a call, and what to tell whoever asked. `next` is where a fact would stand. */
export function cancelCall(
  runId: RunId,
  call: Call,
  reason: CancelReason,
  next: Seq,
): { readonly events: readonly CallEvent[]; readonly answer: CancelReceipt } {
  switch (call.phase) {
    case "running":
      return {
        events: [{ type: "call.cancel_requested", runId, callId: call.id, reason }],
        answer: { kind: "stopping", since: next, first: true },
      };
    case "stopping":
      return { events: [], answer: { kind: "stopping", since: call.since, first: false } };
  }
}
