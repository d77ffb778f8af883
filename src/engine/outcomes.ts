// Who waits for which run. Released by that run's own outcome, once it is durable, and by nothing else.
import type { Outcome } from "../core/cancel.ts";
import type { Recorded } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import { RECENT_RUNS_MAX } from "../core/limits.ts";

/**
 * `absent`: there is no such run after all, its prompt was not recorded. Undefined: this worker closes, or does not
 * drive the run any more, and will not learn how it ends.
 */
type Release = (outcome: Outcome | "absent" | undefined) => void;

export class Outcomes {
  readonly #waiting = new Map<RunId, Release | Release[]>();
  /** The last ones recorded here: for whoever asks when the store is closed. */
  readonly #recent = new Map<RunId, Outcome>();

  /** How many runs somebody waits for. */
  get size(): number {
    return this.#waiting.size;
  }

  /** What became of a run, if that was recorded here and not long ago. */
  recent(run: RunId): Outcome | undefined {
    return this.#recent.get(run);
  }

  /** The answer takes it back. */
  wait(run: RunId, release: Release): () => void {
    const others = this.#waiting.get(run);
    if (others === undefined) this.#waiting.set(run, release);
    else if (Array.isArray(others)) others.push(release);
    else this.#waiting.set(run, [others, release]);
    return () => this.#forget(run, release);
  }

  recorded(events: readonly Recorded[]): void {
    for (const event of events) {
      if (event.type !== "run.settled") continue;
      this.#keep(event.runId, event.outcome);
      const waiting = this.#waiting.get(event.runId); // @fault waiter-released-by-another:find
      this.#waiting.delete(event.runId); // @fault waiter-released-by-another:forget
      if (waiting === undefined) continue;
      if (Array.isArray(waiting)) for (const release of waiting) release(event.outcome);
      else waiting(event.outcome);
    }
  }

  /** These are not driven here any more, or do not exist. */
  leave(runs: readonly RunId[], why?: "absent"): void {
    for (const run of runs) {
      const waiting = this.#waiting.get(run);
      this.#waiting.delete(run);
      for (const release of waiting === undefined ? [] : [waiting].flat()) release(why);
    }
  }

  /** Nobody waits for ever, also not for a worker that has closed. */
  close(): void {
    const waiting = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    for (const release of waiting) release(undefined);
  }

  #keep(run: RunId, outcome: Outcome): void {
    this.#recent.set(run, outcome);
    if (this.#recent.size <= RECENT_RUNS_MAX) return;
    const [oldest] = this.#recent.keys();
    if (oldest !== undefined) this.#recent.delete(oldest);
  }

  #forget(run: RunId, release: Release): void {
    const waiting = this.#waiting.get(run);
    if (waiting === release) this.#waiting.delete(run);
    if (!Array.isArray(waiting)) return;
    const rest = waiting.filter((one) => one !== release);
    if (rest.length === 0) this.#waiting.delete(run);
    else this.#waiting.set(run, rest);
  }
}
