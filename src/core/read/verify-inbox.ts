// The part of the history checker that follows the inbox: each item is taken once, by the next turn, unless a call or
// turn has received it by waiting; the model gets one reminder of a call that was stopped with a reminder, and one
// result of a background process that ended.
//
// Invariants
// 1. Remembers what is in the inbox now and what must come next, nothing else.
// 2. After a finding it continues with the state of the log, so that one mistake is reported once.
import type { Event } from "../model/event.ts";
import type { CallId, ProcessId, TurnId, Work } from "../model/ids.ts";
import type { InboxItem } from "../model/inbox.ts";

/** Reports a broken guarantee, with a message of one sentence. */
export type Report = (guarantee: string, message: string) => void;

type Added = Extract<Event, { type: "inbox.added" }>;
type Hearing = Extract<Event, { type: "call.settled" | "turn.settled" }>;

/** Whether this call or turn is live. */
type IsLive = (work: Work) => boolean;

interface InboxEntry {
  readonly item: string;
  readonly process: ProcessId | undefined;
  /** While one of these is live, no turn takes the item. */
  readonly holders: readonly Work[];
  /** If no turn follows anyway, a run is begun for it. */
  wakes: boolean;
}

export class InboxCheck {
  #entries: InboxEntry[] = [];
  /** A call that was stopped: its reminder must be the next event. */
  #owed: CallId | undefined;
  /** A background process that has ended by itself: its result must be the next event. */
  #result: { readonly id: ProcessId; readonly wakes: boolean; readonly told: "must" | "may" } | undefined;
  /** The turn these items were taken for, if it was not requested yet: it must be. */
  #taking: TurnId | undefined;

  /** Called first for each event: checks that it is the event that had to come next. */
  follows(event: Event, report: Report): void {
    const [owed, result, taking] = [this.#owed, this.#result, this.#taking];
    if (owed !== undefined && !(event.type === "inbox.added" && callOf(event.item) === owed)) {
      report("G9", `${owed} was stopped with a reminder, but the model is not reminded of it.`);
      this.#owed = undefined;
    }
    if (result !== undefined && !(event.type === "inbox.added" && event.processId === result.id)) {
      if (result.told === "must")
        report("G22", `${result.id} has ended, but its result was not added to the inbox at once.`);
      this.#result = undefined;
    }
    if (taking === undefined || isTaking(event)) return;
    this.#taking = undefined;
    if (event.type !== "turn.requested" || event.turnId !== taking) {
      report("G22", `The inbox was taken for ${taking}, which was not requested.`);
    }
  }

  /** A call has ended that the model must be reminded of. */
  owe(call: CallId): void {
    this.#owed = call;
  }

  /** A background process has ended, and its result must be added to the inbox. */
  oweResult(id: ProcessId, wakes: boolean, told: "must" | "may"): void {
    this.#result = { id, wakes, told };
  }

  /** `partial`: the log was trimmed, and may refer to removed events. */
  add(
    { item, processId, heldBy, alsoHeldBy = [], wake }: Added,
    isLive: IsLive,
    partial: boolean,
    report: Report,
  ): void {
    const call = callOf(item);
    if (call !== undefined && call !== this.#owed) {
      report("G9", `The model is reminded of ${call}, which was not requested or was done before.`);
    }
    const holders = heldBy === undefined ? [] : [heldBy, ...alsoHeldBy];
    const gone = holders.find((holder) => !isLive(holder));
    if (!partial) {
      if (gone !== undefined) report("G22", `A result is held for ${gone}, which does not wait for it.`);
      this.#isOwed(processId, wake === true, report);
    }
    this.#owed = undefined;
    this.#result = undefined;
    // Held for a call that a trimmed log does not contain: it is unknown when the item can be taken.
    if (partial && gone !== undefined) return;
    this.#entries.push({ item: JSON.stringify(item), process: processId, holders, wakes: wake === true });
  }

  #isOwed(id: ProcessId | undefined, wakes: boolean, report: Report): void {
    if (id !== this.#result?.id) {
      report("G22", `The result of ${id} was added when it had not just ended by itself, or for the second time.`);
    } else if (wakes !== (this.#result?.wakes ?? false)) {
      report("G22", `${id ?? "An item without a process"} was ${wakes ? "not " : ""}to begin a run once it has ended.`);
    }
  }

  take(items: readonly InboxItem[], isLive: IsLive, partial: boolean, report: Report): void {
    const taken = items.map((item) => JSON.stringify(item));
    const free = this.#entries.filter((entry) => !isHeld(entry, isLive)).map((entry) => entry.item);
    // In a trimmed log, items that are not known may come between the known ones.
    if (partial ? !within(free, taken) : JSON.stringify(taken) !== JSON.stringify(free)) {
      report("G22", "The items taken from the inbox are not those in it: all of them, once each, oldest first.");
    }
    this.#entries = this.#entries.filter((entry) => isHeld(entry, isLive));
  }

  /** A call or turn has received these results: no other turn takes them. */
  hear(event: Hearing, hasEnded: (id: ProcessId) => boolean, report: Report): void {
    const { outcome, heard = [] } = event;
    const work = event.type === "call.settled" ? event.callId : event.turnId;
    if (heard.length > 0 && outcome.kind !== "completed") {
      report("G22", `${work} received the result of a process, but did not complete.`);
    }
    for (const id of heard) {
      if (!hasEnded(id)) report("G22", `${work} received the result of ${id} before it had ended.`);
    }
    this.#entries = this.#entries.filter(({ process }) => process === undefined || !heard.includes(process));
  }

  /** Whether an item in it needs a run, if no turn follows anyway. */
  get wakes(): boolean {
    return this.#entries.some((entry) => entry.wakes);
  }

  /** A run was begun for the items, or the session was cancelled. */
  woken(): void {
    for (const entry of this.#entries) entry.wakes = false;
  }

  /** Items were taken for a turn that must be requested next. */
  awaits(turn: TurnId): void {
    this.#taking = turn;
  }

  /** A turn is requested: every item that is not held must have been taken for it by now. */
  requestTurn(turn: TurnId, isLive: IsLive, report: Report): void {
    if (this.#entries.every((entry) => isHeld(entry, isLive))) return;
    report("G22", `${turn} was requested, but the inbox was not taken for it.`);
    this.#entries = this.#entries.filter((entry) => isHeld(entry, isLive));
  }

  /** At the end of the log. */
  atRest(report: Report): void {
    if (this.#owed !== undefined) report("G9", `${this.#owed} was stopped with a reminder, and there is none.`);
    if (this.#result !== undefined)
      report("G22", `${this.#result.id} has ended, but its result was never added to the inbox.`);
    if (this.#taking !== undefined)
      report("G22", `The inbox was taken for ${this.#taking}, which was never requested.`);
  }
}

const isHeld = ({ holders }: InboxEntry, isLive: IsLive): boolean => holders.some(isLive);

/** Whether all of `some` are in `all`, in the same order. */
function within(some: readonly string[], all: readonly string[]): boolean {
  let at = 0;
  for (const one of all) if (one === some[at]) at += 1;
  return at === some.length;
}

/** Steers are taken in together with the items. */
function isTaking(event: Event): boolean {
  if (event.type === "run.taken") return true;
  return event.type === "run.settled" && event.outcome.kind === "completed" && event.outcome.into !== undefined;
}

/** The call that a reminder is about; undefined for other items. */
function callOf({ kind, data }: InboxItem): CallId | undefined {
  if (kind !== "reminder" || typeof data !== "object" || data === null || !("callId" in data)) return undefined;
  return data.callId as CallId;
}
