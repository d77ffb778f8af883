// Removes data permanently: the beginning of a log, or a whole session.
//
// Invariants
// 1. What the next request to a model needs is never removed from an open session: a log is cut before the run that
//    made the last summary. Without a summary it is cut between two runs, and the model gets a note.
// 2. Each step is one small write, so that a stop waits for one of them at most.
// 3. A session that is being deleted accepts nothing new. A busy one is not deleted.

import { ControlError } from "../../core/errors.ts";
import { DELETE_WAIT_MS, PAGE_EVENTS_MAX } from "../../core/limits.ts";
import type { CancelReason } from "../../core/model/cancel.ts";
import type { ProcessId, RunId, Seq, SessionId, WorkerId } from "../../core/model/ids.ts";
import { emptyLane, evolve } from "../../core/model/lane.ts";
import type { SessionDeleted, Trimmed, Upkeep } from "../../core/model/upkeep.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { WorkEnds } from "../ends/work-ends.ts";
import type { Commit } from "../log/commit.ts";
import type { Feeds } from "../log/feed.ts";
import type { SessionRegistry } from "../log/session-registry.ts";
import type { SessionState } from "../log/session-state.ts";
import type { ProcessManager } from "../process/process-manager.ts";

/** The parts of the engine that a removal needs. */
export interface RemovalHost {
  readonly store: Store;
  readonly clock: Clock;
  readonly commit: Commit;
  readonly lanes: Pick<SessionRegistry, "get">;
  readonly worker: WorkerId;
  readonly feeds: Pick<Feeds, "remove">;
  readonly processes: Pick<ProcessManager, "discard">;
  readonly ends: Pick<WorkEnds, "process">;
  loaded(session: SessionId): Promise<SessionState | undefined>;
  outcome(runId: RunId): Promise<unknown>;
}

export class Removal {
  readonly #host: RemovalHost;
  readonly #forget: (session: SessionId) => void;

  /** `forget`: the session is gone, and this worker must not take it over again. */
  constructor(host: RemovalHost, forget: (session: SessionId) => void) {
    this.#host = host;
    this.#forget = forget;
  }

  /** Removes the events before a position, as far as possible. */
  async trim(session: SessionId, before: Seq): Promise<Trimmed> {
    const { store } = this.#host;
    const lane = await this.#loaded(session);
    const { head } = lane.durable;
    const contextFrom = await this.#contextFrom(lane);
    const needed = contextFrom > 1 ? contextFrom : before;
    const target = Math.min(before, needed, head + 1);
    await this.#snapshot(lane, target);
    let step = await store.trim(session, target);
    let { removed } = step;
    while (step.more) {
      step = await store.trim(session, target);
      removed += step.removed;
    }
    const { kept } = step;
    const limit = step.limit === "snapshot" ? "run" : step.limit;
    if (kept >= Math.min(before, head + 1)) return { kept, removed };
    return { kept, removed, limit: limit ?? "summary" };
  }

