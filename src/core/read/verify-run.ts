// The part of the history checker that follows one live run: its turns, its calls, what it owns, how it may end.
//
// Invariants
// 1. Remembers what the run owns now and how many turns and calls it had, nothing else: a long run costs no more than a
//    short one.
// 2. After a finding it continues with the state of the log, so that one mistake is reported once.
import type { CancelReason, Outcome } from "../model/cancel.ts";
import type { CallEvent, Event, QuestionEvent, RunEvent, TurnEvent, Usage } from "../model/event.ts";
import { type CallId, callId, type RunId, type Seq, type TurnId, turnId, type Work } from "../model/ids.ts";
import type { InboxCheck, Report } from "./verify-inbox.ts";
import { QuestionCheck } from "./verify-question.ts";

export type LiveRunEvent =
  | Exclude<RunEvent, { type: "run.started" | "run.settled" }>
  | Exclude<TurnEvent, { type: "inbox.taken" }>
  | CallEvent
  | QuestionEvent;
type Of<T extends LiveRunEvent["type"]> = Extract<LiveRunEvent, { type: T }>;

interface CallCheck {
  readonly byEnd: boolean;
  readonly idempotent: boolean;
  phase: "running" | "stopping";
  /** The first reason recorded for stopping the call itself. */
  reason: CancelReason | undefined;
  remind: boolean;
  /** False: its stop was recorded before it had begun. */
  begun: boolean;
}

export class LiveCheck {
  readonly id: RunId;
  readonly #attemptsMax: number;
  /** The first reason recorded for stopping it. */
  reason: CancelReason | undefined;
  /** `session`: covered by a cancel of the session. The cancel of this run must be the next event. */
  covered: "no" | "session" | "run" = "no";
  turn: TurnId | undefined;
  #phase: "running" | "ending" | "parked" = "running";
  readonly #calls = new Map<CallId, CallCheck>();
  readonly #questions: QuestionCheck;
  readonly #inbox: InboxCheck;
  /**
   * The position at which the end of a turn can request a call: right after it, and after the calls it has requested.
   */
  #asksAt: Seq | undefined;
  /** Some cost of the live turn is known. */
  #metered = false;
  #turns = 0;
  /** The outcome of the turn that ended the run. */
  #last: Outcome["kind"] | undefined;
  #asked = 0;
  #attempt = 1;

  constructor(id: RunId, attemptsMax: number, inbox: InboxCheck) {
    this.id = id;
    this.#attemptsMax = attemptsMax;
    this.#inbox = inbox;
    this.#questions = new QuestionCheck(id);
  }

  /** Whether it can still have another turn. */
  get takesSteers(): boolean {
    return this.covered === "no" && this.#phase === "running";
  }

