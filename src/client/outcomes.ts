// The outcomes that a client waits for. One request asks for many of them, whichever runs they are of.
//
// Invariants
// 1. There is one request for each `OUTCOMES_TOGETHER_MAX` runs, not one for each run.
// 2. No reader of events holds it up: an outcome that is awaited inside a loop over the events of its run comes,
//    although the loop reads no more of them meanwhile.
import type { Outcome } from "../core/model/cancel.ts";
import type { RunId } from "../core/model/ids.ts";
import { OUTCOMES_TOGETHER_MAX } from "./limits.ts";
import { errorIn } from "./transport/reply.ts";

/** What the server answers: those that have ended, and those that it cannot answer. Neither: the wait is over. */
export interface OutcomesFound {
  readonly outcomes: readonly { readonly runId: RunId; readonly outcome: Outcome }[];
  readonly failed: readonly { readonly runId: RunId; readonly error: object }[];
}

/** Asks the server to wait until one of these runs has ended. */
export type AskOutcomes = (runs: readonly RunId[], signal: AbortSignal) => Promise<OutcomesFound>;

/** Runs that are asked for together. */
interface Group {
  readonly runs: Set<RunId>;
  /** Ends the request that is under way, because other runs are waited for now. */
  changed: AbortController;
}

export class Outcomes {
  readonly #ask: AskOutcomes;
  readonly #groups = new Set<Group>();
  readonly #waiting = new Map<RunId, PromiseWithResolvers<Outcome>>();

  constructor(ask: AskOutcomes) {
    this.#ask = ask;
  }

  /** How a run ends. */
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

  /** How a run has ended, read elsewhere. */
  settle(run: RunId, outcome: Outcome): void {
    this.#end(run, ({ resolve }) => resolve(outcome));
  }

  async #follow(group: Group): Promise<void> {
    const { runs } = group;
    this.#groups.add(group);
    while (runs.size > 0) {
      // What is waited for in this tick is asked for together.
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

  #end(run: RunId, tell: (waiting: PromiseWithResolvers<Outcome>) => void): void {
    const waiting = this.#waiting.get(run);
    if (waiting === undefined) return;
    this.#waiting.delete(run);
    tell(waiting);
    for (const { runs, changed } of this.#groups) {
      // Nothing is left to be asked for.
      if (runs.delete(run) && runs.size === 0) changed.abort(CHANGED);
    }
  }
}

const CHANGED = { name: "Changed", message: "Other runs are waited for now." } as const;
