// Derives measures from recorded events: one for each thing that was accepted, cancelled or settled.
//
// Invariants
// 1. All measures come from events, and durations from the times of events: no clock is read.
// 2. The state of a run is dropped when it settles, and kept for at most RUNS_MEASURED_MAX runs.
// 3. A cancel is counted once, for its target: the cancels that follow from the cancel of a session are not counted.
import type { CancelReason } from "../core/model/cancel.ts";
import type { Recorded, Usage } from "../core/model/event.ts";
import type { RunId, SessionId } from "../core/model/ids.ts";
import { BoundedMap } from "./bounded-map.ts";
import { type InstrumentKey, type Measure, prometheusRecorder } from "./instruments.ts";
import { RUNS_MEASURED_MAX } from "./limits.ts";
import type { Metrics } from "./metrics.ts";

/** Start times of a run that has not settled. */
interface Times {
  /** Set while the run has not started. */
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

  /** The number of runs whose times are kept. */
  get size(): number {
    return this.#runs.size;
  }

  /** Returns the measures of one recorded batch. */
  measure(events: readonly Recorded[]): readonly Measure[] {
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
    // The withdrawal of a run that had not started is a single event: its outcome is the only record of the cancel.
    const withdrawn = outcome.kind === "cancelled" && waitingSince !== undefined && !cancel?.covers.includes(runId);
    return withdrawn ? [...settled, ...cancelled("run", outcome.reason)] : settled;
  }
}

const one = (of: InstrumentKey, labels: Measure["labels"]): readonly Measure[] => [{ of, value: 1, labels }];

const cancelled = (scope: string, reason: CancelReason): readonly Measure[] =>
  one("cancelsRequested", { scope, reason: reason.kind });

/** At least 0: the wall clock may have been set back in between. */
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

/** Registers the metrics of events, and returns the listener that updates them. The listener does not throw. */
export function eventMetrics(metrics: Metrics): (session: SessionId, events: readonly Recorded[]) => void {
  const counters = new EventCounters();
  const record = prometheusRecorder(metrics);
  return (_, events) => {
    for (const measure of counters.measure(events)) record(measure);
  };
}
