// A store with a timeout on reads and claims: a store that hangs is reported as `unavailable`, and one that was closed
// during a request as `shutting_down`.
//
// `append` has no timeout here: its caller must know if a late append is written after all, so `commit.ts` bounds it.
import { ControlError } from "../../core/errors.ts";
import { STORE_WAIT_MS } from "../../core/limits.ts";
import type { SessionId } from "../../core/model/ids.ts";
import type { Upkeep } from "../../core/model/upkeep.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import { closing } from "../shutdown-errors.ts";

export class BoundedStore implements Store {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #claimedLate: (session: SessionId) => void;
  readonly #isClosed: () => boolean;

  /** `claimedLate` is called for a lease that was granted after its claim had timed out. */
  constructor(
    store: Store,
    clock: Clock,
    claimedLate: (session: SessionId) => void,
    isClosed: () => boolean = () => false,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#claimedLate = claimedLate;
    this.#isClosed = isClosed;
  }

  get workers(): "one" | "many" {
    return this.#store.workers ?? "many";
  }

  append: Store["append"] = (batch) => this.#store.append(batch);
  /** Also resolves after a timeout: a store that hung may never answer the old request, so the follower asks again. */
  grown: Store["grown"] = async (session, after, signal) => {
    let cancelTimer = (): void => {};
    const look = new Promise<void>((resolve) => {
      cancelTimer = this.#clock.after(STORE_WAIT_MS, resolve, "idle");
    });
    await Promise.race([this.#store.grown(session, after, signal), look]).finally(cancelTimer);
  };
  ready = async (): Promise<void> => this.#store.ready?.();
  close: Store["close"] = () => this.#store.close();

  load: Store["load"] = (session) => this.#bounded(this.#store.load(session));
  read: Store["read"] = (session, page) => this.#bounded(this.#store.read(session, page));
  run: Store["run"] = (by) => this.#bounded(this.#store.run(by));
  call: Store["call"] = (id) => this.#bounded(this.#store.call(id));
  process: Store["process"] = (id) => this.#bounded(this.#store.process(id));
  processes: Store["processes"] = (session, page) => this.#bounded(this.#store.processes(session, page));
  runs: Store["runs"] = (session, page) => this.#bounded(this.#store.runs(session, page));
  session: Store["session"] = (id) => this.#bounded(this.#store.session(id));
  sessions: Store["sessions"] = (page) => this.#bounded(this.#store.sessions(page));
  ids: Store["ids"] = (asked) => this.#bounded(this.#store.ids(asked));
  unattended: Store["unattended"] = (limit) => this.#bounded(this.#store.unattended(limit));
  claim: Store["claim"] = (session, worker, ttlMs) =>
    this.#bounded(this.#store.claim(session, worker, ttlMs), ({ kind }) => {
      if (kind === "claimed") this.#claimedLate(session);
    });
  renew: Store["renew"] = (worker, ttlMs) => this.#bounded(this.#store.renew(worker, ttlMs));
  release: Store["release"] = (session, worker) => this.#bounded(this.#store.release(session, worker));
  trim: Store["trim"] = (session, before) => this.#bounded(this.#store.trim(session, before));

  get inPlace(): Store["inPlace"] {
    const inPlace = this.#store.inPlace?.bind(this.#store);
    return inPlace && (() => this.#bounded(inPlace()));
  }

  get upkeep(): Upkeep | undefined {
    const { upkeep } = this.#store;
    if (upkeep === undefined) return undefined;
    return {
      remove: (session) => this.#bounded(upkeep.remove(session)),
      survey: (page) => this.#bounded(upkeep.survey(page)),
      within: (session, limits) => this.#bounded(upkeep.within(session, limits)),
      usage: () => this.#bounded(upkeep.usage()),
      reclaim: () => this.#bounded(upkeep.reclaim()),
    };
  }

  #bounded<T>(answer: Promise<T>, late?: (answer: T) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      let given = resolve as (answer: T) => void;
      const limit = new StoreLimit(this.#clock, this.#clock.elapsed(), () => {
        reject(noAnswer());
        given = (answer) => late?.(answer);
      });
      const failed = (error: unknown): void => reject(this.#isClosed() ? closing() : error);
      answer.then((value) => given(value), failed).finally(() => limit.cancel());
    });
  }
}

/**
 * A timeout for the store. A timer that fires late means that the event loop was blocked: the answer may be waiting to
 * be read, so it gets a little longer.
 */
export class StoreLimit {
  readonly #clock: Clock;
  readonly #reached: () => void;
  #cancel: () => void = () => {};

  constructor(clock: Clock, since: number, reached: () => void) {
    this.#clock = clock;
    this.#reached = reached;
    this.#wait(since + STORE_WAIT_MS);
  }

  cancel(): void {
    this.#cancel();
  }

  #wait(until: number): void {
    const fire = (): void => {
      if (this.#clock.elapsed() - until < LATE_MS) this.#reached();
      else this.#wait(this.#clock.elapsed() + LATE_MS);
    };
    this.#cancel = this.#clock.after(Math.max(0, until - this.#clock.elapsed()), fire, "idle");
  }
}

/** A timer this late was delayed by a blocked event loop, and so was the answer. */
const LATE_MS = 250;

/** The error for a caller whose request timed out. */
export const noAnswer = (): ControlError =>
  new ControlError("unavailable", `The store has not answered within ${STORE_WAIT_MS / 1_000} seconds.`);
