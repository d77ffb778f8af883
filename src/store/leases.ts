// Leases of lanes, in memory. Independent of storage: both stores in this repository live in one process and use it,
// because there a worker cannot outlive the process.
//
// Invariants
// 1. A lane has at most one holder. An expired lease stays with its holder until another worker claims it.
// 2. Every claim that changes the holder gets a higher epoch than all before; an append with another epoch is fenced.
import type { SessionId, WorkerId } from "../core/model/ids.ts";
import type { Clock } from "../ports/clock.ts";
import type { Claim } from "../ports/store.ts";

interface Lease {
  readonly worker: WorkerId;
  readonly epoch: number;
  readonly until: number;
}

export class Leases {
  readonly #clock: Pick<Clock, "elapsed">;
  readonly #leases = new Map<SessionId, Lease>();
  /** The leases each worker expects to hold; `renew` reports those that it has lost. */
  readonly #expected = new Map<WorkerId, Set<SessionId>>();

  constructor(clock: Pick<Clock, "elapsed">) {
    this.#clock = clock;
  }

  claim(session: SessionId, worker: WorkerId, ttlMs: number, nextEpoch: () => number): Claim {
    const now = this.#clock.elapsed();
    const lease = this.#leases.get(session);
    if (lease !== undefined && lease.worker !== worker && lease.until > now) {
      return { kind: "held", by: lease.worker, forMs: lease.until - now };
    }
    const epoch = lease?.worker === worker ? lease.epoch : nextEpoch();
    this.#leases.set(session, { worker, epoch, until: now + ttlMs });
    this.#expectedOf(worker).add(session);
    return { kind: "claimed", epoch };
  }

  /** Extends the leases that `worker` still holds, and returns those that another worker has claimed. */
  renew(worker: WorkerId, ttlMs: number): readonly SessionId[] {
    const expected = this.#expected.get(worker);
    if (expected === undefined) return [];
    const until = this.#clock.elapsed() + ttlMs;
    const gone: SessionId[] = [];
    for (const session of expected) {
      const lease = this.#leases.get(session);
      if (lease?.worker === worker) this.#leases.set(session, { ...lease, until });
      else gone.push(session);
    }
    for (const session of gone) this.#forget(worker, session);
    return gone;
  }

  release(session: SessionId, worker: WorkerId): void {
    this.#forget(worker, session);
    if (this.#leases.get(session)?.worker === worker) this.#leases.delete(session);
  }

  /**
   * Whether an append under `epoch` must be refused. A request without an epoch does not drive the lane, and is not
   * fenced.
   */
  fences(session: SessionId, epoch: number | undefined): boolean {
    return epoch !== undefined && this.#leases.get(session)?.epoch !== epoch;
  }

  /** Whether a worker holds a lease that has not expired. */
  attended(session: SessionId): boolean {
    const lease = this.#leases.get(session);
    return lease !== undefined && lease.until > this.#clock.elapsed();
  }

  #expectedOf(worker: WorkerId): Set<SessionId> {
    const known = this.#expected.get(worker);
    if (known !== undefined) return known;
    const fresh = new Set<SessionId>();
    this.#expected.set(worker, fresh);
    return fresh;
  }

  #forget(worker: WorkerId, session: SessionId): void {
    const expected = this.#expected.get(worker);
    expected?.delete(session);
    if (expected?.size === 0) this.#expected.delete(worker);
  }
}
