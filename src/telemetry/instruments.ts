// What is counted and timed of the work, under its two names: for Prometheus, and for OpenTelemetry.

interface Instrument {
  readonly kind: "counter" | "histogram";
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** The same in OpenTelemetry, which has the unit beside the name. */
  readonly dotted: string;
  readonly unit: string;
}

/** Seconds. From a cooperative stop to one that was given up; a queue may stand for hours. */
export const STOP_BUCKETS: readonly number[] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30];
export const WAIT_BUCKETS: readonly number[] = [0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200];

export const INSTRUMENTS = {
  runsAccepted: {
    kind: "counter",
    name: "belay_runs_accepted_total",
    help: "Prompts that were accepted as runs, by how they join a busy session.",
    labels: ["delivery"],
    dotted: "belay.runs.accepted",
    unit: "{run}",
  },
  runsSettled: {
    kind: "counter",
    name: "belay_runs_settled_total",
    help: "Runs that have ended, by outcome.",
    labels: ["outcome"],
    dotted: "belay.runs.settled",
    unit: "{run}",
  },
  callsSettled: {
    kind: "counter",
    name: "belay_calls_settled_total",
    help: "Tool calls that have ended, by outcome.",
    labels: ["outcome"],
    dotted: "belay.calls.settled",
    unit: "{call}",
  },
  cancelsRequested: {
    kind: "counter",
    name: "belay_cancels_requested_total",
    help: "Cancels that changed something, by what was aimed at and by the kind of reason.",
    labels: ["scope", "reason"],
    dotted: "belay.cancels.requested",
    unit: "{cancel}",
  },
  runStop: {
    kind: "histogram",
    name: "belay_run_stop_seconds",
    help: "From the cancel of a live run to its outcome.",
    labels: [],
    dotted: "belay.run.stop.duration",
    unit: "s",
  },
  queueWait: {
    kind: "histogram",
    name: "belay_queue_wait_seconds",
    help: "From the acceptance of a run to its start.",
    labels: [],
    dotted: "belay.queue.wait.duration",
    unit: "s",
  },
  turnTokens: {
    kind: "counter",
    name: "belay_turn_tokens_total",
    help: "Tokens that turns have used, by direction and by who counted them.",
    labels: ["direction", "counted_by"],
    dotted: "belay.turn.tokens",
    unit: "{token}",
  },
  processesStarted: {
    kind: "counter",
    name: "belay_processes_started_total",
    help: "Process trees that were started.",
    labels: [],
    dotted: "belay.processes.started",
    unit: "{process}",
  },
  processesSettled: {
    kind: "counter",
    name: "belay_processes_settled_total",
    help: "Process trees that have ended, by outcome.",
    labels: ["outcome"],
    dotted: "belay.processes.settled",
    unit: "{process}",
  },
  processesEscaped: {
    kind: "counter",
    name: "belay_processes_escaped_total",
    help: "Processes that outlived everything that was done to end them. Somebody must look.",
    labels: [],
    dotted: "belay.processes.escaped",
    unit: "{process}",
  },
} as const satisfies Readonly<Record<string, Instrument>>;

export type InstrumentKey = keyof typeof INSTRUMENTS;

/** One thing that was counted or timed. */
export interface Measure {
  readonly of: InstrumentKey;
  readonly value: number;
  readonly labels: Readonly<Record<string, string>>;
}
