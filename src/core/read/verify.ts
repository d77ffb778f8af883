// Checks a session's log against the guarantees, from the log alone. `belay verify` reports its findings, and every
// end-to-end test ends with it. Shares no rule with `decide`, so that it finds mistakes there.
//
// Invariants
// 1. One pass. Each run without an outcome has a small bounded state; of a settled run the id is kept, and the key if
//    it had one.
// 2. After a finding it continues with the state of the log, so that one mistake is reported once.

import { ATTEMPTS_MAX } from "../limits.ts";
import type { Outcome } from "../model/cancel.ts";
import type { Event, Recorded } from "../model/event.ts";
import { type RunId, runOf, type Seq } from "../model/ids.ts";
import { InboxCheck, type Report } from "./verify-inbox.ts";
import { ProcessCheck, type ProcessContext } from "./verify-process.ts";
import { joined, returned, type WaitingCheck } from "./verify-queue.ts";
import { LiveCheck, type LiveRunEvent } from "./verify-run.ts";
import { SessionCheck } from "./verify-session.ts";

/** A guarantee that this log breaks, with the position and a message. */
export interface Finding {
  readonly guarantee: string;
  readonly seq: Seq;
  readonly message: string;
}

export interface VerifyOptions {
  /** How often a run may be recovered after crashes. Default: Belay's own limit. */
  readonly attemptsMax?: number;
}

/** Everything in this log that the guarantees rule out. Empty if the log is correct. */
export function verify(events: Iterable<Recorded>, options: VerifyOptions = {}): readonly Finding[] {
  return checked(events, options).findings;
}

/** The same for a log without live work: every accepted run must have an outcome, too. */
export function verifyAtRest(events: Iterable<Recorded>, options: VerifyOptions = {}): readonly Finding[] {
  const check = checked(events, options);
  check.atRest();
  return check.findings;
}

function checked(events: Iterable<Recorded>, options: VerifyOptions): LogCheck {
  const check = new LogCheck(options.attemptsMax ?? ATTEMPTS_MAX);
  for (const event of events) check.note(event);
  return check;
}

type Of<T extends Event["type"]> = Extract<Event, { type: T }>;

class LogCheck {
  readonly findings: Finding[] = [];
  readonly #attemptsMax: number;
  #seq: Seq = 0;
  #begun = false;
  /** The log was trimmed: it may refer to runs whose acceptance was removed. */
  #partial = false;
  readonly #session = new SessionCheck();
  #live: LiveCheck | undefined;
  #queue: WaitingCheck[] = [];
  #steers: WaitingCheck[] = [];
  readonly #settled = new Set<RunId>();
  readonly #keys = new Map<string, RunId>();
  /** A steer that was taken in, whose outcome must follow at once. */
  #taken: { readonly run: RunId; readonly into: RunId } | undefined;
  /** A steer that was requeued although it could be taken in: it must be moved next. */
  #moves: RunId | undefined;
  /** The live run that an interrupt must cancel at once, unless the interrupt was cancelled before it arrived. */
  #interrupts: { readonly live: RunId; readonly by: RunId } | undefined;
  readonly #inbox = new InboxCheck();
  readonly #processes = new ProcessCheck();

  constructor(attemptsMax: number) {
    this.#attemptsMax = attemptsMax;
  }

  note(event: Recorded): void {
    this.#follows(event.seq);
    this.#followsAtOnce(event);
    switch (event.type) {
      case "session.created":
        this.#session.create(event.sessionId, this.#report);
        return;
      case "session.closed":
        this.#session.close(this.#isBusy, this.#report);
        this.#processes.closed();
        return;
      case "session.mode_set":
        this.#session.needsOpen("given a mode", this.#report);
        return;
      case "session.cancel_requested":
        this.#cancelSession(event);
        return;
      case "session.compacted":
        this.#compact(event);
        return;
      case "inbox.added":
        this.#inbox.add(event, (work) => this.#live?.owns(work) === true, this.#partial, this.#report);
        return;
      case "inbox.taken":
        this.#takeItems(event);
        return;
      case "request.answered":
        return; // Repeats an answer; the facts are in the events before it.
      case "run.accepted":
        this.#accept(event);
        return;
      case "run.edited":
      case "run.moved":
      case "run.steered":
        this.#change(event);
        return;
      case "run.requeued":
        this.#requeue(event);
        return;
      case "run.taken":
        this.#take(event);
        return;
      case "run.started":
        this.#start(event);
        return;
      case "run.settled":
        this.#settle(event);
        return;
      case "process.requested":
      case "process.started":
      case "process.detached":
      case "process.cancel_requested":
      case "process.settled":
        this.#processes.note(event, this.#around, this.#report);
        return;
      default:
        this.#noteLive(event);
        return;
    }
  }

