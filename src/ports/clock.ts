// The ports for time and ids. Types only.

/** Time. `now` is the wall clock, for display; `elapsed` is monotonic, for durations. */
export interface Clock {
  now(): number;
  elapsed(): number;
  /**
   * Calls once, after `ms`. Returns a function that cancels the timer. An `idle` timer does not keep the program alive.
   */
  after(ms: number, call: () => void, kind?: "idle"): () => void;
  /** Calls once in the next turn of the event loop, after I/O and due timers. Default `setImmediate`. */
  immediate?(call: () => void): void;
}

/** Ids and digests: the only source of randomness. */
export interface Ids {
  make(prefix: "ses_" | "run_" | "wrk_"): string;
  digest(text: string): string;
}
