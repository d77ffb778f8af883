// The lanes this worker has in memory. A lane is loaded when it is needed and let go when it is idle.
//
// Invariants
// 1. One LiveLane per session at a time; whoever needs it asks here, each time.
// 2. A lane whose log has a live run that nobody drives, or a process, is recovered before any other command is
//    decided.
// 3. A lane is let go for room only while nothing of it is on its way: what was accepted would not be begun.

import { type ControlError, toControlError } from "../core/control-error.ts";
import type { Resume } from "../core/decide-run.ts";
import type { RunId, SessionId, WorkerId } from "../core/ids.ts";
import { emptyLane, evolve, type Lane } from "../core/lane.ts";
import { IDLE_LANES_MAX, LEASE_TTL_MS } from "../core/limits.ts";
import type { Loaded, Store } from "../ports.ts";
import type { Commit } from "./commit.ts";
import { LiveLane } from "./live-lane.ts";

interface Parts {
  readonly store: Store;
  readonly worker: WorkerId;
  readonly resume: Resume;
  readonly commit: () => Commit;
  /** While we shut down, what another worker left is the next one's to recover. */
  readonly open: () => boolean;
  readonly ready: (lane: LiveLane) => void;
  /** For room. Another worker may go on with it, and nobody here would be told. */
  readonly letGo: (session: SessionId) => void;
  /** The store could not load this session. There may be work in it that only we can do, since the lease is ours. */
  readonly unloaded: (session: SessionId) => void;
}

export class Lanes {
  readonly #parts: Parts;
  readonly #lanes = new Map<SessionId, LiveLane>();
  readonly #idle = new Set<LiveLane>();
  /** What lanes that were let go still had on its way to the store. */
  readonly #landing = new Map<SessionId, Promise<void>>();
  /** The session of every run that waits or is live here, so that a cancel by run id finds it in the same tick. */
  readonly #homes = new Map<RunId, SessionId>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The session's lane; if it is not in memory it is loaded, and what is submitted meanwhile waits in its mailbox. */
  get(session: SessionId): LiveLane {
    const known = this.#lanes.get(session);
    if (known !== undefined && known.phase !== "gone") return known;
    const lane = new LiveLane(session);
    this.#lanes.set(session, lane);
    void this.#load(lane, this.#landing.get(session));
    return lane;
  }

  /** A session nobody can have written to yet, since its id was made just now: there is nothing to load. */
  fresh(session: SessionId): LiveLane {
    const lane = new LiveLane(session);
    this.#lanes.set(session, lane);
    void this.#begin(lane);
    return lane;
  }

