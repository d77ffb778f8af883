// Where a run meets the world: what the state demands is begun or stopped, once each.
//
// Invariants
// 1. Nothing begins before its request is durable: a call that began unrecorded could be begun twice.
// 2. Nothing begins once its stop is decided.
// 3. What is asked to stop has a deadline; then it is given up, named, and what it returns later is dropped.
// 4. A turn that waits for its calls, and a call that waits for its processes, is given up only after those are over.
//    They have the same deadline, so the wait is bounded.

import { RETURN_MS } from "../../core/limits.ts";
import type { CancelReason } from "../../core/model/cancel.ts";
import type { Event } from "../../core/model/event.ts";
import { type CallId, runOf, type Work } from "../../core/model/ids.ts";
import { goesOn, isRequested, mayBegin, mayStop } from "../../core/policy/covers.ts";
import { demand, demandAfter } from "../../core/policy/demand.ts";
import type { Clock } from "../../ports/clock.ts";
import type { SessionState } from "../log/session-state.ts";
import type { AbortQueue } from "./abort-queue.ts";
import { type Deadline, makeDeadline } from "./deadline.ts";
import type { LiveWork } from "./live-work.ts";

export interface WorkStarter {
  /** False once the worker leaves, and while the session waits for a slot: nothing new begins then. */
  begins(lane: SessionState): boolean;
  /** The handle of a piece of work the state demands; made when it is first met. Undefined: nobody here can do it. */
  handle(lane: SessionState, work: Work): LiveWork | undefined;
  /** A call whose request is in the log although whoever asked was refused: the answer of the store was lost. */
  unbegun(lane: SessionState, work: Work): void;
  /** Whether processes of this call are not over: neither recorded as ended, nor past their deadline. */
  hasProcesses(lane: SessionState, call: CallId): boolean;
}

export class Driver {
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #world: WorkStarter;
  readonly #aborts: AbortQueue;

  constructor(parts: {
    readonly clock: Clock;
    readonly graceMs: number;
    readonly world: WorkStarter;
    readonly aborts: AbortQueue;
  }) {
    this.#clock = parts.clock;
    this.#aborts = parts.aborts;
    this.#graceMs = parts.graceMs;
    this.#world = parts.world;
  }

