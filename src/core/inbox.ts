// The inbox: what the model is to hear at its next turn and no person has said: reminders, results of background work.
//
// Invariants
// 1. An item is taken once, by one turn; until then it is kept, across crashes and runs.
// 2. It is never counted as something a person has said.
import type { CancelReason } from "./cancel.ts";
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

/** Who stopped something, and why, in the words a model and a person can use. */
export function who(reason: CancelReason): string {
  switch (reason.kind) {
    case "user":
      return `${reason.by ?? "the user"}${reason.note === undefined ? "" : `: ${reason.note}`}`;
    case "policy":
      return `a rule of the host: ${reason.note}`;
    case "timeout":
      return `its time limit of ${reason.limitMs} ms`;
    case "superseded":
      return "the user, who sent something more urgent";
    case "parent":
      return "the end of what it belonged to";
    case "closed":
      return "the user, who closed the session";
    case "shutdown":
      return "a shutdown of the server";
  }
}

export const NO_ITEMS: readonly Item[] = [];
