// The part of the history checker that follows processes: begun by what goes on, ended with what they belong to,
// settled once and truthfully, and owed to the inbox if somebody is to hear of it.
//
// Invariants
// 1. Remembers the processes that go on and how many there were, nothing else.
// 2. After a finding it goes on from what the log says, so that one mistake is reported once.

import { PROCESSES_LIVE_MAX } from "../limits.ts";
import type { CancelReason, Outcome } from "../model/cancel.ts";
import type { Event, Feedback, ProcessEvent } from "../model/event.ts";
import { type CallId, type ProcessId, type RunId, runOf, type SessionId } from "../model/ids.ts";
import type { InboxCheck, Report } from "./verify-inbox.ts";
import type { LiveCheck } from "./verify-run.ts";

type Of<T extends ProcessEvent["type"]> = Extract<ProcessEvent, { type: T }>;

/** What the rest of the log says where a process event stands. */
export interface ProcessContext {
  /** Undefined if the log was trimmed and does not say. */
  readonly session: SessionId | undefined;
  readonly phase: "absent" | "open" | "closed";
  readonly live: LiveCheck | undefined;
  readonly inbox: InboxCheck;
  /** The log was trimmed: it speaks of processes whose beginning is not kept. */
  readonly partial: boolean;
}

interface ProcessState {
  owner: CallId | SessionId;
  feedback: Feedback;
  /** The first reason recorded for stopping it, itself. */
  reason: CancelReason | undefined;
  /** The run whose call ended before it did. */
  dyingOf?: RunId;
}

/** Processes that were handed to the session, because their call ends and they are still dying. */
interface Handed {
  readonly call: CallId;
  readonly ids: readonly ProcessId[];
  /** A reason that nothing in the log had given: it must be that of the call, or its end. */
  readonly reason: CancelReason | undefined;
}

export class ProcessCheck {
  readonly #live = new Map<ProcessId, ProcessState>();
  #count = 0;
  /** The end of their call must be the next event. */
  #handed: Handed | undefined;
  /** What goes on in the background of a session that was closed: that it is cancelled must come at once. */
  readonly #doomed = new Set<ProcessId>();

  /** Called before anything else is made of an event. */
  follows(event: Event, report: Report): void {
    if (this.#doomed.size > 0 && !CLOSING.has(event.type)) {
      report("G9", `${[...this.#doomed].join(", ")} was not cancelled at once with its session, which was closed.`);
      this.#doomed.clear();
    }
    const handed = this.#handed;
    if (handed === undefined) return;
    if (event.type === "process.detached" && event.dying !== undefined) return;
    if (event.type === "call.settled" && event.callId === handed.call) return;
    this.#handed = undefined;
    report("G19", `${handed.ids.join(", ")} was left to the session as dying, but ${handed.call} went on.`);
  }

  note(event: ProcessEvent, around: ProcessContext, report: Report): void {
    switch (event.type) {
      case "process.requested":
        this.#request(event, around, report);
        return;
      case "process.started":
        this.#find(event.processId, "G16", "started", around, report);
        return;
      case "process.detached":
        this.#detach(event, around, report);
        return;
      case "process.cancel_requested":
        this.#cancel(event, around, report);
        return;
      case "process.settled":
        this.#settle(event, around, report);
        return;
    }
  }

  /** The session was closed: whatever goes on in its background ends with it. */
  closed(): void {
    for (const [id, { owner, reason }] of this.#live) {
      if (!isCall(owner) && reason === undefined) this.#doomed.add(id);
    }
  }

  /** A call has ended. */
  over(call: CallId, outcome: Outcome, partial: boolean, report: Report): void {
    const { ids, reason } = this.#handed ?? { ids: [], reason: undefined };
    this.#handed = undefined;
    if (reason !== undefined && reason.kind !== "parent" && !isCancelledFor(outcome, reason)) {
      report("G15", `A process of ${call} was left as dying for a reason that was never recorded.`);
    }
    if (!partial) checkNamed(call, outcome, ids, report);
    for (const [id, { owner }] of this.#live) {
      if (owner !== call) continue;
      report("G19", `${call} has a result, although its process ${id} has not ended.`);
      this.#live.delete(id);
    }
  }

