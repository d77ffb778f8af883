// Batches without an answer of the store, with one timeout timer for all of them.
//
// An array, not a map: a map that is filled and emptied all the time makes new tables, the old ones refer to the new
// ones, and every batch then survives until the next major garbage collection.
import { STORE_WAIT_MS } from "../../core/limits.ts";
import type { Clock } from "../../ports/clock.ts";
import { StoreLimit } from "./bounded-store.ts";
import type { Flight, SessionState } from "./session-state.ts";

interface Unanswered {
  readonly lane: SessionState;
  readonly flight: Flight;
}

export class UnansweredBatches {
  readonly #clock: Clock;
  readonly #overdue: (lane: SessionState, flight: Flight) => void;
  /** In no order. Each flight knows its place. */
  #batches: Unanswered[] = [];
  #limit: StoreLimit | undefined = undefined;

  /** `overdue`: called once for each batch that has timed out. Its answer may still come. */
  constructor(clock: Clock, overdue: (lane: SessionState, flight: Flight) => void) {
    this.#clock = clock;
    this.#overdue = overdue;
  }

  add(lane: SessionState, flight: Flight): void {
    flight.place = this.#batches.push({ lane, flight }) - 1;
    if (this.#batches.length === 1) this.#watchOldest();
  }

  remove(flight: Flight): void {
    const { place } = flight;
    if (place === undefined) return;
    flight.place = undefined;
    const last = this.#batches.pop();
    if (last !== undefined && last.flight !== flight) {
      this.#batches[place] = last;
      last.flight.place = place;
    }
    if (this.#batches.length === 0) this.#limit?.cancel();
  }

  clear(): void {
    for (const { flight } of this.#batches) flight.place = undefined;
    this.#batches = [];
    this.#limit?.cancel();
  }

  #watchOldest(): void {
    if (this.#batches.length === 0) return;
    const oldest = this.#batches.reduce((at, { flight }) => Math.min(at, flight.sentAt), Number.POSITIVE_INFINITY);
    this.#limit = new StoreLimit(this.#clock, oldest, () => this.#reached());
  }

  #reached(): void {
    const until = this.#clock.elapsed() - STORE_WAIT_MS;
    const due = this.#batches.filter(({ flight }) => flight.sentAt <= until);
    for (const { flight } of due) this.remove(flight);
    for (const { lane, flight } of due.sort((a, b) => a.flight.sentAt - b.flight.sentAt)) this.#overdue(lane, flight);
    this.#watchOldest();
  }
}