  atRest(): void {
    this.#inbox.atRest(this.#report);
    this.#processes.atRest(this.#report);
    if (this.#mustWake) this.#report("G22", "An item in the inbox needs a run, and none was begun for it.");
    const live = this.#live;
    if (live !== undefined) this.#report("G24", `${live.id} has begun and has no outcome.`);
    for (const { id, reason } of [...this.#queue, ...this.#steers]) {
      if (reason === undefined) this.#report("G1", `${id} was accepted and has no outcome.`);
      else this.#report("G8", `${id} was cancelled before it began and has no outcome.`);
    }
  }

  #follows(seq: Seq): void {
    if (!this.#begun) {
      this.#begun = true;
      this.#partial = seq > 1;
      if (this.#partial) this.#session.phase = "open";
    } else if (seq !== this.#seq + 1) {
      this.#seq = seq;
      this.#report("G29", `${seq} does not follow the position before it; the log has a gap or a repetition.`);
    }
    this.#seq = seq;
  }

  /** Some events come in pairs: the second must be the next event. */
  #followsAtOnce(event: Recorded): void {
    this.#session.follows(event, this.#report);
    this.#inbox.follows(event, this.#report);
    this.#processes.follows(event, this.#report);
    this.#live?.follows(event, this.#report);
    this.#wakes(event);
    const { run, into } = this.#taken ?? {};
    if (run !== undefined && !(event.type === "run.settled" && event.runId === run)) {
      this.#taken = undefined;
      this.#report("G5", `${run} was taken into ${into}, but its own outcome did not follow at once.`);
    }
    const moves = this.#moves;
    this.#moves = undefined;
    if (moves !== undefined && !(event.type === "run.moved" && event.runId === moves)) {
      this.#report("G5", `${moves} went back to the queue, though it could still be taken in.`);
    }
    const interrupted = this.#interrupts;
    this.#interrupts = undefined;
    if (interrupted !== undefined && !isInterrupted(event, interrupted)) {
      this.#report("G5", `An interrupt was accepted, but ${interrupted.live} was not cancelled at once.`);
    }
    if (this.#live !== undefined || this.#steers.length === 0) return;
    if (event.type === "run.requeued" || event.type === "run.settled") return;
    const forgotten = this.#steers.map((steer) => steer.id).join(", ");
    this.#report("G5", `The live run ended and ${forgotten} was neither taken in nor put back into the queue.`);
    this.#queue.push(...this.#steers);
    this.#steers = [];
  }

  /** Whether a run waits, or is live and not cancelled. */
  get #isBusy(): boolean {
    return this.#queue.length > 0 || this.#steers.length > 0 || this.#live?.covered === "no";
  }

  /** Whether an item in the inbox needs a run, and none is live or waiting. */
  get #mustWake(): boolean {
    const rests = this.#live === undefined && this.#queue.length === 0 && this.#steers.length === 0;
    return rests && !this.#partial && this.#session.phase === "open" && this.#inbox.wakes;
  }

  /** Then a run must begin at once; only results of other processes may come before it. */
  #wakes(event: Event): void {
    const asked = event.type === "run.accepted" && event.wake === true;
    const ended = event.type === "process.settled" || (event.type === "inbox.added" && event.processId !== undefined);
    if (asked && !this.#mustWake) this.#unlessPartial("G22", `${event.runId} was begun, but no item needed a run.`);
    if (!asked && !ended && this.#mustWake) {
      this.#report("G22", "An item in the inbox needs a run, and none was begun for it at once.");
      this.#inbox.woken();
    }
  }

