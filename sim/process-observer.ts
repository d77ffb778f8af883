// Compares what is recorded of processes, and what calls are told of them, with the world in which they really run.
// Shares no rule with `decide`.
import { toControlError } from "../src/core/errors.ts";
import { INBOX_ITEMS_MAX, UNINTERRUPTED_PERCENT } from "../src/core/limits.ts";
import type { Event } from "../src/core/model/event.ts";
import type { CallId, ProcessId, Seq, SessionId } from "../src/core/model/ids.ts";
import type { SessionState } from "../src/engine/log/session-state.ts";
import type { LiveCall } from "../src/ports/agent.ts";
import type { CommandResult, ProcessResult } from "../src/ports/spawner.ts";
import type { ScriptedChild } from "../src/testing/scripted-child.ts";
import type { Facts } from "./facts.ts";
import { GRACE_MS, type Life } from "./life.ts";
import { isBackground, type ProcessFacts, processIn, reports } from "./process-book.ts";
import type { ProcessWatch } from "./process-user.ts";
import type { ProcessWorld } from "./process-world.ts";

interface Parts {
  readonly facts: Facts;
  readonly world: ProcessWorld;
  readonly life: () => Life;
  /** The stop that was received before a process with this command came into being, if it covers that. */
  readonly stoppedBefore: (one: ProcessFacts, command: string) => string | undefined;
  readonly violate: (rule: string, message: string) => void;
}

type Settled = Extract<Event, { type: "process.settled" }>;

/** What a store in trouble answers when nothing of a batch was written. */
const STORE_REFUSALS: ReadonlySet<string> = new Set(["store_full", "store_locked", "store_corrupt"]);

