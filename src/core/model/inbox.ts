// The inbox: items for the model's next turn that no user has sent: reminders, and results of background processes.
//
// Invariants
// 1. An item is taken once, by one turn; until then it is kept, across crashes and runs.
// 2. It never counts as a message of the user.
// 3. A result that a call or the live turn waits for is not given to a turn, unless the waiter ends without having
//    received it.
import { type CancelReason, who } from "./cancel.ts";
import type { CallId, ProcessId, TurnId, Work } from "./ids.ts";
import type { Json } from "./prompt.ts";

export interface InboxItem {
  /** `reminder`: of work that was stopped. `result`: of a background process. */
  readonly kind: "reminder" | "result";
  readonly text: string;
  readonly data?: Json;
}

/** An item that no turn has taken. */
export interface PendingItem {
  readonly item: InboxItem;
  readonly processId?: ProcessId;
  readonly heldBy?: Work;
  readonly alsoHeldBy?: readonly Work[];
  readonly wake?: true;
}

/** The item that reminds the model, once, of a call that was stopped. */
export function reminder(callId: CallId, name: string, reason: CancelReason): InboxItem {
  return {
    kind: "reminder",
    text: `The call of ${name} was stopped by ${who(reason)}. Do not repeat it unless you are asked to.`,
    data: { callId, name },
  };
}

/** The work of the live run, if there is one. */
type LiveWork = { readonly turn: TurnId | undefined; readonly live: readonly { readonly id: CallId }[] } | undefined;

/** The items that no live call or turn waits for. The next turn takes these. */
export function takeable(inbox: readonly PendingItem[], run: LiveWork): readonly PendingItem[] {
  const held = inbox.some(({ heldBy }) => heldBy !== undefined);
  return held ? inbox.filter((one) => !isHeld(one, run)) : inbox;
}

export const isHeld = ({ heldBy, alsoHeldBy }: PendingItem, run: LiveWork): boolean =>
  heldBy !== undefined && (isLive(run, heldBy) || alsoHeldBy?.some((id) => isLive(run, id)) === true);

export const isLive = (run: LiveWork, id: Work): boolean =>
  run !== undefined && (run.turn === id || run.live.some((call) => call.id === id));

/** If no turn follows anyway, a run is begun for it. */
export const wakes = ({ wake }: Pick<PendingItem, "wake">): boolean => wake === true;

export const NO_ITEMS: readonly PendingItem[] = [];