  async #begin(lane: LiveLane): Promise<void> {
    try {
      await this.claim(lane);
    } catch (error) {
      this.drop(lane, toControlError(error));
      return;
    }
    if (lane.phase !== "loading") return;
    lane.phase = "ready";
    this.#parts.commit().pump(lane);
  }

  peek(session: SessionId): LiveLane | undefined {
    return this.#lanes.get(session);
  }

  all(): Iterable<LiveLane> {
    return this.#lanes.values();
  }

  home(run: RunId): SessionId | undefined {
    return this.#homes.get(run);
  }

  /** How many runs are known to wait or to be live here. */
  get homes(): number {
    return this.#homes.size;
  }

  moveIn(run: RunId, session: SessionId): void {
    this.#homes.set(run, session);
  }

  moveOut(run: RunId): void {
    this.#homes.delete(run);
  }

  /** The runs of a session that is not driven here any more. */
  moveAllOut(session: SessionId): readonly RunId[] {
    const runs = [...this.#homes.keys()].filter((run) => this.#homes.get(run) === session);
    for (const run of runs) this.#homes.delete(run);
    return runs;
  }

  /** Lets idle lanes go, oldest first, beyond what may stay in memory. */
  note(lane: LiveLane): void {
    this.#idle.delete(lane);
    if (!lane.idle) return;
    if (lane.durable.phase === "absent") {
      // Somebody asked for a session that does not exist. Nothing of it stays.
      this.forget(lane);
      return;
    }
    this.#idle.add(lane);
    for (const oldest of this.#idle) {
      if (this.#idle.size <= IDLE_LANES_MAX) return;
      // Something was asked of it since: it is noted again once that is recorded.
      if (!oldest.idle) continue;
      this.forget(oldest);
      this.#parts.letGo(oldest.id);
      void this.#release(oldest).catch(ignore);
    }
  }

  forget(lane: LiveLane): void {
    lane.phase = "gone";
    const { id, landing } = lane;
    // Its successor sends nothing before this has landed, so there is never more than one of a session.
    if (landing !== undefined)
      this.#landing.set(
        id,
        landing.finally(() => this.#landing.delete(id)),
      );
    this.#idle.delete(lane);
    if (this.#lanes.get(lane.id) === lane) this.#lanes.delete(lane.id);
  }

  async #load(lane: LiveLane, landing: Promise<void> | undefined): Promise<void> {
    try {
      // What was on its way when the lane was let go is in what is read, or nowhere.
      if (landing !== undefined) await landing;
      // Claimed before it is read: what another driver wrote until then is in it, and later it can write nothing.
      await this.claim(lane);
      const loaded = await this.#parts.store.load(lane.id);
      if (loaded === undefined) await this.#release(lane);
      else lane.durable = fold(lane.id, loaded);
      lane.decided = lane.durable;
      lane.snapshotAt = loaded?.snapshot?.head ?? 0;
    } catch (error) {
      this.drop(lane, toControlError(error));
      this.#parts.unloaded(lane.id); // @fault session-not-loaded-again
      return;
    }
    if (lane.phase === "loading") this.#becomeReady(lane);
    // Let go while it was loaded: whoever comes next need not wait for the lease to run out. Unless that is us.
    else if (lane.epoch !== undefined && !this.#lanes.has(lane.id)) await this.#release(lane).catch(ignore);
  }

  /** Lets a lane go together with what waits in its mailbox. */
  drop(lane: LiveLane, error: ControlError): void {
    this.forget(lane);
    for (const entry of lane.mailbox.splice(0)) entry.reject(error);
  }

  #becomeReady(lane: LiveLane): void {
    for (const run of [...lane.durable.queue, ...lane.durable.steers]) this.#homes.set(run.id, lane.id);
    if (lane.durable.live !== undefined) this.#homes.set(lane.durable.live.id, lane.id);
    const waiting = lane.mailbox.splice(0);
    lane.phase = "ready";
    // @fault processes-not-recovered
    const left = lane.durable.live !== undefined || lane.durable.processes.live.length > 0;
    if (left && lane.epoch !== undefined && this.#parts.open()) {
      void this.#parts.commit().submit(lane, { type: "recover", resume: this.#parts.resume }).catch(ignore);
    }
    lane.mailbox.push(...waiting); // @fault later-cancel-sorted-first
    this.#parts.commit().pump(lane);
    this.#parts.ready(lane);
  }

  /** Takes the right to drive it, unless another worker has it. */
  async claim(lane: LiveLane): Promise<void> {
    // A worker that leaves takes nothing up: whoever comes next would have to wait until its lease has run out.
    if (!this.#parts.open()) return; // @fault leaving-worker-takes-the-lease
    const claim = await this.#parts.store.claim(lane.id, this.#parts.worker, LEASE_TTL_MS);
    lane.epoch = claim.kind === "claimed" ? claim.epoch : undefined;
  }

  async #release(lane: LiveLane): Promise<void> {
    lane.epoch = undefined;
    await this.#parts.store.release(lane.id, this.#parts.worker);
  }
}

function fold(session: SessionId, loaded: Loaded): Lane {
  let lane = loaded.snapshot ?? emptyLane(session);
  for (const event of loaded.events) lane = evolve(lane, event);
  return lane;
}

const ignore = (): void => {};
