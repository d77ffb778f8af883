// The inbox: what the model is to hear at its next turn and no person has said: reminders, results of background work.
//
// Invariants
// 1. An item is taken once, by one turn; until then it is kept, across crashes and runs.
// 2. It is never counted as something a person has said.
// 3. What a call is about to tell is told by nobody else, unless that call ends without having told it.
import { type CancelReason, who } from "./cancel.ts";
import type { CallId, ProcessId } from "./ids.ts";
import type { Json } from "./prompt.ts";

export interface Item {
  /** `reminder`: about something that was stopped. `result`: of work that went on in the background. */
  readonly kind: "reminder" | "result";
  readonly text: string;
  readonly data?: Json;
}

/** An item that waits. */
export interface Waits {
  readonly item: Item;
  readonly processId?: ProcessId;
  readonly heldBy?: CallId;
  readonly wake?: true;
}

/** What the model is told, once, about a call that somebody stopped. */
export function reminder(callId: CallId, name: string, reason: CancelReason): Item {
  return {
    kind: "reminder",
    text: `The call of ${name} was stopped by ${who(reason)}. Do not repeat it unless you are asked to.`,
    data: { callId, name },
  };
}

/** Those that a turn can be told now: nobody else is about to. */
export function takeable(inbox: readonly Waits[], live: readonly { readonly id: CallId }[]): readonly Waits[] {
  const held = inbox.some(({ heldBy }) => heldBy !== undefined);
  return held ? inbox.filter((one) => !isHeld(one, live)) : inbox;
}

export const isHeld = ({ heldBy }: Waits, live: readonly { readonly id: CallId }[]): boolean =>
  heldBy !== undefined && live.some((call) => call.id === heldBy);

/** If no turn comes by itself, a run is begun for it. */
export const wakes = ({ wake }: Pick<Waits, "wake">): boolean => wake === true;

export const NO_ITEMS: readonly Waits[] = [];