  /** A run has ended: a cancelled one names the processes of its calls that are still dying. */
  runOver(run: RunId, outcome: Outcome, partial: boolean, report: Report): void {
    if (partial) return;
    checkNamed(
      run,
      outcome,
      [...this.#live].flatMap(([id, { dyingOf }]) => (dyingOf === run ? [id] : [])),
      report,
    );
  }

  /** A run was taken up by another worker: whatever went on under the one before it is gone. */
  recovered(run: string, report: Report): void {
    if (this.#live.size === 0) return;
    report("G20", `${run} was taken up again before ${this.#names()} had ended, which went on under another worker.`);
    this.#live.clear();
  }

  /** A cancel of the session: what was stopped before it begins no run when it ends. */
  quieted(): void {
    for (const one of this.#live.values()) {
      if (one.reason !== undefined && one.feedback === "wake") one.feedback = "next-turn";
    }
  }

  /** Whether its result can be told: it has begun, and it has ended. */
  hasEnded(id: ProcessId, partial: boolean): boolean {
    return !this.#live.has(id) && (partial || numberOf(id) <= this.#count);
  }

  /** Nothing comes any more. */
  atRest(report: Report): void {
    if (this.#handed !== undefined)
      report("G19", `A process was left as dying by ${this.#handed.call}, which has no end.`);
    if (this.#live.size > 0) report("G24", `${this.#names()} has begun and has no outcome.`);
  }

  #request({ processId: id, owner, feedback }: Of<"process.requested">, around: ProcessContext, report: Report): void {
    if (around.phase !== "open") report("G3", `${id} was asked for although the session is ${around.phase}.`);
    if (isCall(owner)) mayBegin(id, owner, around, report);
    else if (around.session !== undefined && owner !== around.session) {
      report("G19", `${id} belongs to ${owner}, which is another session: nobody would end it.`);
    }
    if (!(numberOf(id) > this.#count)) report("G10", `${id} has a number that was used already: it names two.`);
    this.#count = numberOf(id);
    this.#live.set(id, { owner, feedback, reason: undefined });
    if (this.#live.size > PROCESSES_LIVE_MAX) report("G33", `${this.#live.size} processes go on at once.`);
  }

  #detach(event: Of<"process.detached">, around: ProcessContext, report: Report): void {
    const { processId: id, owner, feedback, dying } = event;
    const one = this.#find(id, "G16", "detached", around, report);
    if (around.session !== undefined && owner !== around.session) {
      report("G19", `${id} was handed over to ${owner}, which is another session.`);
    }
    if (one !== undefined && dying !== undefined) {
      this.#handOver(event, one, dying, around, report);
      return;
    }
    if (one !== undefined && stopOf(one, around) !== undefined) {
      report("G9", `${id} was detached although it was being stopped with what it belonged to.`);
    }
    // Also one whose beginning is not kept: what follows is told here.
    if (one !== undefined || around.partial) this.#live.set(id, { owner, feedback, reason: one?.reason ?? dying });
  }

  #handOver(
    { processId: id, owner: session, feedback }: Of<"process.detached">,
    one: ProcessState,
    dying: CancelReason,
    around: ProcessContext,
    report: Report,
  ): void {
    const asked = stopOf(one, around);
    if (asked !== undefined && !same(asked, dying)) {
      report("G10", `${id} was cancelled for one reason and left as dying for another.`);
    }
    const { owner } = one;
    one.reason = asked ?? dying;
    one.feedback = feedback;
    one.owner = session;
    if (!isCall(owner)) {
      report("G19", `${id} was left to the session as dying, but it belonged to no call.`);
      return;
    }
    one.dyingOf = runOf(owner);
    const before = this.#handed?.call === owner ? this.#handed : { ids: [], reason: undefined };
    const reason = asked === undefined && !around.partial ? dying : before.reason;
    this.#handed = { call: owner, ids: [...before.ids, id], reason };
  }

  #cancel({ processId: id, reason }: Of<"process.cancel_requested">, around: ProcessContext, report: Report): void {
    this.#doomed.delete(id);
    const one = this.#find(id, "G10", "cancelled", around, report);
    if (one === undefined) return;
    if (one.reason !== undefined) {
      report("G10", `${id} was cancelled twice; the second request is not kept.`);
      return;
    }
    if (isCall(one.owner) && around.live?.isCancelled(one.owner) === true) {
      report("G10", `${id} was cancelled although it was being stopped with ${one.owner}; the first reason counts.`);
    }
    one.reason = reason;
  }

  #settle(event: Of<"process.settled">, around: ProcessContext, report: Report): void {
    const { processId: id, outcome } = event;
    const one = this.#find(id, "G14", "settled", around, report);
    if (one === undefined) return;
    if (this.#doomed.delete(id)) report("G9", `${id} was not cancelled with its session, which was closed.`);
    if (outcome.kind === "cancelled") this.#cancelled(id, outcome.reason, around, report);
    this.#live.delete(id);
    const ended = outcome.kind === "completed" || outcome.kind === "lost";
    const limited =
      outcome.kind === "cancelled" && (outcome.reason.kind === "timeout" || outcome.reason.kind === "policy");
    const told = (ended || limited) && !isCall(one.owner) && one.feedback !== "silent";
    const wakes = one.feedback === "wake" && !(outcome.kind === "cancelled" && outcome.reason.kind === "policy");
    // Earlier versions did not tell of those that a limit had ended.
    if (told && around.phase !== "closed") around.inbox.oweResult(id, wakes, limited ? "may" : "must");
    const dropped = told && around.phase === "closed";
    if (dropped && !limited && event.dropped !== true)
      report("G22", `What ${id} had to tell was dropped, and the log hides it.`);
    if (!dropped && event.dropped === true) report("G22", `What ${id} had to tell was dropped for no reason.`);
  }

  /** Cancelled if and only if somebody had asked for that, for the reason that was given first. */
  #cancelled(id: ProcessId, reason: CancelReason, around: ProcessContext, report: Report): void {
    const one = this.#live.get(id);
    if (one === undefined) return;
    const asked = stopOf(one, around);
    if (asked !== undefined) {
      if (!same(asked, reason)) report("G10", `${id} was cancelled for one reason and ended with another.`);
    } else if (!isCall(one.owner) || !around.partial || around.live?.id === runOf(one.owner)) {
      report("G15", `${id} ended as cancelled, but nobody had cancelled it.`);
    }
  }

  #find(
    id: ProcessId,
    guarantee: string,
    what: string,
    around: ProcessContext,
    report: Report,
  ): ProcessState | undefined {
    const one = this.#live.get(id);
    if (one === undefined && !around.partial) report(guarantee, `${id} was ${what}, but it was not going on.`);
    return one;
  }

  #names(): string {
    return [...this.#live.keys()].join(", ");
  }
}

/** Nothing begins in a call that is over, set down, or being stopped. */
function mayBegin(id: ProcessId, owner: CallId, { live, partial }: ProcessContext, report: Report): void {
  if (live?.id !== runOf(owner) || !live.owns(owner)) {
    if (!partial) report("G19", `${id} was asked for by ${owner}, which is not going on: nobody would end it.`);
  } else if (live.stopOf(owner) !== undefined) {
    report("G11", `${id} was asked for after ${owner} had been cancelled.`);
  } else if (live.isParked) {
    report("G25", `${id} was asked for while ${live.id} was set down.`);
  }
}

const isCancelledFor = (outcome: Outcome, reason: CancelReason): boolean =>
  outcome.kind === "cancelled" && same(outcome.reason, reason);

function checkNamed(what: CallId | RunId, outcome: Outcome, dying: readonly ProcessId[], report: Report): void {
  if (outcome.kind !== "cancelled") return;
  const named = [...(outcome.dying ?? [])].sort().join(", ");
  const expected = [...dying].sort().join(", ");
  if (named !== expected) report("G12", `${what} names [${named}] as dying; the log has [${expected}].`);
}

/** Why it is to end, by itself or with what it belongs to. */
function stopOf({ owner, reason }: ProcessState, { live }: ProcessContext): CancelReason | undefined {
  return reason ?? (isCall(owner) && live?.id === runOf(owner) ? live.stopOf(owner) : undefined);
}

/** What can stand between the end of a session and the cancels of what goes on in its background. */
const CLOSING: ReadonlySet<Event["type"]> = new Set([
  "session.cancel_requested",
  "run.cancel_requested",
  "question.settled",
  "call.settled",
  "inbox.added",
  "run.settled",
  "process.settled",
  "process.detached",
  "process.cancel_requested",
]);

const isCall = (owner: CallId | SessionId): owner is CallId => owner.startsWith("call_");
const same = (one: CancelReason, other: CancelReason): boolean => JSON.stringify(one) === JSON.stringify(other);
const numberOf = (id: ProcessId): number => Number(id.slice(id.lastIndexOf(".") + 1));
