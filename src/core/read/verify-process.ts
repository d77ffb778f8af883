// The part of the history checker that follows processes: begun by live work, ended with their owner, settled once and
// correctly, and reported to the inbox if their feedback requires it.
//
// Invariants
// 1. Remembers the live processes and how many there were, nothing else.
// 2. After a finding it continues with the state of the log, so that one mistake is reported once.

import { PROCESSES_LIVE_MAX } from "../limits.ts";
import type { CancelReason, Outcome } from "../model/cancel.ts";
import type { Event, Feedback, ProcessEvent } from "../model/event.ts";
import { type CallId, type ProcessId, type RunId, runOf, type SessionId } from "../model/ids.ts";
import type { InboxCheck, Report } from "./verify-inbox.ts";
import type { LiveCheck } from "./verify-run.ts";

type Of<T extends ProcessEvent["type"]> = Extract<ProcessEvent, { type: T }>;

/** The state of the rest of the log at a process event. */
export interface ProcessContext {
  /** Undefined if a trimmed log does not contain it. */
  readonly session: SessionId | undefined;
  readonly phase: "absent" | "open" | "closed";
  readonly live: LiveCheck | undefined;
  readonly inbox: InboxCheck;
  /** The log was trimmed: it may refer to processes whose request was removed. */
  readonly partial: boolean;
}

interface ProcessState {
  owner: CallId | SessionId;
  feedback: Feedback;
  /** The first reason recorded for stopping the process itself. */
  reason: CancelReason | undefined;
  /** The run whose call ended before the process did. */
  dyingOf?: RunId;
}

/** Processes that were handed to the session, because their call ends before they do. */
interface Handed {
  readonly call: CallId;
  readonly ids: readonly ProcessId[];
  /** A reason that the log did not contain before: it must be that of the call, or the call's end. */
  readonly reason: CancelReason | undefined;
}

export class ProcessCheck {
  readonly #live = new Map<ProcessId, ProcessState>();
  #count = 0;
  /** The end of their call must be the next event. */
  #handed: Handed | undefined;
  /** Background processes of a closed session: their cancels must follow at once. */
  readonly #doomed = new Set<ProcessId>();

  /** Called first for each event. */
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
    report("G19", `${handed.ids.join(", ")} was left to the session as dying, but ${handed.call} continued.`);
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

  /** The session was closed: its background processes end with it. */
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

  /** A run has ended: if cancelled, its outcome names the processes of its calls that are still dying. */
  runOver(run: RunId, outcome: Outcome, partial: boolean, report: Report): void {
    if (partial) return;
    checkNamed(
      run,
      outcome,
      [...this.#live].flatMap(([id, { dyingOf }]) => (dyingOf === run ? [id] : [])),
      report,
    );
  }

  /** A run was recovered by another worker: the processes of the previous worker must have ended. */
  recovered(run: string, report: Report): void {
    if (this.#live.size === 0) return;
    report("G20", `${run} was recovered before ${this.#names()} had ended, which ran under another worker.`);
    this.#live.clear();
  }

  /** A cancel of the session: processes that were already stopping begin no run when they end. */
  quieted(): void {
    for (const one of this.#live.values()) {
      if (one.reason !== undefined && one.feedback === "wake") one.feedback = "next-turn";
    }
  }

  /** Whether its result can have been received: it has begun and ended. */
  hasEnded(id: ProcessId, partial: boolean): boolean {
    return !this.#live.has(id) && (partial || numberOf(id) <= this.#count);
  }

  /** At the end of the log. */
  atRest(report: Report): void {
    if (this.#handed !== undefined)
      report("G19", `A process was left as dying by ${this.#handed.call}, which has no end.`);
    if (this.#live.size > 0) report("G24", `${this.#names()} has begun and has no outcome.`);
  }

  #request({ processId: id, owner, feedback }: Of<"process.requested">, around: ProcessContext, report: Report): void {
    if (around.phase !== "open") report("G3", `${id} was requested although the session is ${around.phase}.`);
    if (isCall(owner)) mayBegin(id, owner, around, report);
    else if (around.session !== undefined && owner !== around.session) {
      report("G19", `${id} belongs to ${owner}, which is another session: nothing would stop it.`);
    }
    if (!(numberOf(id) > this.#count)) report("G10", `${id} has a number that was used already: it names two.`);
    this.#count = numberOf(id);
    this.#live.set(id, { owner, feedback, reason: undefined });
    if (this.#live.size > PROCESSES_LIVE_MAX) report("G33", `${this.#live.size} processes are live at once.`);
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
    // Also a process whose request was removed: its later events are in this log.
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
    // Earlier versions did not report processes that a limit had ended.
    if (told && around.phase !== "closed") around.inbox.oweResult(id, wakes, limited ? "may" : "must");
    const dropped = told && around.phase === "closed";
    if (dropped && !limited && event.dropped !== true)
      report("G22", `The result of ${id} was dropped, and the log does not show it.`);
    if (!dropped && event.dropped === true) report("G22", `The result of ${id} was dropped for no reason.`);
  }

  /** Cancelled if and only if a cancel was recorded, with the first reason. */
  #cancelled(id: ProcessId, reason: CancelReason, around: ProcessContext, report: Report): void {
    const one = this.#live.get(id);
    if (one === undefined) return;
    const asked = stopOf(one, around);
    if (asked !== undefined) {
      if (!same(asked, reason)) report("G10", `${id} was cancelled for one reason and ended with another.`);
    } else if (!isCall(one.owner) || !around.partial || around.live?.id === runOf(one.owner)) {
      report("G15", `${id} ended as cancelled, but was not cancelled.`);
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
    if (one === undefined && !around.partial) report(guarantee, `${id} was ${what}, but it was not live.`);
    return one;
  }

  #names(): string {
    return [...this.#live.keys()].join(", ");
  }
}

/** No process begins in a call that has ended, is parked, or is being stopped. */
function mayBegin(id: ProcessId, owner: CallId, { live, partial }: ProcessContext, report: Report): void {
  if (live?.id !== runOf(owner) || !live.owns(owner)) {
    if (!partial) report("G19", `${id} was requested by ${owner}, which is not live: nothing would stop it.`);
  } else if (live.stopOf(owner) !== undefined) {
    report("G11", `${id} was requested after ${owner} had been cancelled.`);
  } else if (live.isParked) {
    report("G25", `${id} was requested while ${live.id} was parked.`);
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

/** Why it must end: its own cancel, or that of its owner. */
function stopOf({ owner, reason }: ProcessState, { live }: ProcessContext): CancelReason | undefined {
  return reason ?? (isCall(owner) && live?.id === runOf(owner) ? live.stopOf(owner) : undefined);
}

/** Events that may come between the end of a session and the cancels of its background processes. */
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
