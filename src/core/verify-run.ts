// The part of the history checker that follows one live run: its turns, its calls, what it owns, how it may end.
//
// Invariants
// 1. Remembers what the run owns now and how many it has asked for, nothing else: a long run costs no more than a short
//    one.
// 2. After a finding it goes on from what the log says, so that one mistake is reported once.
import type { CancelReason, Outcome } from "./cancel.ts";
import type { CallEvent, RunEvent, TurnEvent } from "./event.ts";
import { type CallId, callId, type RunId, type TurnId, turnId } from "./ids.ts";

/** Says that a guarantee is broken, in a sentence. */
export type Report = (guarantee: string, message: string) => void;

export type LiveRunEvent = Exclude<RunEvent, { type: "run.started" | "run.settled" }> | TurnEvent | CallEvent;
type Of<T extends LiveRunEvent["type"]> = Extract<LiveRunEvent, { type: T }>;

export class LiveCheck {
  readonly id: RunId;
  readonly #attemptsMax: number;
  /** The first reason recorded for stopping it. */
  reason: CancelReason | undefined;
  /** `session`: covered by a cancel of the session, whose own record of this run's cancel is still to come. */
  covered: "no" | "session" | "run" = "no";
  turn: TurnId | undefined;
  #phase: "running" | "ending" | "parked" = "running";
  readonly #calls = new Map<CallId, "running" | "stopping">();
  #turns = 0;
  #asked = 0;
  #attempt = 1;

  constructor(id: RunId, attemptsMax: number) {
    this.id = id;
    this.#attemptsMax = attemptsMax;
  }

  /** Whether it can still have another turn. */
  get takesSteers(): boolean {
    return this.covered === "no" && this.#phase === "running";
  }

  /** Whether a steer can be taken into this turn: it is going on, or is the one about to be asked for. */
  takesInto(id: TurnId): boolean {
    return this.takesSteers && id === (this.turn ?? turnId(this.id, this.#turns + 1));
  }

  note(event: LiveRunEvent, report: Report): void {
    switch (event.type) {
      case "run.cancel_requested":
        this.#cancel(event, report);
        return;
      case "run.parked":
        this.#park(report);
        return;
      case "run.recovered":
        this.#recover(event, report);
        return;
      case "turn.requested":
        this.#requestTurn(event, report);
        return;
      case "turn.extended":
        if (this.turn !== event.turnId) report("G16", `${event.turnId} says something, but it is not going on.`);
        return;
      case "turn.settled":
        this.#settleTurn(event, report);
        return;
      case "call.requested":
        this.#requestCall(event, report);
        return;
      case "call.cancel_requested":
        this.#cancelCall(event, report);
        return;
      case "call.settled":
        this.#settleCall(event, report);
        return;
    }
  }

  /** Its outcome is being recorded: may it end, and may it end like this? */
  settle(outcome: Outcome, report: Report): void {
    this.#ownsNothing("ended", report);
    if (this.covered === "no") {
      if (outcome.kind === "cancelled") report("G15", `${this.id} ended as cancelled, but nobody had cancelled it.`);
      return;
    }
    if (outcome.kind !== "cancelled") {
      report("G15", `${this.id} was cancelled and then ended as ${outcome.kind}.`);
    } else if (JSON.stringify(outcome.reason) !== JSON.stringify(this.reason)) {
      report(
        "G10",
        `${this.id} was cancelled for one reason and ended with another; the first is the one that counts.`,
      );
    }
  }

  #cancel({ reason }: Of<"run.cancel_requested">, report: Report): void {
    if (this.covered === "run") {
      report("G10", `${this.id} was cancelled twice; the second request is not kept.`);
      return;
    }
    this.reason ??= reason;
    this.covered = "run";
  }

  #park(report: Report): void {
    if (this.covered !== "no") report("G7", `${this.id} was set down for later although it had been cancelled.`);
    this.#ownsNothing("was set down", report);
    this.#phase = "parked";
  }

