// The outcomes that a client waits for, many per request.
//
// Invariants
// 1. There is one request per `OUTCOMES_TOGETHER_MAX` runs, not one per run.
// 2. Outcomes do not depend on event streams: awaiting an outcome inside a loop over the events of its run resolves,
//    although the loop reads no events meanwhile.
import type { Outcome } from "../core/model/cancel.ts";
import type { RunId } from "../core/model/ids.ts";
import { OUTCOMES_TOGETHER_MAX } from "./limits.ts";
import { errorIn } from "./transport/reply.ts";

/** The server's response: the runs that have ended, and those it cannot report. If both are empty, the wait is over. */
export interface OutcomesFound {
  readonly outcomes: readonly { readonly runId: RunId; readonly outcome: Outcome }[];
  readonly failed: readonly { readonly runId: RunId; readonly error: object }[];
}

/** Requests that the server wait until one of these runs has ended. */
export type AskOutcomes = (runs: readonly RunId[], signal: AbortSignal) => Promise<OutcomesFound>;

/** Runs in one request. */
interface Group {
  readonly runs: Set<RunId>;
  /** Aborts the current request, because its set of runs has changed. */
  changed: AbortController;
}

export class Outcomes {
  readonly #ask: AskOutcomes;
  readonly #groups = new Set<Group>();
  readonly #waiting = new Map<RunId, PromiseWithResolvers<Outcome>>();

  constructor(ask: AskOutcomes) {
    this.#ask = ask;
  }

  /** Resolves with the outcome of a run. */
  of(run: RunId): Promise<Outcome> {
    const known = this.#waiting.get(run);
    if (known !== undefined) return known.promise;
    const waiting = Promise.withResolvers<Outcome>();
    this.#waiting.set(run, waiting);
    const group = [...this.#groups].find(({ runs }) => runs.size < OUTCOMES_TOGETHER_MAX);
    group?.runs.add(run);
    if (group === undefined) void this.#follow({ runs: new Set([run]), changed: new AbortController() });
    else group.changed.abort(CHANGED);
    return waiting.promise;
  }

  /** Settles a run whose outcome came from elsewhere. */
  settle(run: RunId, outcome: Outcome): void {
    this.#end(run, ({ resolve }) => resolve(outcome));
  }

  async #follow(group: Group): Promise<void> {
    const { runs } = group;
    this.#groups.add(group);
    while (runs.size > 0) {
      // Collects the runs requested in this tick into one request.
      await undefined;
      group.changed = new AbortController();
      const { signal } = group.changed;
      try {
        const { outcomes, failed } = await this.#ask([...runs], signal);
        for (const { runId, outcome } of outcomes) this.settle(runId, outcome);
        for (const { runId, error } of failed) this.#end(runId, ({ reject }) => reject(errorIn(error)));
      } catch (thrown) {
        if (!signal.aborted) for (const run of runs) this.#end(run, ({ reject }) => reject(thrown));
      }
    }
    this.#groups.delete(group);
  }

  #end(run: RunId, act: (waiting: PromiseWithResolvers<Outcome>) => void): void {
    const waiting = this.#waiting.get(run);
    if (waiting === undefined) return;
    this.#waiting.delete(run);
    act(waiting);
    for (const { runs, changed } of this.#groups) {
      // No run is left in this request.
      if (runs.delete(run) && runs.size === 0) changed.abort(CHANGED);
    }
  }
}

const CHANGED = { name: "Changed", message: "Other runs are waited for now." } as const;
