// The lanes in memory. A lane is loaded when it is needed, and unloaded when it is idle (LRU).
//
// Invariants
// 1. One SessionState per session at a time. Components get it from here each time.
// 2. A lane with a process, or with a live run that has no driver, is recovered before any other command is decided.
// 3. A lane is unloaded only while it has nothing in flight: otherwise accepted work would not begin.

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
  /** While this worker shuts down, the sessions of other workers are left to the next one. */
  readonly open: () => boolean;
  /** Submits the stops that were carried out before the lane was lost and are not recorded. */
  readonly stopped: (lane: SessionState) => void;
  readonly ready: (lane: SessionState) => void;
  /** A lane was unloaded. Another worker may drive it, and this one would not notice. */
  readonly release: (session: SessionId) => void;
  /** The store failed to load this session. This worker may hold its lease, so that no other worker takes it over. */
  readonly unloaded: (session: SessionId, error: ControlError) => void;
}

export class SessionRegistry {
  readonly #parts: Parts;
  readonly #lanes = new Map<SessionId, SessionState>();
  readonly #idle = new RenewedMap<SessionState, true>();
  /** Operations in flight of unloaded lanes: a last batch, or the release of the lease. */
  readonly #leaving = new Map<SessionId, Promise<unknown>>();
  /** The session of every waiting or live run here, so that a cancel by run id finds it in the same tick. */
  readonly #runIndex = new RenewedMap<RunId, SessionId>();
  /** The last process number of lanes that were lost with a batch that may still be written: it is not reused. */
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

  /** The lane of a session that cannot exist yet, because its id was just made: there is nothing to load. */
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

  /** Makes a lane read what others have written, with a batch that finds the head moved. False: there is no lane. */
  readOn(session: SessionId, head: Seq): boolean {
    const lane = this.#lanes.get(session);
    if (lane !== undefined && lane.durable.head < head) this.#parts.commit.readOn(lane);
    return lane !== undefined;
  }

  sessionOf(run: RunId): SessionId | undefined {
    return this.#runIndex.get(run);
  }

  /** Number of waiting and live runs here. */
  get runCount(): number {
    return this.#runIndex.size;
  }

  indexRun(run: RunId, session: SessionId): void {
    this.#runIndex.set(run, session);
  }

  unindexRun(run: RunId): void {
    this.#runIndex.delete(run);
  }

