// What recorded events count for: a measure for each thing that was accepted, cancelled, or has ended.
//
// Invariants
// 1. Everything is derived from events, and durations from their times: nothing here has a clock.
// 2. What is remembered of a run is forgotten when it has settled, and of RUNS_MEASURED_MAX runs at most.
// 3. A cancel is counted where somebody aimed it: what follows from the cancel of a session is not counted again.
import type { CancelReason } from "../core/model/cancel.ts";
import type { Recorded, Usage } from "../core/model/event.ts";
import type { RunId } from "../core/model/ids.ts";
import { BoundedMap } from "./bounded-map.ts";
import type { InstrumentKey, Measure } from "./instruments.ts";
import { RUNS_MEASURED_MAX } from "./limits.ts";

/** Of a run that has not settled. */
interface Times {
  /** While it has not started. */
  readonly waitingSince?: number;
  readonly stoppingSince?: number;
}

/** The cancel of a session whose consequences follow in the same batch. */
interface SessionCancel {
  readonly covers: readonly RunId[];
  readonly reason: CancelReason["kind"];
}

export class EventCounters {
  readonly #runs = new BoundedMap<RunId, Times>(RUNS_MEASURED_MAX);

  /** Runs whose times are remembered. */
  get size(): number {
    return this.#runs.size;
  }

  /** A batch as it was recorded. */
  of(events: readonly Recorded[]): readonly Measure[] {
    let cancel: SessionCancel | undefined;
    return events.flatMap((event) => {
      if (event.type === "session.cancel_requested") cancel = { covers: event.covers, reason: event.reason.kind };
      return this.#one(event, cancel);
    });
  }

  #one(event: Recorded, cancel: SessionCancel | undefined): readonly Measure[] {
    switch (event.type) {
      case "session.cancel_requested":
        return cancelled("session", event.reason);
      case "run.accepted":
        this.#runs.set(event.runId, { waitingSince: event.at });
        return one("runsAccepted", { delivery: event.wake ? "wake" : event.delivery });
      case "run.started":
        return this.#started(event.runId, event.at);
      case "run.cancel_requested":
        this.#runs.set(event.runId, { ...this.#runs.get(event.runId), stoppingSince: event.at });
        return cancel?.covers.includes(event.runId) ? [] : cancelled("run", event.reason);
      case "run.settled":
        return this.#settled(event, cancel);
      case "call.cancel_requested":
        return cancelled("call", event.reason);
      case "call.settled":
        return one("callsSettled", { outcome: event.outcome.kind });
      case "turn.settled":
        return event.usage === undefined ? [] : tokens(event.usage);
      case "process.started":
        return one("processesStarted", {});
      case "process.cancel_requested":
        return cancel?.reason === event.reason.kind ? [] : cancelled("process", event.reason);
      case "process.settled":
        return [
          ...one("processesSettled", { outcome: event.outcome.kind }),
          ...(event.escaped ?? []).map((): Measure => ({ of: "processesEscaped", value: 1, labels: {} })),
        ];
      default:
        return [];
    }
  }

  #started(runId: RunId, at: number): readonly Measure[] {
    const { waitingSince, ...times } = this.#runs.get(runId) ?? {};
    if (waitingSince === undefined) return [];
    this.#runs.set(runId, times);
    return [duration("queueWait", waitingSince, at)];
  }

  #settled(
    { runId, outcome, at }: Extract<Recorded, { readonly type: "run.settled" }>,
    cancel: SessionCancel | undefined,
  ): readonly Measure[] {
    const { waitingSince, stoppingSince } = this.#runs.take(runId) ?? {};
    const settled = one("runsSettled", { outcome: outcome.kind });
    if (stoppingSince !== undefined) return [...settled, duration("runStop", stoppingSince, at)];
    // A run that had not started is withdrawn in one event: its outcome is all there is of the request.
    const withdrawn = outcome.kind === "cancelled" && waitingSince !== undefined && !cancel?.covers.includes(runId);
    return withdrawn ? [...settled, ...cancelled("run", outcome.reason)] : settled;
  }
}

const one = (of: InstrumentKey, labels: Measure["labels"]): readonly Measure[] => [{ of, value: 1, labels }];

const cancelled = (scope: string, reason: CancelReason): readonly Measure[] =>
  one("cancelsRequested", { scope, reason: reason.kind });

/** Wall clocks are set now and then: what took less than nothing took nothing. */
const duration = (of: InstrumentKey, from: number, to: number): Measure => ({
  of,
  value: Math.max(0, to - from) / 1_000,
  labels: {},
});

function tokens({ inputTokens, outputTokens, estimated }: Usage): readonly Measure[] {
  const counted_by = estimated ? "estimate" : "provider";
  return [
    { of: "turnTokens", value: inputTokens, labels: { direction: "input", counted_by } },
    { of: "turnTokens", value: outputTokens, labels: { direction: "output", counted_by } },
  ];
}
