// The leases of this worker: it takes over sessions without a driver, renews its leases, and stops in time when it
// cannot.
//
// Invariants
// 1. A worker that could not renew for two thirds of the term has stopped all its work before another may begin.

import { LEASE_RENEW_MS, LEASE_TTL_MS, LOAD_RETRY_LAST_MS, RETRY_LAST_MS } from "../../core/limits.ts";
import type { SessionId, WorkerId } from "../../core/model/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { SessionRegistry } from "./session-registry.ts";
import type { SessionState } from "./session-state.ts";

interface Parts {
  readonly store: Store;
  readonly clock: Clock;
  readonly worker: WorkerId;
  readonly lanes: SessionRegistry;
  readonly open: () => boolean;
  /** This lane is not ours any more. */
  readonly fence: (lane: SessionState) => void;
}

interface Unloaded {
  readonly failures: number;
  /** Its lease may be held by this worker. */
  readonly isOurs: boolean;
  readonly cancelTimer: (() => void) | undefined;
}

export class LeaseKeeper {
  readonly #parts: Parts;
  #renewedAt = 0;
  #dispose: (() => void) | undefined;
  #cancelLimit: (() => void) | undefined;
  /** Released and not taken over again here: the lease may still be held by this worker. */
  readonly #left = new Set<SessionId>();

  /** Sessions that failed to load. Without a timer: being loaded now. */
  readonly #unloaded = new Map<SessionId, Unloaded>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Takes over the sessions that other workers, or an earlier process, have left. Resolves when all have begun to load.
   */
  async start(): Promise<void> {
    const more = await this.#attend();
    if (this.#parts.store.workers === "one") {
      if (more) this.#attendRestLater();
      return;
    }
    this.#renewed(this.#parts.clock.elapsed()); // @fault lease-by-the-wall:start
    this.#renewLater();
  }

  stop(): void {
    this.#dispose?.();
    this.#cancelLimit?.();
    for (const { cancelTimer } of this.#unloaded.values()) cancelTimer?.();
  }

  /**
   * A session failed to load. One timer retries it as long as it has work that no other worker does: soon if the
   * failure may be temporary, otherwise with growing pauses.
   */
  retry(session: SessionId, lease: "ours" | "free", mayPass: boolean): void {
    const { clock, open } = this.#parts;
    const before = this.#unloaded.get(session);
    const isOurs = lease === "ours" || before?.isOurs === true;
    if (!open()) return;
    if (before?.cancelTimer !== undefined) return void this.#unloaded.set(session, { ...before, isOurs });
    const failures = before?.failures ?? 0;
    const pause = Math.min(RETRY_LAST_MS * 2 ** failures, LOAD_RETRY_LAST_MS);
    const cancelTimer = clock.after(pause, () => void this.#loadAgain(session), "idle");
    this.#unloaded.set(session, { failures: mayPass ? 0 : Math.min(failures + 1, 16), isOurs, cancelTimer });
  }

  /** It is no longer driven here. If this worker still holds the lease, no other worker takes it over. */
  left(session: SessionId): void {
    this.#left.add(session);
  }

  /** The session was deleted: it is not taken over. */
  removed(session: SessionId): void {
    this.#left.delete(session);
  }

  /** The session was loaded. */
  loaded(session: SessionId): void {
    this.#unloaded.get(session)?.cancelTimer?.();
    this.#unloaded.delete(session);
  }

  async #loadAgain(session: SessionId): Promise<void> {
    const { store, lanes, open } = this.#parts;
    const unloaded = this.#unloaded.get(session);
    if (unloaded === undefined || !open()) return;
    this.#unloaded.set(session, { ...unloaded, cancelTimer: undefined });
    const lane = lanes.peek(session);
    if (lane?.epoch !== undefined) return this.loaded(session);
    if (lane !== undefined && !lane.atRest) return this.retry(session, "free", true);
    try {
      const wanted = unloaded.isOurs || (await store.unattended(ATTEND_MAX)).includes(session);
      if (!wanted) return this.loaded(session);
    } catch {
      return this.retry(session, "free", true);
    }
    if (lane !== undefined && lanes.peek(session) === lane) lanes.forget(lane);
    lanes.get(session);
  }

  /** Claims sessions with work and without a driver. Returns whether there may be more of them. */
  async #attend(): Promise<boolean> {
    const { store } = this.#parts;
    for (const session of this.#left) if (this.#takeUp(session)) this.#left.delete(session);
    const unattended = await store.unattended(ATTEND_MAX);
    for (const session of unattended) this.#takeUp(session); // @fault nothing-recovered
    return unattended.length >= ATTEND_MAX;
  }

  /** False: it has no lease and commands in flight, so it must be retried. */
  #takeUp(session: SessionId): boolean {
    const { lanes } = this.#parts;
    const lane = lanes.peek(session);
    if (lane !== undefined && lane.epoch === undefined) {
      if (!lane.atRest) return false;
      // Loaded while another worker had the lease: loaded again, to claim the lease and recover interrupted work.
      lanes.forget(lane); // @fault lease-not-taken-over
    }
    lanes.get(session);
    return true;
  }

