// The part of the history checker that follows the inbox: what is added is taken once, by the next turn, and the model
// is reminded once of a call that was stopped with a reminder.
//
// Invariants
// 1. Remembers what is in the inbox now and what must come next, nothing else.
// 2. After a finding it goes on from what the log says, so that one mistake is reported once.
import type { Event } from "./event.ts";
import type { CallId, TurnId } from "./ids.ts";
import type { Item } from "./inbox.ts";

/** Says that a guarantee is broken, in a sentence. */
export type Report = (guarantee: string, message: string) => void;

export class InboxCheck {
  #items: string[] = [];
  /** A call that was stopped: the reminder of it must be the very next event. */
  #owed: CallId | undefined;
  /** The turn these items were taken for, if it is still to be asked for: otherwise nobody hears them. */
  #taking: TurnId | undefined;

  /** Called before anything else is made of an event: does what had to come next come next? */
  follows(event: Event, report: Report): void {
    const [owed, taking] = [this.#owed, this.#taking];
    if (owed !== undefined && !(event.type === "inbox.added" && callOf(event.item) === owed)) {
      report("G9", `${owed} was stopped with a reminder, but the model is not reminded of it.`);
      this.#owed = undefined;
    }
    if (taking === undefined || isTaking(event)) return;
    this.#taking = undefined;
    if (event.type !== "turn.requested" || event.turnId !== taking) {
      report("G22", `What was in the inbox was taken for ${taking}, which was not asked for.`);
    }
  }

  /** A call has ended that the model must be reminded of. */
  owe(call: CallId): void {
    this.#owed = call;
  }

  add(item: Item, report: Report): void {
    const call = callOf(item);
    if (call !== undefined && call !== this.#owed) {
      report("G9", `The model is reminded of ${call}, but nobody asked for that, or it was before.`);
    }
    this.#owed = undefined;
    this.#items.push(JSON.stringify(item));
  }

  /** `partial`: the log was trimmed, and items may have been added before it begins. */
  take(items: readonly Item[], partial: boolean, report: Report): void {
    const taken = items.map((item) => JSON.stringify(item));
    const known = partial ? taken.slice(Math.max(0, taken.length - this.#items.length)) : taken;
    if (JSON.stringify(known) !== JSON.stringify(this.#items)) {
      report("G22", "What was taken from the inbox is not what was in it: once each, all of it, oldest first.");
    }
    this.#items = [];
  }

  /** Taken for a turn that is still to be asked for. */
  awaits(turn: TurnId): void {
    this.#taking = turn;
  }

  /** A turn is asked for: whatever was in the inbox has been said to it by now. */
  requestTurn(turn: TurnId, report: Report): void {
    if (this.#items.length === 0) return;
    report("G22", `${turn} was asked for, and what was in the inbox was not taken for it.`);
    this.#items = [];
  }

  /** Nothing comes any more. */
  atRest(report: Report): void {
    if (this.#owed !== undefined) report("G9", `${this.#owed} was stopped with a reminder, and there is none.`);
    if (this.#taking !== undefined) report("G22", `What was taken from the inbox for ${this.#taking} was never heard.`);
  }
}

/** Steers are taken in at the same moment. */
function isTaking(event: Event): boolean {
  if (event.type === "run.taken") return true;
  return event.type === "run.settled" && event.outcome.kind === "completed" && event.outcome.into !== undefined;
}

/** The call an item reminds of, if it is a reminder of one. */
function callOf({ kind, data }: Item): CallId | undefined {
  if (kind !== "reminder" || typeof data !== "object" || data === null || !("callId" in data)) return undefined;
  return data.callId as CallId;
}
