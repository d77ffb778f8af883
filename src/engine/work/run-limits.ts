// The time limit of a run: it is cancelled like any other, with the limit as the reason.
import type { Recorded } from "../../core/model/event.ts";
import type { RunId, SessionId } from "../../core/model/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Cancels } from "../cancels.ts";
import type { SessionState } from "../log/session-state.ts";

export class RunLimits {
  readonly #clock: Clock;
  readonly #limitMs: number | undefined;
  readonly #cancel: Cancels;
  /** Cancels the timer of a session's live run. Not part of the lanes: most programs have no limit, and many lanes. */
  readonly #running = new Map<SessionId, () => void>();

  constructor(parts: { readonly clock: Clock; readonly limitMs: number | undefined; readonly cancel: Cancels }) {
    this.#clock = parts.clock;
    this.#limitMs = parts.limitMs;
    this.#cancel = parts.cancel;
  }

  recorded(lane: SessionState, events: readonly Recorded[]): void {
    // Not for events that are written after the lane was unloaded: the worker that takes over the run has its own
    // limit.
    if (this.#limitMs === undefined || lane.epoch === undefined) return; // @fault limit-begun-for-another
    for (const event of events) {
      // Restarted after a crash: the time without a worker does not count.
      // @fault limit-lost-in-the-crash
      if (event.type === "run.started" || event.type === "run.recovered")
        this.#start(lane.id, event.runId, this.#limitMs);
    }
    if (lane.durable.live === undefined) this.#end(lane.id); // @fault run-limit-left-behind
  }

  close(): void {
    for (const dispose of this.#running.values()) dispose();
  }

  #start(session: SessionId, runId: RunId, limitMs: number): void {
    this.#end(session);
    // A failing store refuses the receipt, not the stop.
    const reached = (): void => void this.#cancel.run(runId, { kind: "timeout", limitMs }).catch(() => undefined);
    this.#running.set(session, this.#clock.after(limitMs, reached));
  }

  /** It is no longer driven here: the worker that takes over the run has its own limit. */
  leave(session: SessionId): void {
    this.#end(session);
  }

  #end(session: SessionId): void {
    this.#running.get(session)?.();
    this.#running.delete(session);
  }
}