  /**
   * Begins and stops what the state demands. What is already live, or already stopping, is left alone. `events`: only
   * these were recorded since the last time, so that only what they touch is looked at.
   */
  satisfy(lane: SessionState, events?: readonly Event[]): void {
    const run = lane.decided.live;
    // Without the lease it is another worker's to carry out, or nobody's until the lease has run out.
    if (run === undefined || lane.epoch === undefined) return; // @fault bystander-drives
    for (const effect of events === undefined ? demand(run) : demandAfter(run, events)) {
      // @fault refused-interrupt-stops
      if (effect.type === "stop" && !mayStop(lane.decided, lane.durable, effect.reason)) continue;
      // A handle made for a request that is then refused would be left over.
      // @fault begun-before-durable
      if (effect.type === "begin" && !(this.#world.begins(lane) && begins(lane, effect.work))) continue;
      const work = this.#world.handle(lane, effect.work);
      if (work === undefined) {
        // @fault unrecorded-call-stays-open
        if (isRequested(lane.durable, effect.work)) this.#world.unbegun(lane, effect.work);
      } else if (effect.type === "stop") {
        if (!onlyWaits(lane, work)) this.stop(lane, work, effect.reason); // @fault stopped-before-it-is-known
      } else if (work.phase === "waiting") {
        work.phase = "live";
        work.begin();
      }
    }
  }

  /** A stop was decided: what it covers is stopped in its tick, whatever the store does. */
  stopAll(lane: SessionState, ids: readonly Work[], reason: CancelReason, deadline: Deadline): void {
    for (const id of ids) {
      const work = lane.work(id);
      if (work !== undefined) this.stop(lane, work, reason, deadline);
    }
  }

  /** Asks a piece of work to stop, in this very tick. Never waits; a second request can only shorten its time. */
  stop(lane: SessionState, work: LiveWork, reason: CancelReason, deadline = this.deadline()): void {
    switch (work.phase) {
      case "waiting":
        work.phase = "abandoned";
        work.scope.cancel(reason, this.#aborts);
        work.abandon(reason, "unbegun");
        this.#noteStill(lane);
        return;
      case "live":
        work.phase = "stopping";
        work.stopping = { reason, deadline, waitedUntil: 0, cancelTimer: nothing };
        this.#watch(lane, work);
        work.scope.cancel(reason, this.#aborts);
        return;
      case "stopping":
        if (work.stopping === undefined || deadline.stopBy >= work.stopping.deadline.stopBy) return;
        work.stopping.deadline = deadline;
        this.#watch(lane, work);
        return;
      case "abandoned":
      case "ended":
        return;
    }
  }

  /** Somebody else drives this lane: all that goes on here is stopped. What has ended may still wait for an answer. */
  release(lane: SessionState): void {
    for (const work of [...lane.works]) this.stop(lane, work, { kind: "shutdown" });
    this.leave(lane);
  }

  /** Nobody is left who could wait for it: it is told to stop, also if nothing had told it so far, and that is all. */
  leave(lane: SessionState): void {
    for (const work of [...lane.works]) work.scope.cancel({ kind: "shutdown" });
  }

  /** This worker has closed: nothing is waited for, and no timer is left. */
  abandonAll(lane: SessionState): void {
    for (const work of [...lane.works]) {
      work.stopping?.cancelTimer(); // @fault grace-outlives-the-worker
      if (isGoingOn(work)) this.#abandon(lane, work, { kind: "shutdown" });
    }
  }

  /** Its own end arrived. False: it comes too late to count. */
  ended(lane: SessionState, work: LiveWork): boolean {
    work.stopping?.cancelTimer();
    const counts = work.phase === "live" || work.phase === "stopping"; // @fault late-result-applied:ended
    if (counts) work.phase = "ended";
    this.#noteStill(lane); // @fault begun-again
    return counts;
  }

  /**
   * Its end is recorded, or it never came into being. Until then it is kept, although it is over: the state still
   * demands it, and would otherwise have it begun again.
   */
  // @fault begun-again:forget
  forget(lane: SessionState, work: LiveWork): void {
    const at = lane.works.indexOf(work); // @fault cleanup-removes-another
    if (at !== -1) lane.works.splice(at, 1);
    this.#noteStill(lane);
    this.#answered(lane, work);
  }

  /** It has ended, and nothing is recorded of it: its run is parked. */
  park(lane: SessionState, work: LiveWork): void {
    work.isParked = true;
    this.#answered(lane, work);
  }

  /** A process of this call is over: its end is recorded, or its deadline has passed. */
  processOver(lane: SessionState, call: CallId): void {
    const work = lane.work(call);
    if (work !== undefined) this.#waited(lane, work);
  }

  /** A deadline for a stop that is decided now. */
  deadline(): Deadline {
    return makeDeadline(this.#clock, this.#graceMs);
  }

  /** Resolves when nothing of this lane is going on in the world. */
  still(lane: SessionState): Promise<void> {
    if (!lane.works.some(isGoingOn)) return Promise.resolve();
    return new Promise((resolve) => {
      lane.still = [...lane.still, resolve];
    });
  }

  #noteStill(lane: SessionState): void {
    if (lane.still.length === 0 || lane.works.some(isGoingOn)) return;
    const waiting = lane.still;
    lane.still = [];
    for (const resolve of waiting) resolve();
  }

  /** The turn that waits for a call may have been waiting for this one alone. */
  #answered(lane: SessionState, { id }: LiveWork): void {
    if (isCall(id)) for (const other of lane.works) if (!isCall(other.id)) this.#waited(lane, other);
  }

  #waited(lane: SessionState, work: LiveWork): void {
    if (work.phase !== "stopping" || work.stopping === undefined) return;
    work.stopping.waitedUntil = this.#clock.elapsed();
    this.#watch(lane, work);
  }

  /** Gives a piece of work up when its time is over. While it waits for others, that is reviewed when they are. */
  #watch(lane: SessionState, work: LiveWork): void {
    const { stopping } = work;
    if (stopping === undefined) return;
    stopping.cancelTimer();
    if (this.#waits(lane, work)) return;
    const { deadline, waitedUntil, reason } = stopping;
    const { stopBy, deadBy } = deadline;
    const until = waitedUntil > stopBy ? Math.max(deadBy, waitedUntil + RETURN_MS) : stopBy;
    const leftMs = Math.max(0, until - this.#clock.elapsed());
    // @fault grace-without-end, grace-cut-short
    stopping.cancelTimer = this.#clock.after(leftMs, () => this.#abandon(lane, work, reason));
  }

  #waits(lane: SessionState, { id }: LiveWork): boolean {
    if (isCall(id)) return this.#world.hasProcesses(lane, id);
    return lane.works.some((other) => isCall(other.id) && runOf(other.id) === runOf(id) && !other.isParked);
  }

  #abandon(lane: SessionState, work: LiveWork, reason: CancelReason): void {
    work.phase = "abandoned";
    work.abandon(reason, "abandoned");
    this.#noteStill(lane);
  }
}

const isCall = (id: Work): id is CallId => id.startsWith("call_");

const isGoingOn = (work: LiveWork): boolean => work.phase !== "ended" && work.phase !== "abandoned";

/** A call that waits for an approval does nothing: its stop can wait until it is known that no answer came before. */
function onlyWaits(lane: SessionState, { id, waits, phase }: LiveWork): boolean {
  const idle = waits === "approval" || phase === "waiting";
  return idle && goesOn(lane.decided, lane.durable, id);
}

/** The log may hold a stop that is not known here: then nothing begins before it has been read. */
const begins = ({ health, decided, durable }: SessionState, work: Work): boolean =>
  health.kind !== "unknown" && mayBegin(decided, durable, work);

const nothing = (): void => {};