  /** The only worker of a store renews no leases, and takes over the remaining sessions in the same intervals. */
  #attendRestLater(): void {
    this.#dispose = this.#parts.clock.after(LEASE_RENEW_MS, async () => {
      const more = await this.#attend().catch(() => true);
      if (more && this.#parts.open()) this.#attendRestLater();
    });
  }

  #renewLater(): void {
    this.#dispose = this.#parts.clock.after(LEASE_RENEW_MS, () => void this.#renew(), "idle");
  }

  async #renew(): Promise<void> {
    const { store, worker, clock, lanes, open, fence } = this.#parts;
    const asked = clock.elapsed(); // @fault lease-by-the-wall:asked, lease-counted-from-the-answer:asked
    this.#limit(); // @fault sleep-not-noticed
    // The answer is about these: a session that is claimed meanwhile has a newer lease.
    const driven = new Set([...lanes.all()].filter((lane) => lane.epoch !== undefined));
    try {
      const gone: readonly SessionId[] = await store.renew(worker, LEASE_TTL_MS);
      // The lease counts from the request, not from the answer.
      this.#renewed(asked); // @fault lease-counted-from-the-answer, sleep-not-noticed:renewed
      for (const session of gone) {
        const lane = lanes.peek(session);
        if (lane !== undefined && driven.has(lane)) fence(lane);
      }
      if (open()) await this.#attend();
    } catch {
      // The store fails: it fences every write, and work here is stopped in time.
    }
    if (open()) this.#renewLater();
  }

  #renewed(at: number): void {
    // A delayed answer does not apply to leases that were claimed since.
    this.#renewedAt = Math.max(this.#renewedAt, at);
    this.#limit();
  }

  /** A timer rather than an answer: a store that hangs does not answer at all. */
  #limit(): void {
    const { clock, open } = this.#parts;
    if (!open()) return;
    const leftMs = Math.max(0, this.#renewedAt + HOLD_MS - clock.elapsed()); // @fault lease-by-the-wall:limit
    this.#cancelLimit?.();
    this.#cancelLimit = clock.after(leftMs, () => this.#release(), "idle");
  }

  /** Another worker may drive these soon: stops all their work here. */
  #release(): void {
    for (const lane of [...this.#parts.lanes.all()]) {
      if (lane.epoch === undefined) continue;
      this.#left.add(lane.id);
      this.#parts.fence(lane);
    }
    // Sessions that are claimed while the store is silent count from now.
    this.#renewed(this.#parts.clock.elapsed()); // @fault lease-by-the-wall:let-go
  }
}

/** Two thirds of the term. The rest is the time for stopped work to end. */
const HOLD_MS = Math.floor((LEASE_TTL_MS * 2) / 3);

/** Far more than one worker can have open; the rest is taken over after a pause. */
const ATTEND_MAX = 100_000;
