// Begins and stops the work that the state demands, once each.
//
// Invariants
// 1. Nothing begins before its request is durable: a call that began unrecorded could be begun twice.
// 2. Nothing begins once its stop is decided.
// 3. Stopped work has a deadline; then it is abandoned, named, and its late result is dropped.
// 4. A turn that waits for its calls, and a call that waits for its processes, is abandoned only after those have
//    ended. They have the same deadline, so the wait is bounded.

import { RETURN_MS } from "../../core/limits.ts";
import type { CancelReason } from "../../core/model/cancel.ts";
import type { Event } from "../../core/model/event.ts";
import { type CallId, runOf, type Work } from "../../core/model/ids.ts";
import { isRequested, isRunning, mayBegin, mayStop } from "../../core/policy/covers.ts";
import { demand, demandAfter } from "../../core/policy/demand.ts";
import type { Clock } from "../../ports/clock.ts";
import type { SessionState } from "../log/session-state.ts";
import type { AbortQueue } from "./abort-queue.ts";
import { type Deadline, makeDeadline } from "./deadline.ts";
import type { LiveWork } from "./live-work.ts";

export interface WorkStarter {
  /** False once the worker leaves, and while the session waits for a slot: nothing new begins then. */
  begins(lane: SessionState): boolean;
  /** The live work for an id, created on first use. Undefined: this worker cannot run it. */
  handle(lane: SessionState, work: Work): LiveWork | undefined;
  /** Settles a call whose request is recorded although its caller was refused: the store's answer was lost. */
  unbegun(lane: SessionState, work: Work): void;
  /** Whether this call has pending processes: neither recorded as ended, nor past their deadline. */
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
   * Begins and stops what the state demands, except work that is already live or stopping. `events`: all that was
   * recorded since the last time, so that only the work they affect is checked.
   */
  satisfy(lane: SessionState, events?: readonly Event[]): void {
    const run = lane.decided.live;
    // Without the lease the work belongs to another worker, or to none until the lease has expired.
    if (run === undefined || lane.epoch === undefined) return; // @fault bystander-drives
    for (const effect of events === undefined ? demand(run) : demandAfter(run, events)) {
      // @fault refused-interrupt-stops
      if (effect.type === "stop" && !mayStop(lane.decided, lane.durable, effect.reason)) continue;
      // Checked first: live work created for a request that is then refused would be left over.
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

  /** A stop was decided: stops what it covers in this tick, whatever the store does. */
  stopAll(lane: SessionState, ids: readonly Work[], reason: CancelReason, deadline: Deadline): void {
    for (const id of ids) {
      const work = lane.work(id);
      if (work !== undefined) this.stop(lane, work, reason, deadline);
    }
  }

  /** Stops a turn or call in this tick. Never waits; a second stop can only shorten its deadline. */
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

  /** Another worker drives this lane: stops all its work here. Work that has ended may still wait for an answer. */
  release(lane: SessionState): void {
    for (const work of [...lane.works]) this.stop(lane, work, { kind: "shutdown" });
    this.leave(lane);
  }

  /** Cancels all scopes, without waiting: no caller is left that could wait. */
  leave(lane: SessionState): void {
    for (const work of [...lane.works]) work.scope.cancel({ kind: "shutdown" });
  }

  /** This worker has closed: abandons all work and cancels its timers. */
  abandonAll(lane: SessionState): void {
    for (const work of [...lane.works]) {
      work.stopping?.cancelTimer(); // @fault grace-outlives-the-worker
      if (isGoingOn(work)) this.#abandon(lane, work, { kind: "shutdown" });
    }
  }

  /** The work has ended by itself. False: too late to count. */
  ended(lane: SessionState, work: LiveWork): boolean {
    work.stopping?.cancelTimer();
    const counts = work.phase === "live" || work.phase === "stopping"; // @fault late-result-applied:ended
    if (counts) work.phase = "ended";
    this.#noteStill(lane); // @fault begun-again
    return counts;
  }

  /**
   * Its end is recorded, or its request never was. Until then it is kept although it has ended: the state still demands
   * it, so it would be begun again otherwise.
   */
  // @fault begun-again:forget
  forget(lane: SessionState, work: LiveWork): void {
    const at = lane.works.indexOf(work); // @fault cleanup-removes-another
    if (at !== -1) lane.works.splice(at, 1);
    this.#noteStill(lane);
    this.#answered(lane, work);
  }

  /** It has ended, and nothing is recorded, because its run is parked. */
  park(lane: SessionState, work: LiveWork): void {
    work.isParked = true;
    this.#answered(lane, work);
  }

  /** A process of this call has ended: its end is recorded, or its deadline has passed. */
  processOver(lane: SessionState, call: CallId): void {
    const work = lane.work(call);
    if (work !== undefined) this.#waited(lane, work);
  }

  /** A deadline for a stop that is decided now. */
  deadline(): Deadline {
    return makeDeadline(this.#clock, this.#graceMs);
  }

  /** Resolves when no work of this lane is running. */
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

  /** The turn may have been waiting for this call only. */
  #answered(lane: SessionState, { id }: LiveWork): void {
    if (isCall(id)) for (const other of lane.works) if (!isCall(other.id)) this.#waited(lane, other);
  }

  #waited(lane: SessionState, work: LiveWork): void {
    if (work.phase !== "stopping" || work.stopping === undefined) return;
    work.stopping.waitedUntil = this.#clock.elapsed();
    this.#watch(lane, work);
  }

  /** Abandons work at its deadline. If it waits for other work, this is repeated when that has ended. */
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

/** A call that waits for an approval is idle: its stop can wait until it is known that no answer came first. */
function onlyWaits(lane: SessionState, { id, waits, phase }: LiveWork): boolean {
  const idle = waits === "approval" || phase === "waiting";
  return idle && isRunning(lane.decided, lane.durable, id);
}

/** The log may contain a stop that is unknown here: then nothing begins before it has been read. */
const begins = ({ health, decided, durable }: SessionState, work: Work): boolean =>
  health.kind !== "unknown" && mayBegin(decided, durable, work);

const nothing = (): void => {};