  /** Whether a steer can be taken into this turn: the live one, or the one about to be requested. */
  takesInto(id: TurnId): boolean {
    return this.takesSteers && id === (this.turn ?? turnId(this.id, this.#turns + 1));
  }

  owns(work: Work): boolean {
    return this.turn === work || this.#calls.has(work as CallId);
  }

  get isParked(): boolean {
    return this.#phase === "parked";
  }

  /** Whether this call, or its run, was cancelled. */
  isCancelled(call: CallId): boolean {
    return this.covered !== "no" || this.#calls.get(call)?.phase === "stopping";
  }

  /** Why this call is being stopped: its own cancel, that of its run, or because no turn needs its result. */
  stopOf(call: CallId): CancelReason | undefined {
    const own = this.#calls.get(call)?.reason;
    if (own !== undefined || this.covered !== "no") return own ?? this.reason;
    return this.#phase === "ending" ? { kind: "parent", id: this.id } : undefined;
  }

  /** Called first for each event, of this run or another. */
  follows(event: Event, report: Report): void {
    this.#questions.follows(event, report);
    if (this.covered !== "session" || (event.type === "run.cancel_requested" && event.runId === this.id)) return;
    report("G7", `A cancel of the session covers ${this.id}, but its own cancel was not recorded at once.`);
    this.covered = "run";
  }

  note(event: LiveRunEvent & { readonly seq: Seq }, report: Report): void {
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
        if (this.turn !== event.turnId) report("G16", `${event.turnId} has text, but it is not going on.`);
        this.#counts(event.turnId, event.usage, report);
        this.#metered ||= event.usage !== undefined;
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
      case "question.asked":
        this.#ask(event, report);
        return;
      case "question.settled":
        this.#questions.settle(event, report);
        return;
    }
  }

  /** Checks whether the run may end, and with this outcome. */
  settle(outcome: Outcome, report: Report): void {
    const cutOff = this.turn !== undefined || this.#calls.size > 0;
    this.#questions.over(this.id, report);
    this.#ownsNothing("ended", report);
    if (this.covered === "no") {
      if (outcome.kind === "cancelled") report("G15", `${this.id} ended as cancelled, but was not cancelled.`);
      else if (outcome.kind === "completed" && this.#last !== "completed" && !cutOff)
        report("G15", `${this.id} ended as completed, and no last turn of it did.`);
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
    this.#questions.cancelled();
  }

  #park(report: Report): void {
    if (this.covered !== "no") report("G7", `${this.id} was parked although it had been cancelled.`);
    this.#keepsWhatItMay("was parked", report);
    this.#phase = "parked";
  }

  #recover({ attempt }: Of<"run.recovered">, report: Report): void {
    if (this.covered !== "no") report("G11", `${this.id} was recovered although it had been cancelled.`);
    this.#keepsWhatItMay("was recovered", report);
    const expected = this.#phase === "parked" ? this.#attempt : this.#attempt + 1;
    if (attempt !== expected) {
      report("G25", `${this.id} was recovered as attempt ${attempt}; by the log it is attempt ${expected}.`);
    } else if (attempt > this.#attemptsMax) {
      report("G25", `${this.id} was recovered ${attempt} times; the limit is ${this.#attemptsMax}.`);
    }
    this.#attempt = attempt;
    this.#phase = "running";
  }

  #requestTurn({ turnId: id }: Of<"turn.requested">, report: Report): void {
    this.#nothingNew(id, report);
    if (this.turn !== undefined) report("G17", `${id} was requested while ${this.turn} was live.`);
    else if (this.#calls.size > 0) report("G17", `${id} was requested before ${this.#callNames()} had a result.`);
    this.#turns += 1;
    if (id !== turnId(this.id, this.#turns)) report("G14", `${id} is not the next turn of ${this.id}.`);
    this.#inbox.requestTurn(id, (work) => this.owns(work), report);
    this.#metered = false;
    this.turn = id;
  }

  #settleTurn(
    { turnId: id, outcome, next, usage, seq }: Of<"turn.settled"> & { readonly seq: Seq },
    report: Report,
  ): void {
    if (this.turn !== id) {
      report("G14", `${id} ended, but it was not live.`);
      return;
    }
    this.#counts(id, usage, report);
    if (usage === undefined && this.#metered) report("G18", `${id} ended, but its known cost is missing.`);
    this.turn = undefined;
    this.#last = next === "end" ? outcome.kind : undefined;
    this.#questions.over(id, report);
    if (next === "turn") this.#asksAt = seq + 1;
    else if (this.#phase === "running") {
      this.#phase = "ending";
      // Its calls are being stopped from now on, and their questions must be withdrawn.
      this.#questions.over(this.id, report);
    }
  }

  #counts(id: TurnId, usage: Usage | undefined, report: Report): void {
    if (usage === undefined || (usage.inputTokens >= 0 && usage.outputTokens >= 0)) return;
    report("G18", `${id} has a cost that is not a count.`);
  }

  #requestCall({ callId: id, idempotent, seq }: Of<"call.requested"> & { readonly seq: Seq }, report: Report): void {
    this.#nothingNew(id, report);
    const byEnd = this.turn === undefined;
    if (byEnd && seq === this.#asksAt) this.#asksAt = seq + 1;
    else if (byEnd && this.#phase === "running") report("G17", `${id} was requested outside of any turn.`);
    // Numbers may be skipped (those of calls that the store could not record), but not used twice.
    const number = Number(id.slice(callId(this.id, 0).length - 1));
    if (!(number > this.#asked)) report("G17", `${id} has a number that ${this.id} has used already.`);
    this.#asked = number;
    const requested = { phase: "running", reason: undefined, remind: false, begun: true } as const;
    this.#calls.set(id, { byEnd, idempotent: idempotent === true, ...requested });
  }

  #cancelCall({ callId: id, reason, remind, begun }: Of<"call.cancel_requested">, report: Report): void {
    const call = this.#calls.get(id);
    if (call === undefined) {
      report("G10", `A cancel of ${id} was recorded, but it was not live.`);
      return;
    }
    if (call.phase === "stopping") {
      report("G10", `${id} was cancelled twice; the second request is not kept.`);
      return;
    }
    call.phase = "stopping";
    call.reason = reason;
    call.remind = remind === true;
    call.begun = begun !== false;
    this.#questions.cancelled(id);
  }

  #settleCall({ callId: id, outcome, begun }: Of<"call.settled">, report: Report): void {
    const call = this.#calls.get(id);
    if (call === undefined) {
      report("G17", `${id} has a result, but it was not live.`);
      return;
    }
    const stopped = call.phase === "stopping" || this.covered !== "no" || this.#phase === "ending";
    if (outcome.kind === "cancelled" && !stopped && outcome.reason.kind !== "shutdown") {
      report("G15", `${id} ended as cancelled, but was not cancelled.`);
    }
    if (outcome.kind === "completed" && this.#phase === "parked") {
      report("G25", `${id} ended while ${this.id} was parked, and did not run.`);
    }
    const isDone = outcome.kind === "completed" || outcome.kind === "failed";
    if (begun === false && isDone) report("G15", `${id} had not begun, and ended as ${outcome.kind}.`);
    if (!call.begun && begun !== false) report("G10", `${id} was stopped before it had begun, and has begun.`);
    this.#questions.over(id, report);
    if (call.remind && (outcome.kind === "cancelled" || outcome.kind === "lost")) this.#inbox.owe(id);
    this.#calls.delete(id);
  }

  #ask(event: Of<"question.asked">, report: Report): void {
    const { questionId: id, owner } = event;
    this.#nothingNew(id, report);
    const phase = this.turn === owner ? "running" : this.#calls.get(owner as CallId)?.phase;
    if (phase === undefined) report("G16", `${owner} asks a question, but it is not going on.`);
    if (phase === "stopping") report("G11", `${id} was asked after ${owner} had been cancelled.`);
    this.#questions.ask(event, report);
  }

  #nothingNew(what: string, report: Report): void {
    if (this.covered !== "no") report("G11", `${what} was requested after ${this.id} had been cancelled.`);
    else if (this.#phase === "ending") report("G16", `${what} was requested after the last turn of ${this.id}.`);
    else if (this.#phase === "parked") report("G25", `${what} was requested while ${this.id} was parked.`);
  }

  /** The run is parked or recovered. Calls that can be begun again are kept; all other work has ended before. */
  #keepsWhatItMay(what: string, report: Report): void {
    this.#questions.setDown(report);
    const kept = [...this.#calls].filter(([id, call]) => this.#canBeginAgain(id, call));
    for (const [id] of kept) this.#calls.delete(id);
    this.#ownsNothing(what, report);
    for (const [id, call] of kept) this.#calls.set(id, call);
  }

  #canBeginAgain(id: CallId, { byEnd, phase, idempotent }: CallCheck): boolean {
    if (!byEnd || phase !== "running") return false;
    // A call that was kept when the run was parked waited for an approval then; the answer may have come since.
    return idempotent || this.#questions.isWaiting(id) || this.#phase === "parked";
  }

  #ownsNothing(what: string, report: Report): void {
    if (this.turn !== undefined) report("G17", `${this.id} ${what} while ${this.turn} was live.`);
    else if (this.#calls.size > 0) report("G17", `${this.id} ${what} before ${this.#callNames()} had a result.`);
    this.turn = undefined;
    this.#calls.clear();
  }

  #callNames(): string {
    return [...this.#calls.keys()].join(", ");
  }
}