  #recover({ attempt }: Of<"run.recovered">, report: Report): void {
    if (this.covered !== "no") report("G11", `${this.id} was taken up again although it had been cancelled.`);
    this.#ownsNothing("was taken up again", report);
    const expected = this.#phase === "parked" ? this.#attempt : this.#attempt + 1;
    if (attempt !== expected) {
      report("G25", `${this.id} was taken up as attempt ${attempt}; by the log it is attempt ${expected}.`);
    } else if (attempt > this.#attemptsMax) {
      report("G25", `${this.id} was taken up ${attempt} times; the limit is ${this.#attemptsMax}.`);
    }
    this.#attempt = attempt;
    this.#phase = "running";
  }

  #requestTurn({ turnId: id }: Of<"turn.requested">, report: Report): void {
    this.#nothingNew(id, report);
    if (this.turn !== undefined) report("G17", `${id} was asked for while ${this.turn} was going on.`);
    else if (this.#calls.size > 0) report("G17", `${id} was asked for before ${this.#callNames()} had a result.`);
    this.#turns += 1;
    if (id !== turnId(this.id, this.#turns)) report("G14", `${id} is not the next turn of ${this.id}.`);
    this.turn = id;
  }

  #settleTurn({ turnId: id, next, usage }: Of<"turn.settled">, report: Report): void {
    if (this.turn !== id) {
      report("G14", `${id} ended, but it was not going on.`);
      return;
    }
    if (usage !== undefined && !(usage.inputTokens >= 0 && usage.outputTokens >= 0)) {
      report("G18", `${id} has a cost that is not a count.`);
    }
    this.turn = undefined;
    if (next === "end" && this.#phase === "running") this.#phase = "ending";
  }

  #requestCall({ callId: id }: Of<"call.requested">, report: Report): void {
    this.#nothingNew(id, report);
    if (this.turn === undefined && this.#phase === "running") report("G17", `${id} was asked for outside of any turn.`);
    // Numbers may be left out (a call the store could not record has none), but not used twice.
    const number = Number(id.slice(callId(this.id, 0).length - 1));
    if (!(number > this.#asked)) report("G17", `${id} has a number that ${this.id} has used already.`);
    this.#asked = number;
    this.#calls.set(id, "running");
  }

  #cancelCall({ callId: id }: Of<"call.cancel_requested">, report: Report): void {
    const phase = this.#calls.get(id);
    if (phase === undefined) {
      report("G10", `A cancel of ${id} was recorded, but it was not going on.`);
      return;
    }
    if (phase === "stopping") report("G10", `${id} was cancelled twice; the second request is not kept.`);
    this.#calls.set(id, "stopping");
  }

  #settleCall({ callId: id, outcome }: Of<"call.settled">, report: Report): void {
    const phase = this.#calls.get(id);
    if (phase === undefined) {
      report("G17", `${id} has a result, but it was not going on.`);
      return;
    }
    const stopped = phase === "stopping" || this.covered !== "no" || this.#phase === "ending";
    if (outcome.kind === "cancelled" && !stopped && outcome.reason.kind !== "shutdown") {
      report("G15", `${id} ended as cancelled, but nobody had cancelled it.`);
    }
    this.#calls.delete(id);
  }

  #nothingNew(what: TurnId | CallId, report: Report): void {
    if (this.covered !== "no") report("G11", `${what} was asked for after ${this.id} had been cancelled.`);
    else if (this.#phase === "ending") report("G16", `${what} was asked for after the last turn of ${this.id}.`);
    else if (this.#phase === "parked") report("G25", `${what} was asked for while ${this.id} was set down.`);
  }

  #ownsNothing(what: string, report: Report): void {
    if (this.turn !== undefined) report("G17", `${this.id} ${what} while ${this.turn} was going on.`);
    else if (this.#calls.size > 0) report("G17", `${this.id} ${what} before ${this.#callNames()} had a result.`);
    this.turn = undefined;
    this.#calls.clear();
  }

  #callNames(): string {
    return [...this.#calls.keys()].join(", ");
  }
}
