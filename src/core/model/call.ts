// A call: one tool invocation of a run, from request to outcome.
//
// Invariants
// 1. Cancelling a call touches neither its run nor its siblings.
// 2. The first cancel reason wins.
// 3. A settled call leaves the state; the log keeps it.
import type { CancelReason, CancelReceipt } from "./cancel.ts";
import type { CallEvent } from "./event.ts";
import type { CallId, RunId, Seq } from "./ids.ts";

interface Base {
  readonly id: CallId;
  readonly name: string;
  /** The model's own id of the call, so that a stop by that id needs no store. These ids are not unique. */
  readonly providerId?: string;
  /** Requested at the end of a turn, not during one: it can be begun again without requesting another turn. */
  readonly byEnd?: true;
  readonly idempotent?: true;
  /** The answer to its approval. Kept so that the same approval is not requested again after a restart. */
  readonly verdict?: Verdict;
}

export interface Verdict {
  /** Digest of the name and input that were approved or denied. */
  readonly digest: string;
  readonly allowed: boolean;
}

export type Call =
  /**
   * Requested: it waits for a hook, an approval or a slot, or its code runs. Its worker reports how it ended.
   * If Belay dies here: it settles as `lost`, or as failed if it was denied. A call that was requested at the end of a
   * turn is begun again if it is idempotent, or if its approval is still open.
   */
  | (Base & { readonly phase: "running" })
  /**
   * Cancelled. It settles when its code has returned, or is abandoned after its grace.
   * If Belay dies here: it settles as `lost`, or as cancelled if it had not begun.
   */
  | (Base & {
      readonly phase: "stopping";
      readonly reason: CancelReason;
      readonly since: Seq;
      readonly remind: boolean;
      /** It had not begun when it was stopped, and never will. */
      readonly begun?: false;
    });

/** The request for a call, as the event records it. */
export type CallAsk = Omit<Extract<CallEvent, { type: "call.requested" }>, "type" | "runId">;

/** How a call is to be stopped. */
export interface Stop {
  readonly reason: CancelReason;
  /** Whether the model is reminded of it at its next turn, besides seeing the result. */
  readonly remind: boolean;
  /** It is known not to have begun. */
  readonly begun?: false | undefined;
}

/** The call after `event`; undefined once it has settled. */
export function evolveCall(call: Call, event: CallEvent, seq: Seq): Call | undefined {
  switch (event.type) {
    case "call.requested":
      return call;
    case "call.cancel_requested":
      return {
        ...{ ...call, phase: "stopping", reason: event.reason, since: seq, remind: event.remind === true },
        ...(event.begun === false ? { begun: false } : {}),
      };
    case "call.settled":
      return undefined;
  }
}

/** The events and the receipt of a cancel. `next` is the position that the first event would have. */
export function cancelCall(
  runId: RunId,
  call: Call,
  { reason, remind, begun }: Stop,
  next: Seq,
): { readonly events: readonly CallEvent[]; readonly answer: CancelReceipt } {
  switch (call.phase) {
    case "running":
      return {
        events: [
          {
            ...{ type: "call.cancel_requested", runId, callId: call.id, reason, ...(remind ? { remind: true } : {}) },
            ...(begun === false ? { begun } : {}),
          },
        ],
        answer: begun === false ? { kind: "withdrawn" } : { kind: "stopping", since: next, first: true },
      };
    case "stopping":
      if (call.begun === false) return { events: [], answer: { kind: "withdrawn" } };
      return { events: [], answer: { kind: "stopping", since: call.since, first: false } };
  }
}
