// The lanes this worker has in memory. A lane is loaded when it is needed and let go when it is idle.
//
// Invariants
// 1. One SessionState per session at a time; whoever needs it asks here, each time.
// 2. A lane whose log has a live run that nobody drives, or a process, is recovered before any other command is
//    decided.
// 3. A lane is let go for room only while nothing of it is on its way: what was accepted would not be begun.

import { ControlError, toControlError } from "../../core/errors.ts";
import { IDLE_LANES_MAX, LEASE_TTL_MS, STORE_WAIT_MS } from "../../core/limits.ts";
import type { RunId, Seq, SessionId, WorkerId } from "../../core/model/ids.ts";
import { emptyLane, evolve, type Lane } from "../../core/model/lane.ts";
import { MemoSet } from "../../core/model/memo-set.ts";
import type { Resume } from "../../core/policy/decide-run.ts";
import { RenewedMap } from "../../core/renewed-map.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Loaded, Store } from "../../ports/store.ts";
import { orLimit } from "../process/process-handle.ts";
import type { Commit } from "./commit.ts";
import { SessionState } from "./session-state.ts";

interface Parts {
  readonly store: Store;
  readonly clock: Clock;
  readonly worker: WorkerId;
  readonly resume: Resume;
  readonly commit: Commit;
  /** While we shut down, what another worker left is the next one's to recover. */
  readonly open: () => boolean;
  /** Submits the stops that were carried out before it was lost and are not recorded. */
  readonly stopped: (lane: SessionState) => void;
  readonly ready: (lane: SessionState) => void;
  /** For room. Another worker may go on with it, and nobody here would be told. */
  readonly release: (session: SessionId) => void;
  /** The store could not load this session. Its lease may be this worker's, so that no other worker takes it up. */
  readonly unloaded: (session: SessionId, error: ControlError) => void;
}

export class SessionRegistry {
  readonly #parts: Parts;
  readonly #lanes = new Map<SessionId, SessionState>();
  readonly #idle = new RenewedMap<SessionState, true>();
  /** What lanes that were let go still have on its way to the store: a last batch, or the release of the lease. */
  readonly #leaving = new Map<SessionId, Promise<unknown>>();
  /** The session of every run that waits or is live here, so that a cancel by run id finds it in the same tick. */
  readonly #homes = new RenewedMap<RunId, SessionId>();
  /** The last number of a process in lanes that were lost with a batch that may still land: it is not used again. */
  readonly #ordinals = new Map<SessionId, number>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The session's lane; if it is not in memory it is loaded, and receives commands meanwhile. */
  get(session: SessionId): SessionState {
    const known = this.#lanes.get(session);
    if (known !== undefined && known.phase !== "gone") return known;
    const lane = new SessionState(session);
    lane.processOrdinal = this.#ordinals.get(session) ?? 0;
    this.#lanes.set(session, lane);
    void this.#load(lane, this.#leaving.get(session));
    return lane;
  }

  /** A session nobody can have written to yet, since its id was made just now: there is nothing to load. */
  fresh(session: SessionId): SessionState {
    const lane = new SessionState(session);
    this.#lanes.set(session, lane);
    void this.#begin(lane);
    return lane;
  }