  #accept({ runId, delivery, key, wake }: Of<"run.accepted">): void {
    if (wake === true) this.#inbox.woken();
    const { phase } = this.#session;
    if (phase !== "open") this.#report("G3", `${runId} was accepted although the session is ${phase}.`);
    if (this.#waits(runId) !== undefined || this.#live?.id === runId || this.#settled.has(runId)) {
      this.#report("G2", `${runId} was accepted twice.`);
      return;
    }
    const earlier = key === undefined ? undefined : this.#keys.get(key);
    if (earlier !== undefined) this.#report("G2", `${runId} was accepted under the key that ${earlier} has.`);
    if (key !== undefined) this.#keys.set(key, runId);
    if (delivery === "reject" && (this.#live !== undefined || this.#queue.length > 0)) {
      this.#report("G5", `${runId} was to be refused by a busy session, and was accepted by one.`);
    }
    const run: WaitingCheck = { id: runId, delivery, acceptedAt: this.#seq, reason: undefined };
    if (delivery === "steer" && this.#live?.takesSteers === true) this.#steers.push(run);
    else this.#queue = joined(this.#queue, run);
    if (delivery === "interrupt" && this.#live?.covered === "no")
      this.#interrupts = { live: this.#live.id, by: run.id };
  }

  #change(event: Of<"run.edited" | "run.moved" | "run.steered">): void {
    const isThis = (one: WaitingCheck): boolean => one.id === event.runId;
    const run = this.#queue.find(isThis) ?? (event.type === "run.edited" ? this.#steers.find(isThis) : undefined);
    const what = event.type.slice("run.".length);
    if (run === undefined) {
      this.#unlessPartial("G6", `${event.runId} was ${what}, but it was not in the queue.`);
      return;
    }
    if (run.reason !== undefined) this.#report("G8", `${run.id} was ${what} after it had been cancelled.`);
    if (event.type === "run.edited") return;
    this.#queue = this.#queue.filter((one) => one !== run);
    if (event.type === "run.moved") {
      if (!(event.index >= 0 && event.index <= this.#queue.length))
        this.#report("G6", `${run.id} was moved to a place that the queue does not have.`);
      this.#queue.splice(event.index, 0, run);
      return;
    }
    if (this.#live?.takesSteers !== true) this.#report("G5", `${run.id} was steered, but no live run can take it in.`);
    this.#steers.push(run);
  }

  #requeue({ runId }: Of<"run.requeued">): void {
    const run = this.#steers.find((one) => one.id === runId);
    if (run === undefined) {
      this.#unlessPartial("G5", `${runId} went back to the queue, but it was not a steer.`);
      return;
    }
    // A steer that was just taken in without the right outcome has been reported already.
    if (this.#live?.takesSteers === true && this.findings.at(-1)?.seq !== this.#seq) this.#moves = runId;
    this.#steers = this.#steers.filter((one) => one !== run);
    this.#queue = returned(this.#queue, run);
  }

  #take({ runId, into, turnId }: Of<"run.taken">): void {
    const run = this.#steers.find((one) => one.id === runId);
    if (run === undefined) {
      this.#unlessPartial("G5", `${runId} was taken in, but it was not a steer.`);
      return;
    }
    if (this.#live?.id !== into || !this.#live.takesInto(turnId)) {
      this.#unlessPartial("G5", `${runId} was taken into ${turnId}, which does not take it.`);
    }
    this.#taken = { run: runId, into };
  }

  #start({ runId }: Of<"run.started">): void {
    const run = this.#queue.find((one) => one.id === runId);
    if (run === undefined) this.#unlessPartial("G4", `${runId} began, but it was not in the queue.`);
    else if (run.reason !== undefined) this.#report("G11", `${runId} began after it had been cancelled.`);
    else if (this.#queue[0] !== run) this.#report("G4", `${runId} began before ${this.#queue[0]?.id}, which is ahead.`);
    if (this.#live !== undefined) this.#report("G4", `${runId} began while ${this.#live.id} was live.`);
    this.#queue = this.#queue.filter((one) => one !== run);
    this.#live = new LiveCheck(runId, this.#attemptsMax, this.#inbox);
  }

  #takeItems({ turnId, items }: Of<"inbox.taken">): void {
    const live = this.#live?.id === runOf(turnId) ? this.#live : undefined;
    if (live?.takesInto(turnId) !== true) {
      this.#unlessPartial("G22", `The inbox was taken for ${turnId}, which cannot receive it.`);
    } else if (live.turn === undefined) {
      this.#inbox.awaits(turnId);
    }
    this.#inbox.take(items, (work) => this.#live?.owns(work) === true, this.#partial, this.#report);
  }

  #compact({ turnId }: Of<"session.compacted">): void {
    if (this.#live?.turn !== turnId) {
      this.#unlessPartial("G16", `${turnId} summarized the session, but it was not live.`);
    } else if (this.#live.covered !== "no") {
      this.#report("G11", `${turnId} summarized the session after its run had been cancelled.`);
    }
  }

  #settle({ runId, outcome }: Of<"run.settled">): void {
    this.#processes.runOver(runId, outcome, this.#partial, this.#report);
    const waiting = this.#waits(runId);
    if (this.#live?.id === runId) {
      this.#live.settle(outcome, this.#report);
      this.#live = undefined;
    } else if (waiting !== undefined) {
      this.#settleWaiting(waiting, outcome);
    } else if (this.#settled.has(runId)) {
      this.#report("G14", `${runId} has a second outcome.`);
    } else {
      this.#unlessPartial("G3", `${runId} has an outcome, but was never accepted.`);
    }
    this.#settled.add(runId);
  }

  #settleWaiting(run: WaitingCheck, outcome: Outcome): void {
    const heard = this.#taken?.into;
    this.#taken = undefined;
    if (outcome.kind === "cancelled") {
      if (heard !== undefined) this.#report("G15", `${run.id} was taken into ${heard} and then ended as cancelled.`);
      else if (run.reason !== undefined && JSON.stringify(run.reason) !== JSON.stringify(outcome.reason)) {
        this.#report("G10", `${run.id} was cancelled for one reason and ended with another.`);
      }
    } else if (outcome.kind !== "completed" || outcome.into === undefined) {
      this.#report("G15", `${run.id} ended as ${outcome.kind}, but it had not begun.`);
    } else if (run.reason !== undefined) {
      this.#report("G15", `${run.id} was cancelled and then ended as ${outcome.kind}.`);
    } else if (outcome.into !== heard) {
      this.#report("G5", `${run.id} ended as taken into ${outcome.into}, which did not take it in.`);
    }
    this.#queue = this.#queue.filter((one) => one !== run);
    this.#steers = this.#steers.filter((one) => one !== run);
  }

  #cancelSession({ covers, reason }: Of<"session.cancel_requested">): void {
    this.#inbox.woken();
    this.#processes.quieted();
    const named = new Set(covers);
    for (const run of [...this.#queue, ...this.#steers]) {
      if (!named.delete(run.id))
        this.#report("G7", `A cancel of the session does not cover ${run.id}, accepted before it.`);
      run.reason ??= reason;
    }
    const live = this.#live;
    if (live !== undefined && live.covered === "no") {
      if (!named.delete(live.id))
        this.#report("G7", `A cancel of the session does not cover ${live.id}, which is live.`);
      live.reason = reason;
      live.covered = "session";
    }
    for (const id of named) {
      this.#unlessPartial("G7", `A cancel of the session covers ${id}, which it cannot reach.`);
    }
  }

  get #around(): ProcessContext {
    const { id: session, phase } = this.#session;
    return { session, phase, live: this.#live, inbox: this.#inbox, partial: this.#partial };
  }

  #noteLive(event: LiveRunEvent & { readonly seq: Seq }): void {
    if (event.type === "run.recovered") this.#processes.recovered(event.runId, this.#report);
    if (event.type === "call.settled") this.#processes.over(event.callId, event.outcome, this.#partial, this.#report);
    if (event.type === "call.settled" || event.type === "turn.settled") {
      this.#inbox.hear(event, (id) => this.#processes.hasEnded(id, this.#partial), this.#report);
    }
    if (this.#live?.id === event.runId) {
      this.#live.note(event, this.#report);
      return;
    }
    if (this.#settled.has(event.runId)) this.#report("G16", `${event.type} of ${event.runId} comes after its outcome.`);
    else this.#unlessPartial("G4", `${event.type} of ${event.runId}, which is not live.`);
  }

  #waits(id: RunId): WaitingCheck | undefined {
    return this.#queue.find((run) => run.id === id) ?? this.#steers.find((run) => run.id === id);
  }

  #unlessPartial(guarantee: string, message: string): void {
    if (!this.#partial) this.#report(guarantee, message);
  }

  readonly #report: Report = (guarantee, message) => {
    this.findings.push({ guarantee, seq: this.#seq, message });
  };
}

const isInterrupted = (event: Recorded, { live, by }: { readonly live: RunId; readonly by: RunId }): boolean =>
  (event.type === "run.cancel_requested" && event.runId === live) ||
  (event.type === "run.settled" && event.runId === by);
