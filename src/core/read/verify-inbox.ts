// The part of the history checker that follows the inbox: what is added is taken once, by the next turn, unless a call
// or turn has received it by waiting; the model is reminded once of a call that was stopped with a reminder, and told
// once how a background process ended.
//
// Invariants
// 1. Remembers what is in the inbox now and what must come next, nothing else.
// 2. After a finding it goes on from what the log says, so that one mistake is reported once.
import type { Event } from "../model/event.ts";
import type { CallId, ProcessId, TurnId, Work } from "../model/ids.ts";
import type { InboxItem } from "../model/inbox.ts";

/** Says that a guarantee is broken, in a sentence. */
export type Report = (guarantee: string, message: string) => void;

type Added = Extract<Event, { type: "inbox.added" }>;
type Hearing = Extract<Event, { type: "call.settled" | "turn.settled" }>;

/** Whether this call or turn is live. */
type GoesOn = (work: Work) => boolean;

interface InboxEntry {
  readonly item: string;
  readonly process: ProcessId | undefined;
  /** While one of these is live, no turn is told. */
  readonly holders: readonly Work[];
  /** If no turn comes by itself, a run is begun for it. */
  wakes: boolean;
}

export class InboxCheck {
  #entries: InboxEntry[] = [];
  /** A call that was stopped: the reminder of it must be the very next event. */
  #owed: CallId | undefined;
  /** A background process that has ended by itself: its result must be the very next event. */
  #result: { readonly id: ProcessId; readonly wakes: boolean; readonly told: "must" | "may" } | undefined;
  /** The turn these items were taken for, if it is still to be asked for: otherwise nobody hears them. */
  #taking: TurnId | undefined;

  /** Called before anything else is made of an event: does what had to come next come next? */
  follows(event: Event, report: Report): void {
    const [owed, result, taking] = [this.#owed, this.#result, this.#taking];
    if (owed !== undefined && !(event.type === "inbox.added" && callOf(event.item) === owed)) {
      report("G9", `${owed} was stopped with a reminder, but the model is not reminded of it.`);
      this.#owed = undefined;
    }
    if (result !== undefined && !(event.type === "inbox.added" && event.processId === result.id)) {
      if (result.told === "must") report("G22", `${result.id} has ended, but its session is not told of it at once.`);
      this.#result = undefined;
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

  /** A background process has ended, and its session must be told. */
  oweResult(id: ProcessId, wakes: boolean, told: "must" | "may"): void {
    this.#result = { id, wakes, told };
  }

  /** `partial`: the log was trimmed, and may speak of what is not in it. */
  add(
    { item, processId, heldBy, alsoHeldBy = [], wake }: Added,
    goesOn: GoesOn,
    partial: boolean,
    report: Report,
  ): void {
    const call = callOf(item);
    if (call !== undefined && call !== this.#owed) {
      report("G9", `The model is reminded of ${call}, but nobody asked for that, or it was before.`);
    }
    const holders = heldBy === undefined ? [] : [heldBy, ...alsoHeldBy];
    const gone = holders.find((holder) => !goesOn(holder));
    if (!partial) {
      if (gone !== undefined) report("G22", `A result is held for ${gone}, which does not wait for it.`);
      this.#isOwed(processId, wake === true, report);
    }
    this.#owed = undefined;
    this.#result = undefined;
    // Held for a call of which a trimmed log does not say whether it goes on: nor when it can be told.
    if (partial && gone !== undefined) return;
    this.#entries.push({ item: JSON.stringify(item), process: processId, holders, wakes: wake === true });
  }

  #isOwed(id: ProcessId | undefined, wakes: boolean, report: Report): void {
    if (id !== this.#result?.id) {
      report("G22", `The session is told of ${id}, but not when it ended by itself, or not for the first time.`);
    } else if (wakes !== (this.#result?.wakes ?? false)) {
      report("G22", `${id ?? "What nobody waits for"} was ${wakes ? "not " : ""}to begin a run once it has ended.`);
    }
  }

  take(items: readonly InboxItem[], goesOn: GoesOn, partial: boolean, report: Report): void {
    const taken = items.map((item) => JSON.stringify(item));
    const free = this.#entries.filter((entry) => !isHeld(entry, goesOn)).map((entry) => entry.item);
    // What a trimmed log does not tell may stand anywhere between.
    if (partial ? !within(free, taken) : JSON.stringify(taken) !== JSON.stringify(free)) {
      report("G22", "What was taken from the inbox is not what was in it: once each, all of it, oldest first.");
    }
    this.#entries = this.#entries.filter((entry) => isHeld(entry, goesOn));
  }

  /** A call or turn has received these results: no other turn takes them. */
  hear(event: Hearing, hasEnded: (id: ProcessId) => boolean, report: Report): void {
    const { outcome, heard = [] } = event;
    const work = event.type === "call.settled" ? event.callId : event.turnId;
    if (heard.length > 0 && outcome.kind !== "completed") {
      report("G22", `${work} has told how something ended, but it did not complete.`);
    }
    for (const id of heard) if (!hasEnded(id)) report("G22", `${work} has told the end of ${id}, too early.`);
    this.#entries = this.#entries.filter(({ process }) => process === undefined || !heard.includes(process));
  }

  /** Whether something in it wants a run, if none comes by itself. */
  get wakes(): boolean {
    return this.#entries.some((entry) => entry.wakes);
  }

  /** It has got its run, or the session was cancelled. */
  woken(): void {
    for (const entry of this.#entries) entry.wakes = false;
  }

  /** Taken for a turn that is still to be asked for. */
  awaits(turn: TurnId): void {
    this.#taking = turn;
  }

  /** A turn is asked for: whatever was in the inbox has been said to it by now. */
  requestTurn(turn: TurnId, goesOn: GoesOn, report: Report): void {
    if (this.#entries.every((entry) => isHeld(entry, goesOn))) return;
    report("G22", `${turn} was asked for, and what was in the inbox was not taken for it.`);
    this.#entries = this.#entries.filter((entry) => isHeld(entry, goesOn));
  }

  /** Nothing comes any more. */
  atRest(report: Report): void {
    if (this.#owed !== undefined) report("G9", `${this.#owed} was stopped with a reminder, and there is none.`);
    if (this.#result !== undefined) report("G22", `${this.#result.id} has ended, and its session was never told.`);
    if (this.#taking !== undefined) report("G22", `What was taken from the inbox for ${this.#taking} was never heard.`);
  }
}

const isHeld = ({ holders }: InboxEntry, goesOn: GoesOn): boolean => holders.some(goesOn);

/** Whether all of these are among those, in the same order. */
function within(some: readonly string[], all: readonly string[]): boolean {
  let at = 0;
  for (const one of all) if (one === some[at]) at += 1;
  return at === some.length;
}

/** Steers are taken in at the same moment. */
function isTaking(event: Event): boolean {
  if (event.type === "run.taken") return true;
  return event.type === "run.settled" && event.outcome.kind === "completed" && event.outcome.into !== undefined;
}

/** The call an item reminds of, if it is a reminder of one. */
function callOf({ kind, data }: InboxItem): CallId | undefined {
  if (kind !== "reminder" || typeof data !== "object" || data === null || !("callId" in data)) return undefined;
  return data.callId as CallId;
}
