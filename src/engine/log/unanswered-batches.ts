// Batches that the store has not answered, oldest first: one timer for all of them.
import { STORE_WAIT_MS } from "../../core/limits.ts";
import type { Clock } from "../../ports/clock.ts";
import { StoreLimit } from "./bounded-store.ts";
import type { Flight, SessionState } from "./session-state.ts";

export class UnansweredBatches {
  readonly #clock: Clock;
  readonly #overdue: (lane: SessionState, flight: Flight) => void;
  readonly #flights = new Map<Flight, SessionState>();
  #limit: StoreLimit | undefined = undefined;

  /** `overdue`: called once for each batch that the store has not answered in time. Its answer may still come. */
  constructor(clock: Clock, overdue: (lane: SessionState, flight: Flight) => void) {
    this.#clock = clock;
    this.#overdue = overdue;
  }

  add(lane: SessionState, flight: Flight): void {
    this.#flights.set(flight, lane);
    if (this.#flights.size === 1) this.#watchOldest();
  }

  remove(flight: Flight): void {
    if (this.#flights.delete(flight) && this.#flights.size === 0) this.#limit?.cancel();
  }

  clear(): void {
    this.#flights.clear();
    this.#limit?.cancel();
  }

  #watchOldest(): void {
    const oldest = this.#flights.keys().next().value;
    if (oldest === undefined) return;
    this.#limit = new StoreLimit(this.#clock, oldest.sentAt, () => this.#reached());
  }

  #reached(): void {
    const due = this.#clock.elapsed() - STORE_WAIT_MS;
    for (const [flight, lane] of [...this.#flights]) {
      if (flight.sentAt > due) break;
      this.#flights.delete(flight);
      this.#overdue(lane, flight);
    }
    this.#watchOldest();
  }
}
