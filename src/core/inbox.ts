// The inbox: what the model is to hear at its next turn and no person has said: reminders, results of background work.
//
// Invariants
// 1. An item is taken once, by one turn; until then it is kept, across crashes and runs.
// 2. It is never counted as something a person has said.
import { type CancelReason, who } from "./cancel.ts";
import type { CallId } from "./ids.ts";
import type { Json } from "./prompt.ts";

export interface Item {
  /** `reminder`: about something that was stopped. `result`: of work that went on in the background. */
  readonly kind: "reminder" | "result";
  readonly text: string;
  readonly data?: Json;
}

/** What the model is told, once, about a call that somebody stopped. */
export function reminder(callId: CallId, name: string, reason: CancelReason): Item {
  return {
    kind: "reminder",
    text: `The call of ${name} was stopped by ${who(reason)}. Do not repeat it unless you are asked to.`,
    data: { callId, name },
  };
}

export const NO_ITEMS: readonly Item[] = [];
