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
  /** Asked for by the end of a turn, not from within one: it can be begun again without asking a turn again. */
  readonly byEnd?: true;
  readonly idempotent?: true;
  /** What people have said to its approval. Kept, so that nobody is asked again after a restart. */
  readonly verdict?: Verdict;
}

export interface Verdict {
  /** Of the bytes it is about. */
  readonly digest: string;
  readonly allowed: boolean;
}

export type Call =
  | (Base & { readonly phase: "running" })
  | (Base & {
      readonly phase: "stopping";
      readonly reason: CancelReason;
      readonly since: Seq;
      readonly remind: boolean;
      /** It had not begun when it was stopped, and never will. */
      readonly begun?: false;
    });

/** A call as it is asked for. */
export type CallAsk = Omit<Extract<CallEvent, { type: "call.requested" }>, "type" | "runId">;

/** How a call is to be stopped. */
export interface Stop {
  readonly reason: CancelReason;
  /** Whether the model is reminded of it at its next turn, besides seeing the result. */
  readonly remind: boolean;
  /** It is known not to have begun. */
  readonly begun?: false | undefined;
}

/** What the log says happened next to a call; undefined once it has settled. */
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

/** The facts that follow from cancelling a call, and what to tell whoever asked. `next` is where a fact would stand. */
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