  /** Stops everything in a session, and deletes it. */
  async remove(session: SessionId, reason: CancelReason): Promise<SessionDeleted> {
    const { store, commit, lanes } = this.#host;
    const upkeep = requireUpkeep(store);
    // In the tick of the call: later prompts are refused.
    await commit.submit(lanes.get(session), { type: "close", reason });
    const lane = await this.#loaded(session);
    const events = lane.durable.head;
    await this.#atRest(lane);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      if ((await this.#removeIdle(lane, upkeep)) === "done") return { kind: "deleted", sessionId: session, events };
    }
    throw stillStopping(session);
  }

  /** Deletes an idle session, unless something begins in it meanwhile. */
  async removeIdle(session: SessionId, head: Seq): Promise<"done" | "busy"> {
    const lane = await this.#host.loaded(session);
    if (lane === undefined || !lane.idle || lane.durable.head !== head) return "busy";
    return this.#removeIdle(lane, requireUpkeep(this.#host.store));
  }

  async #removeIdle(lane: SessionState, upkeep: Upkeep): Promise<"done" | "busy"> {
    await this.#snapshot(lane, lane.durable.head + 1);
    const processes = await this.#processes(lane.id);
    for (;;) {
      const step = await upkeep.remove(lane.id);
      if (step === "busy") return "busy";
      if (step === "more") continue;
      this.#removed(lane);
      await this.#host.processes.discard(processes);
      return "done";
    }
  }

  /** Removes it from memory, and ends its followers. */
  #removed(lane: SessionState): void {
    const { store, commit, feeds, worker } = this.#host;
    feeds.remove(lane.id);
    commit.fence(lane);
    this.#forget(lane.id);
    // A lease that cannot be released expires.
    store.release(lane.id, worker).catch(() => {});
  }

  /** The position from which the conversation for a model is read. */
  async #contextFrom(lane: SessionState): Promise<Seq> {
    if (lane.durable.contextFrom === 0) {
      // An earlier version did not record it: the log is read once.
      const contextFrom = await this.#findContext(lane);
      if (lane.durable.contextFrom === 0) lane.durable = { ...lane.durable, contextFrom };
      if (lane.decided.contextFrom === 0) lane.decided = { ...lane.decided, contextFrom };
    }
    return lane.durable.contextFrom;
  }

  async #findContext(lane: SessionState): Promise<Seq> {
    const { store } = this.#host;
    let state = emptyLane(lane.id);
    for (let after = 0; ; after = state.head) {
      const { events } = await store.read(lane.id, { after, limit: PAGE_EVENTS_MAX });
      const [first] = events;
      if (first === undefined) return state.contextFrom;
      // Its beginning was removed: the rest is kept until there is a new summary.
      if (first.seq !== after + 1) return first.seq;
      state = events.reduce(evolve, state);
    }
  }

  async #loaded(session: SessionId): Promise<SessionState> {
    const lane = await this.#host.loaded(session);
    if (lane === undefined) throw new ControlError("not_found", `There is no session ${session}.`);
    return lane;
  }

  /** Removed events must be part of a snapshot, from which the next load starts. */
  async #snapshot(lane: SessionState, before: Seq): Promise<void> {
    if (lane.snapshotAt < before - 1) await this.#host.commit.barrier(lane, "snapshot");
  }

  async #atRest(lane: SessionState): Promise<void> {
    const limit = new AbortController();
    const cancelTimer = this.#host.clock.after(DELETE_WAIT_MS, () => limit.abort(), "idle");
    await this.#ends(lane, limit.signal).finally(cancelTimer);
    if (limit.signal.aborted) throw stillStopping(lane.id);
  }

  /** Resolves when its runs and processes have ended, or `signal` aborts. */
  async #ends({ decided }: SessionState, signal: AbortSignal): Promise<void> {
    const limit = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    const runs = [...(decided.live === undefined ? [] : [decided.live]), ...decided.queue, ...decided.steers];
    const ends = [
      ...runs.map(({ id }) => this.#host.outcome(id)),
      ...decided.processes.live.map(({ id }) => this.#host.ends.process(id, signal)),
    ];
    await Promise.race([Promise.all(ends), limit]);
  }

  async #processes(session: SessionId): Promise<readonly ProcessId[]> {
    const found: ProcessId[] = [];
    for (let before = Number.MAX_SAFE_INTEGER; ; ) {
      const page = await this.#host.store.processes(session, { before, limit: PAGE_EVENTS_MAX });
      found.push(...page.map(({ id }) => id));
      if (page.length < PAGE_EVENTS_MAX) return found;
      before = page.at(-1)?.requestedAt ?? 0;
    }
  }
}

/** Number of attempts if something is recorded in the closed session meanwhile. */
const ATTEMPTS_MAX = 8;

function requireUpkeep({ upkeep }: Store): Upkeep {
  if (upkeep !== undefined) return upkeep;
  throw new ControlError("invalid", "This store cannot delete sessions.", {
    hint: "A custom store needs `upkeep`; see the Store interface.",
  });
}

const stillStopping = (session: SessionId): ControlError =>
  new ControlError("unavailable", `Session ${session} is closed and still stopping. It was not deleted.`, {
    hint: "Delete it again in a moment.",
  });