  /** Removes the runs of a session that is no longer driven here, and returns them. */
  unindexSession(session: SessionId): readonly RunId[] {
    const runs = [...this.#runIndex.keys()].filter((run) => this.#runIndex.get(run) === session);
    for (const run of runs) this.#runIndex.delete(run);
    return runs;
  }

  /** A prompt was not acknowledged. While it may still be in the log, a cancel by its id must find it. */
  refused(lane: SessionState, run: RunId): void {
    const isUnclear = lane.health.kind === "unknown" && lane.phase === "ready" && mayBeWritten(lane, run);
    if (isUnclear) lane.refused = [...lane.refused, run];
    else this.unindexRun(run);
  }

  /** The log has been read: removes the prompts that are not in it, and returns them. */
  forgetRefused(lane: SessionState): readonly RunId[] {
    if (lane.health.kind === "unknown") return [];
    const isDurable = (run: RunId): boolean => isOpen(lane.durable, run);
    // A prompt that is sent again may repeat an earlier one.
    const left = lane.refused.filter((run) => !isDurable(run) && mayBeWritten(lane, run));
    const absent = lane.refused.filter((run) => !isDurable(run) && !left.includes(run));
    lane.refused = left;
    for (const run of absent) this.unindexRun(run);
    return absent;
  }

  /** Unloads idle lanes beyond the limit, oldest first. */
  note(lane: SessionState): void {
    this.#idle.delete(lane);
    if (!lane.idle) return;
    if (lane.durable.phase === "absent") {
      // A request named a session that does not exist. Nothing of it stays in memory.
      this.forget(lane);
      return;
    }
    this.#idle.set(lane, true);
    if (this.#idle.size <= IDLE_LANES_MAX) return;
    for (const oldest of this.#idle.keys()) {
      if (this.#idle.size <= IDLE_LANES_MAX) return;
      // It has received a command since: it is noted again once that is recorded.
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

  /** The next lane of this session is loaded only after this has settled, so there is never more than one. */
  #awaitedBySuccessor(id: SessionId, leaving: Promise<unknown>): void {
    const all = Promise.allSettled([this.#leaving.get(id), leaving]).finally(() => {
      if (this.#leaving.get(id) === all) this.#leaving.delete(id);
    });
    this.#leaving.set(id, all);
  }

  async #load(lane: SessionState, leaving: Promise<unknown> | undefined): Promise<void> {
    try {
      // What was in flight when the lane was unloaded is in what is read. If it is written later, this lane reads it
      // then.
      if (leaving !== undefined) await orLimit(this.#parts.clock, leaving, { limitMs: STORE_WAIT_MS });
      // Claimed before it is read: it includes everything another driver wrote, and that driver can write nothing
      // later.
      await this.claim(lane);
      const loaded = await this.#parts.store.load(lane.id);
      if (loaded === undefined || loaded.head === 0) await this.#release(lane);
      if (loaded !== undefined) lane.durable = fold(lane.id, loaded, this.#parts.clock.elapsed());
      lane.decided = lane.durable;
      lane.snapshotAt = loaded?.snapshot?.head ?? 0;
    } catch (error) {
      const failed = toControlError(error);
      this.drop(lane, failed);
      // This worker keeps the lease for the retry: a lease released now could be taken from the next lane.
      this.#parts.unloaded(lane.id, failed); // @fault session-not-loaded-again
      return;
    }
    if (lane.phase === "loading") this.#becomeReady(lane);
    // Unloaded while it was being loaded: releases the lease, so that another worker need not wait for its end.
    else if (lane.epoch !== undefined && !this.#lanes.has(lane.id)) await this.#release(lane).catch(ignore);
  }

  /** Unloads a lane, and rejects the commands it has received. */
  drop(lane: SessionState, error: ControlError): void {
    this.forget(lane);
    for (const entry of lane.received.splice(0)) entry.reject(error);
  }

  #becomeReady(lane: SessionState): void {
    for (const run of [...lane.durable.queue, ...lane.durable.steers]) this.#runIndex.set(run.id, lane.id);
    if (lane.durable.live !== undefined) this.#runIndex.set(lane.durable.live.id, lane.id);
    lane.phase = "recovering";
    // @fault processes-not-recovered
    const left = lane.durable.live !== undefined || lane.durable.processes.live.length > 0;
    // Stops come first: work that was stopped before its worker lost it ends as cancelled.
    this.#parts.stopped(lane);
    if (left && lane.epoch !== undefined && this.#parts.open() && !this.#recover(lane)) return;
    this.#parts.commit.loaded(lane); // @fault later-cancel-sorted-first
    lane.phase = "ready";
    this.#parts.ready(lane);
  }

  /** False: its state contradicts itself. Then nothing of it begins, because what has begun before is unknown. */
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

  /** Claims the lease, unless another worker has it. */
  async claim(lane: SessionState): Promise<void> {
    // A worker that shuts down claims nothing: the next one would have to wait until its lease has expired.
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

/** Whether a run is live or waiting. */
export const isOpen = ({ live, queue, steers }: Lane, runId: RunId): boolean =>
  live?.id === runId || [...queue, ...steers].some(({ id }) => id === runId);

const mayBeWritten = ({ flight, pending }: SessionState, run: RunId): boolean =>
  [...(flight?.entries ?? []), ...pending].some(({ events }) =>
    events.some((event) => event.type === "run.accepted" && event.runId === run),
  );

/** Only the store knows the age of its memos: here they count as new. */
function fold(session: SessionId, loaded: Loaded, now: number): Lane {
  let lane = loaded.snapshot ?? emptyLane(session);
  for (const event of loaded.events) lane = evolve(lane, event);
  return { ...lane, memos: new MemoSet(loaded.memos, now) };
}

const ignore = (): void => {};