export class ProcessObserver implements ProcessWatch {
  /** Processes of this life whose stop has been decided: they do not come into being any more. */
  readonly stopped = new Set<ProcessId>();
  /** Results of this life that nobody could be told. */
  dropped = 0;
  /** When the stop of the call of a process that was not asked to end yet was seen. */
  readonly #patient = new Map<ProcessId, number>();
  readonly #parts: Parts;
  readonly #facts: Facts;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#facts = parts.facts;
  }

  lifeOver(): void {
    this.dropped = 0;
  }

  /** What is on the disk from now on, fact by fact. */
  recorded(session: SessionId, first: Seq, events: readonly Event[]): void {
    events.forEach((event, index) => {
      this.#before(session, event, first + index);
      this.#facts.processes.note(session, event, first + index);
      if (event.type === "process.settled") this.#settled(event, first + index);
      else if (event.type === "call.settled") this.#callSettled(session, event, first + index);
    });
  }

  #before(session: SessionId, event: Event, seq: Seq): void {
    if (event.type === "inbox.taken") {
      for (const item of event.items) this.#told(processIn(item));
    } else if (event.type === "process.requested") {
      this.#requested(session, event, seq);
    } else if (event.type === "run.accepted" && event.wake === true) {
      if ((this.#facts.processes.waking.get(session)?.size ?? 0) === 0) {
        this.#violate("G22", `${event.runId} was begun for a result that nobody waits to tell.`);
      }
      const busy = [...this.#facts.runs.values()].some(
        (run) => run.session === session && run.acceptedAt < seq && (run.settledAt ?? Infinity) > seq,
      );
      if (busy) this.#violate("G22", `${event.runId} was begun although a turn comes by itself.`);
    }
  }

  /** A call that is being stopped begins nothing, also not in the background. Its command says whose it is. */
  #requested(session: SessionId, event: Extract<Event, { type: "process.requested" }>, seq: Seq): void {
    const { processId, command } = event;
    const call = typeof command === "string" ? command.slice("of ".length) : "";
    const work = this.#facts.works.get(call as CallId);
    const run = work === undefined ? undefined : this.#facts.runs.get(work.runId);
    // An interrupt stops what goes on once it is durable, because it can be refused until then.
    const cancel = work?.cancel ?? (run?.cancel?.reason.kind === "superseded" ? undefined : run?.cancel);
    const { waiting, going } = this.#facts.processes.room(session);
    if (reports(event) && waiting + going >= INBOX_ITEMS_MAX)
      this.#violate("G33", `${processId} has no place for its result.`);
    if (cancel !== undefined && cancel.at < seq)
      this.#violate("G11", `${processId} was begun by ${call}, which is being stopped.`);
  }

  #told(id: ProcessId | undefined): void {
    const one = this.#find(id);
    if (one === undefined) return;
    if (one.heard.length > 0) this.#violate("G22", `The model is told how ${id} ended, which a call has told.`);
  }

  #callSettled(session: SessionId, event: Extract<Event, { type: "call.settled" }>, seq: Seq): void {
    const { callId, outcome } = event;
    for (const one of this.#facts.processes.all.values()) {
      if (one.owner !== callId || one.settled !== undefined) continue;
      if (this.#parts.world.lives(one.id)) this.#violate("G19", `${callId} is settled, and ${one.id} goes on.`);
    }
    if (outcome.kind !== "completed") return;
    const actor = this.#parts.life().actors.calls.findLast((one) => one.id === callId && one.end === "completed");
    if (actor !== undefined) this.#facts.processes.heard(session, actor.processes.told, seq);
  }

  #settled(event: Settled, seq: Seq): void {
    const one = this.#find(event.processId);
    if (one === undefined) return; // `verify` finds it.
    if (this.#parts.world.lives(one.id) && !this.#wasTakenOver(event)) {
      this.#violate("G15", `${one.id} is recorded as ended, and is alive.`);
    }
    if (event.dropped === true) this.dropped += 1;
    this.#checkTruth(one, event, seq);
  }

  /** A driver that takes over records the loss of what the one before it had to kill, without having seen it die. */
  #wasTakenOver({ processId, exit }: Settled): boolean {
    return exit === undefined && this.#parts.world.children.get(processId)?.child.signals.includes("SIGKILL") === true;
  }

  /** What is recorded is what happened in the world, as far as whoever recorded it could know. */
  #checkTruth(one: ProcessFacts, { outcome }: Settled, seq: Seq): void {
    const { world } = this.#parts;
    const life = this.#parts.life();
    const known = world.children.get(one.id);
    const end = known?.child.end;
    const witnessed = known?.life === life.number && !life.release;
    const lie = (why: string): void => this.#violate("G15", `${one.id} is recorded as ${outcome.kind}: ${why}.`);
    switch (outcome.kind) {
      case "completed":
        if (end === undefined) lie("nothing of it has ended");
        else if (end.stopped && this.#stoppedBy(one, seq)) lie("it was stopped");
        return;
      case "cancelled":
        if (!this.#stoppedBy(one, seq)) lie("nobody had asked for that");
        if (witnessed && end?.stopped === false) lie("it had ended by itself");
        return;
      case "failed":
        if (witnessed) lie("it was started");
        // Nor is it started if the store does not say in time that it was recorded.
        if (!world.refused.has(one.id) && life.phase !== "closing" && life.faults === 0) lie("it could be started");
        return;
      case "lost":
        if (witnessed) lie("its worker is still there");
        if (this.#stoppedBy(one, seq)) lie("it was being stopped");
    }
  }

  /** Whether a stop that reaches it is in the log by now: its own, or that of what it belongs to. */
  #stoppedBy(one: ProcessFacts, seq: Seq): boolean {
    if (one.cancel !== undefined) return true;
    const call = this.#facts.works.get(one.owner as CallId);
    if (call === undefined) return false;
    const run = this.#facts.runs.get(call.runId);
    const asked = (cancel: { readonly at: Seq } | undefined): boolean => cancel !== undefined && cancel.at < seq;
    // With its call, or its run, whatever has ended that one.
    const { reason } = one.settled?.outcome.kind === "cancelled" ? one.settled.outcome : { reason: undefined };
    const parent =
      (reason?.kind === "parent" && (reason.id === one.owner || reason.id === call.runId)) ||
      (reason?.kind === "shutdown" && this.#parts.life().phase === "closing");
    return asked(call.cancel) || asked(run?.cancel) || parent;
  }

  /** A child comes into being. */
  born(child: ScriptedChild): void {
    const { id } = child.request;
    const one = this.#find(id);
    if (one === undefined) {
      this.#violate("G11", `${id} was started before its request was durable.`);
      return;
    }
    if (one.settled !== undefined) this.#violate("G11", `${id} was started after its end was recorded.`);
    const stop = this.#parts.stoppedBefore(one, String(child.request.command));
    if (stop !== undefined) this.#violate("G11", `${id} was started after ${stop} was received.`);
    // An interrupt stops it once the engine has heard that it is durable.
    const run = this.#facts.runs.get(this.#facts.works.get(one.owner as CallId)?.runId ?? "run_");
    const interrupted = run?.cancel?.reason.kind === "superseded" && one.cancel === undefined;
    if (this.stopped.has(id) || (this.#stoppedBy(one, Infinity) && !interrupted)) {
      this.#violate("G11", `${id} was started after its stop was decided.`);
    }
  }

  /** A stop that was decided has reached the child in the same tick, before any disk was asked. */
  stopAtOnce({ decided, durable }: SessionState): void {
    const { live: run, processes } = decided;
    for (const one of processes.live) {
      const { id, phase, owner } = one;
      const call = run?.live.find((one) => one.id === owner);
      // An interrupt can still be refused by the store, and then nothing may have happened.
      const refusable =
        run?.phase === "stopping" && run.reason.kind === "superseded" && durable.live?.phase === "running";
      const stops =
        phase === "stopping" || call?.phase === "stopping" || (call !== undefined && run?.phase === "stopping");
      if (!stops || (refusable && phase !== "stopping" && call?.phase !== "stopping")) continue;
      this.stopped.add(id);
      const known = this.#parts.world.children.get(id);
      // It may exist since this very tick, and nobody has heard of it yet: then that is the first it is told.
      if (this.#parts.life().engine.processes.get(id)?.child !== known?.child) continue;
      if (known === undefined || known.child.end !== undefined) continue;
      const isAlone = one.phase === "stopping" && one.reason.kind !== "shutdown";
      this.#checkAsked(known.child, isAlone ? undefined : owner);
    }
  }

  /** A stopped child was asked to end in that tick, unless it was stopped with a call that cannot be interrupted. */
  #checkAsked({ request: { id }, stops }: ScriptedChild, owner: CallId | SessionId | undefined): void {
    // By the time that it was given: one that was stopped earlier, with its call, has less of the grace period left.
    const isAtOnce = !this.#patient.has(id) && (stops[0] ?? 0) > (GRACE_MS * (100 - UNINTERRUPTED_PERCENT)) / 100;
    const time = owner === undefined ? "none" : this.#timeOf(id, owner);
    if (stops.length === 0 && time === "none") {
      this.#violate("G28", `${id} was not asked to end when its stop was decided.`);
    }
    if (time === "some" && isAtOnce) {
      this.#violate("G12", `${id} was asked to end at once, although its call cannot be interrupted.`);
    }
  }

  /**
   * The command of a call that cannot be interrupted is asked to end when part of the grace period is over. What a call
   * leaves when it returns is asked at once; the engine learns of that some microtasks later, so it may be `either`.
   */
  #timeOf(id: ProcessId, owner: CallId | SessionId): "some" | "none" | "either" {
    const { actors, engine } = this.#parts.life();
    const now = engine.clock.elapsed();
    const since = this.#patient.get(id) ?? now;
    this.#patient.set(id, since);
    const deaf = actors.calls.find((actor) => actor.id === owner && !actor.hears);
    if (deaf === undefined || now - since > (GRACE_MS * UNINTERRUPTED_PERCENT) / 100) return "none";
    return deaf.end === undefined ? "some" : "either";
  }

  // What calls are told.

  goesOn(id: ProcessId): boolean {
    const ended = this.#find(id)?.settled !== undefined || this.#parts.world.children.get(id)?.child.end !== undefined;
    return !ended;
  }

  told({ callId }: LiveCall, result: ProcessResult): void {
    if (this.#isOver()) return;
    this.#checkResult(callId, result);
  }

  ran({ callId }: LiveCall, ran: CommandResult): void {
    if (this.#isOver()) return;
    const id = ran.kind === "background" ? ran.process.id : ran.processId;
    const one = this.#find(id);
    if (one === undefined || (ran.kind === "background") !== isBackground(one)) {
      this.#violate("G16", `${callId} was told that ${id} ${ran.kind}, and the log says otherwise.`);
    }
  }

  refused({ callId }: LiveCall, error: unknown, waits: number): void {
    // Whoever is stopped while it waits is told so.
    if (this.#isOver() || (error instanceof Error && error.name === "AbortError")) return;
    const { code, cause } = toControlError(error);
    if (code === "internal") this.#violate("G28", `${callId} was refused a process: ${String(cause ?? error)}`);
    // Its processes are those that it waits for: one that lives is started, and may be moved to the background.
    const left = [...this.#facts.processes.all.values()].find(({ id, owner }) => owner === callId && this.goesOn(id));
    if (waits > 0 || left === undefined || !STORE_REFUSALS.has(code)) return;
    if (this.#parts.world.children.has(left.id)) this.#violate("G28", `${left.id} was not moved: ${code}.`);
  }

  #checkResult(who: string, { processId: id, outcome }: ProcessResult): void {
    const settled = this.#find(id)?.settled;
    if (JSON.stringify(settled?.outcome) !== JSON.stringify(outcome)) {
      this.#violate("G16", `${who} was told that ${id} is ${outcome.kind} before that was durable, or wrongly.`);
    }
  }

  #find(id: ProcessId | undefined): ProcessFacts | undefined {
    return id === undefined ? undefined : this.#facts.processes.all.get(id);
  }

  #isOver(): boolean {
    return this.#parts.life().phase === "over";
  }

  #violate(rule: string, message: string): void {
    this.#parts.violate(rule, message);
  }
}

/** A result that the model is to hear, if there is still somebody to tell. */
export function isTellable(one: ProcessFacts): boolean {
  const kind = one.settled?.outcome.kind;
  return isBackground(one) && one.feedback !== "silent" && (kind === "completed" || kind === "lost");
}

export const isOwed = (one: ProcessFacts): boolean => isTellable(one) && one.open;
