// The waiters for runs, calls, processes and questions: one index by id. No waiter reads the log separately.
//
// Invariants
// 1. A waiter is released once, by the durable end of its id; otherwise when this worker closes or its run is
//    unloaded.
// 2. It is removed when it is released or disposed of, so that none outlives what it waits for.

import { RECENT_RUNS_MAX } from "../../core/limits.ts";
import type { Outcome } from "../../core/model/cancel.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { CallId, ProcessId, QuestionId, RunId } from "../../core/model/ids.ts";
import type { QuestionOutcome } from "../../core/model/question.ts";
import { RenewedMap } from "../../core/renewed-map.ts";
import type { ProcessResult } from "../../ports/spawner.ts";
import { resultOf } from "../process/process-manager.ts";

type Awaited = RunId | CallId | ProcessId | QuestionId;
type EndOf<Id> = Id extends ProcessId ? ProcessResult : Id extends QuestionId ? QuestionOutcome : Outcome;

/**
 * `absent`: there is no such run, because its prompt was not recorded. Undefined: this worker closes, or no longer
 * drives the run, and will not learn how it ends.
 */
type Release<Id> = (end: EndOf<Id> | "absent" | undefined) => void;

/** All callbacks are in one map; each is called with an end that fits its own id. */
type AnyRelease = Release<Awaited>;

export class Waiters {
  readonly #waiting = new RenewedMap<Awaited, AnyRelease | AnyRelease[]>();
  /** The last outcomes recorded here, which are available even when the store is closed. */
  readonly #recent = new RenewedMap<RunId, Outcome>();

  /** Number of ids with waiters. */
  get size(): number {
    return this.#waiting.size;
  }

  /** The outcome of a run, if it was recorded here recently. */
  recent(run: RunId): Outcome | undefined {
    return this.#recent.get(run);
  }

  /** Returns its disposer. */
  wait<Id extends Awaited>(id: Id, release: Release<Id>): () => void {
    const one = release as AnyRelease;
    const others = this.#waiting.get(id); // @fault one-asker-at-a-time
    if (others === undefined) this.#waiting.set(id, one);
    else if (Array.isArray(others)) others.push(one);
    else this.#waiting.set(id, [others, one]);
    return () => this.#forget(id, one);
  }

  recorded(events: readonly Recorded[]): void {
    for (const event of events) {
      if (event.type === "run.settled") this.#keep(event.runId, event.outcome);
      const id = endedBy(event);
      if (id === undefined) continue;
      // @fault waiter-released-by-another:find, answer-to-the-wrong-asker
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id); // @fault waiter-released-by-another:forget
      if (waiting === undefined) continue;
      const end = endOf(event);
      if (Array.isArray(waiting)) for (const release of waiting) release(end);
      else waiting(end);
    }
  }

  /** Releases the waiters of runs that are no longer driven here, or do not exist. */
  leave(runs: readonly RunId[], why?: "absent"): void {
    for (const run of runs) {
      const waiting = this.#waiting.get(run);
      this.#waiting.delete(run);
      for (const release of waiting === undefined ? [] : [waiting].flat()) release(why);
    }
  }

  /** No caller waits forever for a worker that has closed. */
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

  #forget(id: Awaited, release: AnyRelease): void {
    const waiting = this.#waiting.get(id);
    if (waiting === release) this.#waiting.delete(id);
    if (!Array.isArray(waiting)) return;
    const rest = waiting.filter((one) => one !== release);
    if (rest.length === 0) this.#waiting.delete(id);
    else this.#waiting.set(id, rest);
  }
}

function endedBy(event: Recorded): Awaited | undefined {
  switch (event.type) {
    case "run.settled":
      return event.runId;
    case "call.settled":
      return event.callId;
    case "process.settled":
      return event.processId;
    case "question.settled":
      return event.questionId;
    default:
      return undefined;
  }
}

function endOf(event: Recorded): EndOf<Awaited> | undefined {
  switch (event.type) {
    case "run.settled":
    case "call.settled":
      return event.outcome;
    case "process.settled":
      return resultOf(event);
    case "question.settled":
      return event.ending;
    default:
      return undefined;
  }
}