  async #begin(lane: SessionState): Promise<void> {
    try {
      await this.claim(lane);
    } catch (error) {
      this.drop(lane, toControlError(error));
      return;
    }
    if (lane.phase !== "loading") return;
    lane.phase = "ready";
    this.#parts.commit.loaded(lane);
  }

  peek(session: SessionId): SessionState | undefined {
    return this.#lanes.get(session);
  }

  all(): Iterable<SessionState> {
    return this.#lanes.values();
  }

  /** Has a lane read what was written without it, with a batch that finds the log moved. False: there is no lane. */
  readOn(session: SessionId, head: Seq): boolean {
    const lane = this.#lanes.get(session);
    if (lane !== undefined && lane.durable.head < head) this.#parts.commit.readOn(lane);
    return lane !== undefined;
  }

  sessionOf(run: RunId): SessionId | undefined {
    return this.#homes.get(run);
  }

  /** How many runs are known to wait or to be live here. */
  get homes(): number {
    return this.#homes.size;
  }

  indexRun(run: RunId, session: SessionId): void {
    this.#homes.set(run, session);
  }

  unindexRun(run: RunId): void {
    this.#homes.delete(run);
  }

  /** The runs of a session that is not driven here any more. */
  moveAllOut(session: SessionId): readonly RunId[] {
    const runs = [...this.#homes.keys()].filter((run) => this.#homes.get(run) === session);
    for (const run of runs) this.#homes.delete(run);
    return runs;
  }

  /** A prompt was not acknowledged. While it may still be in the log, a cancel by its id has to find it. */
  refused(lane: SessionState, run: RunId): void {
    const isUnclear = lane.health.kind === "unknown" && lane.phase === "ready" && mayBeWritten(lane, run);
    if (isUnclear) lane.refused = [...lane.refused, run];
    else this.unindexRun(run);
  }

  /** What is in the log is known again: prompts that are not in it are forgotten. Returns those. */
  forgetRefused(lane: SessionState): readonly RunId[] {
    if (lane.health.kind === "unknown") return [];
    const isDurable = (run: RunId): boolean => isOpen(lane.durable, run);
    // One that is sent again may turn out to repeat an earlier one.
    const left = lane.refused.filter((run) => !isDurable(run) && mayBeWritten(lane, run));
    const absent = lane.refused.filter((run) => !isDurable(run) && !left.includes(run));
    lane.refused = left;
    for (const run of absent) this.unindexRun(run);
    return absent;
  }

  /** Lets idle lanes go, oldest first, beyond what may stay in memory. */
  note(lane: SessionState): void {
    this.#idle.delete(lane);
    if (!lane.idle) return;
    if (lane.durable.phase === "absent") {
      // Somebody asked for a session that does not exist. Nothing of it stays.
      this.forget(lane);
      return;
    }
    this.#idle.set(lane, true);
    if (this.#idle.size <= IDLE_LANES_MAX) return;
    for (const oldest of this.#idle.keys()) {
      if (this.#idle.size <= IDLE_LANES_MAX) return;
      // Something was asked of it since: it is noted again once that is recorded.
      if (!oldest.idle) continue;
      this.forget(oldest);
      this.#parts.release(oldest.id);
      void this.#release(oldest).catch(ignore);
    }
  }

  forget(lane: SessionState): void {
    lane.phase = "gone";
    const { id } = lane;
    const landing = lane.flight?.landing;
    lane.cancelRetry();
    if (lane.flight === undefined && lane.health.kind === "well") this.#ordinals.delete(id);
    else if (lane.processOrdinal > 0) this.#ordinals.set(id, lane.processOrdinal);
    if (landing !== undefined) this.#awaitedBySuccessor(id, landing);
    this.#idle.delete(lane);
    if (this.#lanes.get(lane.id) === lane) this.#lanes.delete(lane.id);
  }

  /** The next lane of this session is not loaded before this has settled, so there is never more than one. */
  #awaitedBySuccessor(id: SessionId, leaving: Promise<unknown>): void {
    const all = Promise.allSettled([this.#leaving.get(id), leaving]).finally(() => {
      if (this.#leaving.get(id) === all) this.#leaving.delete(id);
    });
    this.#leaving.set(id, all);
  }

  async #load(lane: SessionState, leaving: Promise<unknown> | undefined): Promise<void> {
    try {
      // What was on its way when the lane was let go is in what is read. If it lands later, this lane reads it then.
      if (leaving !== undefined) await orLimit(this.#parts.clock, leaving, { limitMs: STORE_WAIT_MS });
      // Claimed before it is read: what another driver wrote until then is in it, and later it can write nothing.
      await this.claim(lane);
      const loaded = await this.#parts.store.load(lane.id);
      if (loaded === undefined || loaded.head === 0) await this.#release(lane);
      if (loaded !== undefined) lane.durable = fold(lane.id, loaded, this.#parts.clock.elapsed());
      lane.decided = lane.durable;
      lane.snapshotAt = loaded?.snapshot?.head ?? 0;
    } catch (error) {
      const failed = toControlError(error);
      this.drop(lane, failed);
      // The lease stays this worker's, and is used again: one that were given up now could be taken from the next lane.
      this.#parts.unloaded(lane.id, failed); // @fault session-not-loaded-again
      return;
    }
    if (lane.phase === "loading") this.#becomeReady(lane);
    // Let go while it was loaded: whoever comes next need not wait for the lease to run out. Unless that is us.
    else if (lane.epoch !== undefined && !this.#lanes.has(lane.id)) await this.#release(lane).catch(ignore);
  }

  /** Lets a lane go together with the commands it has received. */
  drop(lane: SessionState, error: ControlError): void {
    this.forget(lane);
    for (const entry of lane.received.splice(0)) entry.reject(error);
  }

  #becomeReady(lane: SessionState): void {
    for (const run of [...lane.durable.queue, ...lane.durable.steers]) this.#homes.set(run.id, lane.id);
    if (lane.durable.live !== undefined) this.#homes.set(lane.durable.live.id, lane.id);
    lane.phase = "recovering";
    // @fault processes-not-recovered
    const left = lane.durable.live !== undefined || lane.durable.processes.live.length > 0;
    // Stops come first: what was stopped before its worker lost it ends as cancelled.
    this.#parts.stopped(lane);
    if (left && lane.epoch !== undefined && this.#parts.open() && !this.#recover(lane)) return;
    this.#parts.commit.loaded(lane); // @fault later-cancel-sorted-first
    lane.phase = "ready";
    this.#parts.ready(lane);
  }

  /** False: its state contradicts itself. Then nothing of it is begun: what has been begun before is not known. */
  #recover(lane: SessionState): boolean {
    let isDecided = false;
    const recover = { type: "recover", resume: this.#parts.resume } as const;
    const recovered = this.#parts.commit.submit(lane, recover, () => {
      isDecided = true;
    });
    recovered.catch(ignore);
    if (isDecided) return true;
    const error = new ControlError("internal", `What was left of session ${lane.id} cannot be recovered.`);
    this.drop(lane, error);
    this.#parts.unloaded(lane.id, error);
    return false;
  }

  /** Takes the right to drive it, unless another worker has it. */
  async claim(lane: SessionState): Promise<void> {
    // A worker that leaves takes nothing up: whoever comes next would have to wait until its lease has run out.
    if (!this.#parts.open()) return; // @fault leaving-worker-takes-the-lease
    const claim = await this.#parts.store.claim(lane.id, this.#parts.worker, LEASE_TTL_MS);
    lane.epoch = claim.kind === "claimed" ? claim.epoch : undefined;
  }

  async #release(lane: SessionState): Promise<void> {
    lane.epoch = undefined;
    const released = this.#parts.store.release(lane.id, this.#parts.worker);
    this.#awaitedBySuccessor(lane.id, released);
    await released;
  }
}

/** Whether a run is live or waits. */
export const isOpen = ({ live, queue, steers }: Lane, runId: RunId): boolean =>
  live?.id === runId || [...queue, ...steers].some(({ id }) => id === runId);

const mayBeWritten = ({ flight, pending }: SessionState, run: RunId): boolean =>
  [...(flight?.entries ?? []), ...pending].some(({ events }) =>
    events.some((event) => event.type === "run.accepted" && event.runId === run),
  );

/** How old its memos are is known to the store alone: here they count as new. */
function fold(session: SessionId, loaded: Loaded, now: number): Lane {
  let lane = loaded.snapshot ?? emptyLane(session);
  for (const event of loaded.events) lane = evolve(lane, event);
  return { ...lane, memos: new MemoSet(loaded.memos, now) };
}

const ignore = (): void => {};
