// Pauses between attempts, and when to give up.
//
// Invariants
// 1. A pause is between half and all of its step, so that clients that were cut off together do not reconnect
//    together.
// 2. Patience is counted from the first failure after the last successful contact, not from the first request.
import type { Clock } from "../../ports/clock.ts";
import { PAUSE_FIRST_MS, PAUSE_LAST_MS } from "../limits.ts";
import type { Random } from "../random.ts";
import type { Trouble } from "./reply.ts";

export interface Patience {
  readonly patienceMs: number;
  /** The limit while connections are refused, so that no server is running. */
  readonly absentMs: number;
  readonly attemptsMax: number;
}

export class Backoff {
  readonly #clock: Clock;
  readonly #chance: Random;
  readonly #patience: Patience;
  #first = PAUSE_FIRST_MS;
  #step = 0;
  #attempts = 1;
  #troubleSince: number | undefined = undefined;
  #absentSince: number | undefined = undefined;

  constructor(clock: Clock, chance: Random, patience: Patience) {
    this.#clock = clock;
    this.#chance = chance;
    this.#patience = patience;
  }

  /** The server responded. The response may still be useless, so the pauses stay as they are. */
  alive(): void {
    this.#troubleSince = undefined;
  }

  /** The request made progress: the next pause is the first again. */
  reset(): void {
    this.#step = 0;
    this.#attempts = 1;
    this.#troubleSince = undefined;
  }

  /** The server's preferred first pause. */
  begin(firstMs: number): void {
    this.#first = Math.min(firstMs, PAUSE_LAST_MS);
  }

  /** The pause before the next attempt, at least `afterMs`. Undefined: give up. `attemptsMax` only lowers the limit. */
  next({ afterMs: atLeastMs = 0, attemptsMax, absent }: Partial<Trouble> = {}): number | undefined {
    const now = this.#clock.elapsed();
    this.#troubleSince ??= now;
    this.#absentSince = absent === true ? (this.#absentSince ?? now) : undefined;
    const { patienceMs, absentMs } = this.#patience;
    const left = Math.min(patienceMs - (now - this.#troubleSince), absentMs - (now - (this.#absentSince ?? now)));
    const enough = this.#attempts >= Math.min(attemptsMax ?? Number.POSITIVE_INFINITY, this.#patience.attemptsMax);
    if (enough || left <= 0 || atLeastMs > left) return undefined;
    const step = Math.min(this.#first * 2 ** this.#step, PAUSE_LAST_MS);
    this.#attempts += 1;
    // Beyond this the step does not grow, and the power must not overflow.
    this.#step = Math.min(this.#step + 1, 16);
    return Math.min(Math.max(step * (0.5 + this.#chance.fraction() / 2), atLeastMs), left);
  }
}
