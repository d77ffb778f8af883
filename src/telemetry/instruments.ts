// The counters and histograms of runs, calls and processes, with their names for Prometheus and for OpenTelemetry, and
// their recorders for both.
import type { Meter } from "@opentelemetry/api";
import type { Metrics } from "./metrics.ts";

interface Instrument {
  readonly kind: "counter" | "histogram";
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** The name in OpenTelemetry, where the unit is not part of the name. */
  readonly dotted: string;
  readonly unit: string;
}

/** In seconds. Stops take from milliseconds to an abandoned grace period; a queued run may wait for hours. */
const STOP_BUCKETS: readonly number[] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30];
const WAIT_BUCKETS: readonly number[] = [0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200];

export const INSTRUMENTS = {
  runsAccepted: {
    kind: "counter",
    name: "belay_runs_accepted_total",
    help: "Prompts accepted as runs, by how they join a busy session.",
    labels: ["delivery"],
    dotted: "belay.runs.accepted",
    unit: "{run}",
  },
  runsSettled: {
    kind: "counter",
    name: "belay_runs_settled_total",
    help: "Settled runs, by outcome.",
    labels: ["outcome"],
    dotted: "belay.runs.settled",
    unit: "{run}",
  },
  callsSettled: {
    kind: "counter",
    name: "belay_calls_settled_total",
    help: "Settled tool calls, by outcome.",
    labels: ["outcome"],
    dotted: "belay.calls.settled",
    unit: "{call}",
  },
  cancelsRequested: {
    kind: "counter",
    name: "belay_cancels_requested_total",
    help: "Cancels that changed something, by target and by kind of reason.",
    labels: ["scope", "reason"],
    dotted: "belay.cancels.requested",
    unit: "{cancel}",
  },
  runStop: {
    kind: "histogram",
    name: "belay_run_stop_seconds",
    help: "Time from the cancel of a live run to its outcome.",
    labels: [],
    dotted: "belay.run.stop.duration",
    unit: "s",
  },
  queueWait: {
    kind: "histogram",
    name: "belay_queue_wait_seconds",
    help: "Time from the acceptance of a run to its start.",
    labels: [],
    dotted: "belay.queue.wait.duration",
    unit: "s",
  },
  turnTokens: {
    kind: "counter",
    name: "belay_turn_tokens_total",
    help: "Tokens used by turns, by direction and by the source of the count.",
    labels: ["direction", "counted_by"],
    dotted: "belay.turn.tokens",
    unit: "{token}",
  },
  processesStarted: {
    kind: "counter",
    name: "belay_processes_started_total",
    help: "Started process trees.",
    labels: [],
    dotted: "belay.processes.started",
    unit: "{process}",
  },
  processesSettled: {
    kind: "counter",
    name: "belay_processes_settled_total",
    help: "Settled process trees, by outcome.",
    labels: ["outcome"],
    dotted: "belay.processes.settled",
    unit: "{process}",
  },
  processesEscaped: {
    kind: "counter",
    name: "belay_processes_escaped_total",
    help: "Processes that survived every attempt to kill them. An operator must look at them.",
    labels: [],
    dotted: "belay.processes.escaped",
    unit: "{process}",
  },
} as const satisfies Readonly<Record<string, Instrument>>;

export type InstrumentKey = keyof typeof INSTRUMENTS;

/** One value for a counter or a histogram. */
export interface Measure {
  readonly of: InstrumentKey;
  readonly value: number;
  readonly labels: Readonly<Record<string, string>>;
}

/** Records a measure. */
export type Recorder = (measure: Measure) => void;

/** Registers all instruments with the metrics for Prometheus. */
export const prometheusRecorder = (metrics: Metrics): Recorder =>
  recorder((key) => {
    const instrument = INSTRUMENTS[key];
    if (instrument.kind === "counter") {
      const counter = metrics.counter<string>(instrument);
      return ({ value, labels }) => counter.add(value, labels);
    }
    const histogram = metrics.histogram<string>(instrument, bucketsOf(key));
    return ({ value, labels }) => histogram.observe(value, labels);
  });

/** Creates all instruments with an OpenTelemetry meter. */
export const otelRecorder = (meter: Meter): Recorder =>
  recorder((key) => {
    const { kind, dotted, help, unit } = INSTRUMENTS[key];
    const options = { description: help, unit };
    if (kind === "counter") {
      const counter = meter.createCounter(dotted, options);
      return ({ value, labels }) => counter.add(value, labels);
    }
    const advice = { explicitBucketBoundaries: [...bucketsOf(key)] };
    const histogram = meter.createHistogram(dotted, { ...options, advice });
    return ({ value, labels }) => histogram.record(value, labels);
  });

const bucketsOf = (key: InstrumentKey): readonly number[] => (key === "runStop" ? STOP_BUCKETS : WAIT_BUCKETS);

function recorder(create: (key: InstrumentKey) => Recorder): Recorder {
  const recorders = new Map<InstrumentKey, Recorder>();
  for (const key of Object.keys(INSTRUMENTS) as readonly InstrumentKey[]) recorders.set(key, create(key));
  return (measure) => recorders.get(measure.of)?.(measure);
}
