// The ports for time and ids. Types only.

/** Time. `now` is the wall clock, for people; `elapsed` never jumps, for durations. */
export interface Clock {
  now(): number;
  elapsed(): number;
  /** Calls once, after `ms`. The answer takes it back. An `idle` timer does not keep a program alive that has ended. */
  after(ms: number, call: () => void, kind?: "idle"): () => void;
  /** Calls once, when the event loop has turned: I/O and due timers come first. Default `setImmediate`. */
  immediate?(call: () => void): void;
}

/** Ids and digests: the only randomness there is. */
export interface Ids {
  make(prefix: "ses_" | "run_" | "wrk_"): string;
  digest(text: string): string;
}
