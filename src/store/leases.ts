// Who may drive which lane, for how long. The part of a store that has to know nothing about storage: both stores that
// live inside one process use it, because there the process itself is what another worker would have to outlive.
//
// Invariants
// 1. A lane has at most one holder. A lease that has run out is its holder's until somebody else takes it.
// 2. Every claim that changes the holder gets a higher epoch than all before it; an append with another one is fenced.
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
  /** What each worker believes it holds: the difference to what it does hold is what `renew` tells it. */
  readonly #believed = new Map<WorkerId, Set<SessionId>>();

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
    this.#believedBy(worker).add(session);
    return { kind: "claimed", epoch };
  }

  /** Prolongs what `worker` still holds; answers what it held and somebody else has taken. */
  renew(worker: WorkerId, ttlMs: number): readonly SessionId[] {
    const believed = this.#believed.get(worker);
    if (believed === undefined) return [];
    const until = this.#clock.elapsed() + ttlMs;
    const gone: SessionId[] = [];
    for (const session of believed) {
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

  /** Whether an append under `epoch` must be refused. Who gives no epoch only asks, and drives nothing. */
  fences(session: SessionId, epoch: number | undefined): boolean {
    return epoch !== undefined && this.#leases.get(session)?.epoch !== epoch;
  }

  /** Whether somebody holds a lease that has not run out. */
  attended(session: SessionId): boolean {
    const lease = this.#leases.get(session);
    return lease !== undefined && lease.until > this.#clock.elapsed();
  }

  #believedBy(worker: WorkerId): Set<SessionId> {
    const known = this.#believed.get(worker);
    if (known !== undefined) return known;
    const fresh = new Set<SessionId>();
    this.#believed.set(worker, fresh);
    return fresh;
  }

  #forget(worker: WorkerId, session: SessionId): void {
    const believed = this.#believed.get(worker);
    believed?.delete(session);
    if (believed?.size === 0) this.#believed.delete(worker);
  }
}
