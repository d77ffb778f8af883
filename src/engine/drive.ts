// Where a run meets the world: what the state demands is begun or stopped, once each.
//
// Invariants
// 1. Nothing begins before its request is durable: a call that began unrecorded could be begun twice.
// 2. Nothing begins once its stop is decided.
// 3. What is asked to stop has a limit; then it is given up, named, and what it says later is dropped.
import type { CancelReason } from "../core/cancel.ts";
import { mayBegin, mayStop } from "../core/covers.ts";
import { demand } from "../core/demand.ts";
import type { Work } from "../core/ids.ts";
import type { Lane } from "../core/lane.ts";
import { PROCESS_GRACE_EXTRA_MS, TURN_GRACE_EXTRA_MS } from "../core/limits.ts";
import type { Clock } from "../ports.ts";
import type { LiveLane } from "./live-lane.ts";
import type { LiveWork } from "./live-work.ts";

export interface World {
  /** False once the worker leaves: what is live is set down or stopped, and nothing new begins. */
  begins(): boolean;
  /** The handle of a piece of work the state demands; made when it is first met. Undefined: nobody here can do it. */
  handle(lane: LiveLane, work: Work): LiveWork | undefined;
  /** A call whose request is in the log although whoever asked was refused: the answer of the store was lost. */
  unbegun(lane: LiveLane, work: Work): void;
}

export class Drive {
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #world: World;

  constructor(parts: { readonly clock: Clock; readonly graceMs: number; readonly world: World }) {
    this.#clock = parts.clock;
    this.#graceMs = parts.graceMs;
    this.#world = parts.world;
  }

  /** Begins and stops what the state demands. What is already live, or already stopping, is left alone. */
  satisfy(lane: LiveLane): void {
    const run = lane.decided.live;
    // Without the lease it is another worker's to carry out, or nobody's until the lease has run out.
    if (run === undefined || lane.epoch === undefined) return; // @fault bystander-drives
    for (const effect of demand(run)) {
      // @fault refused-interrupt-stops
      if (effect.type === "stop" && !mayStop(lane.decided, lane.durable, effect.reason)) continue;
      const durable = asksFor(lane.durable, effect.work);
      // A handle made for a request that is then refused would be left over.
      // @fault begun-before-durable
      if (effect.type === "begin" && !(this.#world.begins() && begins(lane, effect.work))) continue;
      const work = this.#world.handle(lane, effect.work);
      if (work === undefined) {
        if (durable) this.#world.unbegun(lane, effect.work); // @fault unrecorded-call-stays-open
      } else if (effect.type === "stop") {
        if (!onlyWaits(lane, work)) this.stop(lane, work, effect.reason); // @fault stopped-before-it-is-known
      } else if (work.phase === "waiting") {
        work.phase = "live";
        work.owner.begin();
      }
    }
  }

  /** A stop was decided: what it covers is stopped in its tick, whatever the store does. */
  stopAll(lane: LiveLane, ids: readonly Work[], reason: CancelReason): void {
    for (const id of ids) {
      const work = lane.work(id);
      if (work !== undefined) this.stop(lane, work, reason);
    }
  }

  /** Asks a piece of work to stop, in this very tick. Never waits; a second request changes nothing. */
  stop(lane: LiveLane, work: LiveWork, reason: CancelReason): void {
    switch (work.phase) {
      case "waiting":
        work.phase = "abandoned";
        work.scope.cancel(reason);
        work.owner.giveUp(reason, "unbegun");
        this.#noteStill(lane);
        return;
      case "live":
        work.phase = "stopping";
        work.scope.cancel(reason);
        // @fault grace-without-end, grace-cut-short
        work.takeBackGrace = this.#clock.after(this.#graceFor(lane, work), () => this.#abandon(lane, work, reason));
        return;
      case "stopping":
      case "abandoned":
      case "ended":
        return;
    }
  }

  /** Somebody else drives this lane: all that goes on here is stopped. What has ended may still wait for an answer. */
  letGo(lane: LiveLane): void {
    for (const work of [...lane.works]) this.stop(lane, work, { kind: "shutdown" });
    this.leave(lane);
  }

  /** Nobody is left who could wait for it: it is told to stop, also if nothing had told it so far, and that is all. */
  leave(lane: LiveLane): void {
    for (const work of [...lane.works]) work.scope.cancel({ kind: "shutdown" });
  }

  /** Its own end arrived. False: it comes too late to count. */
  ended(lane: LiveLane, work: LiveWork): boolean {
    work.takeBackGrace?.();
    work.takeBackGrace = undefined;
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
  forget(lane: LiveLane, work: LiveWork): void {
    const at = lane.works.indexOf(work); // @fault cleanup-removes-another
    if (at !== -1) lane.works.splice(at, 1);
    this.#noteStill(lane);
  }

  /** Resolves when nothing of this lane is going on in the world. */
  still(lane: LiveLane): Promise<void> {
    if (!lane.works.some(isGoingOn)) return Promise.resolve();
    return new Promise((resolve) => {
      lane.still = [...lane.still, resolve];
    });
  }

  #noteStill(lane: LiveLane): void {
    if (lane.still.length === 0 || lane.works.some(isGoingOn)) return;
    const waiting = lane.still;
    lane.still = [];
    for (const resolve of waiting) resolve();
  }

  #abandon(lane: LiveLane, work: LiveWork, reason: CancelReason): void {
    work.phase = "abandoned";
    work.owner.giveUp(reason, "abandoned");
    this.#noteStill(lane);
  }

  /** A turn that waits for its calls gets a moment to end after the last of them was given up. */
  #graceFor(lane: LiveLane, work: LiveWork): number {
    const waits =
      work.id.startsWith("turn_") && lane.works.some((other) => other.id.startsWith("call_") && isGoingOn(other));
    // Their death is verified after the forced kill, and only then is the call over.
    const killing = lane.decided.processes.live.length === 0 ? 0 : PROCESS_GRACE_EXTRA_MS;
    return this.#graceMs + killing + (waits ? TURN_GRACE_EXTRA_MS : 0);
  }
}

const isGoingOn = (work: LiveWork): boolean => work.phase !== "ended" && work.phase !== "abandoned";

/** A call that waits for an approval does nothing: its stop can wait until it is known that no answer came before. */
function onlyWaits(lane: LiveLane, { id, owner, phase }: LiveWork): boolean {
  const idle = owner.waits === "approval" || phase === "waiting";
  return idle && goesOn(lane) && lane.durable.live?.live.find((call) => call.id === id)?.phase === "running";
}

/** A run whose stop can still be refused goes on like any other. */
function goesOn({ decided, durable }: LiveLane): boolean {
  const run = decided.live;
  return run?.phase === "running" || (run?.phase === "stopping" && !mayStop(decided, durable, run.reason));
}

/** The log may hold a stop that is not known here: then nothing begins before it has been read. */
const begins = ({ health, decided, durable }: LiveLane, work: Work): boolean =>
  health.kind !== "unknown" && mayBegin(decided, durable, work);

const asksFor = (lane: Lane, work: Work): boolean => lane.live?.live.some((call) => call.id === work) === true;
