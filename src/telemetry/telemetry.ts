// Exports runs to OpenTelemetry: a span for each run with one inside for each turn and call, and the same metrics as
// for Prometheus.
//
// It uses only the OpenTelemetry API: without an SDK registered by the host it does nothing. No span and no metric
// contains prompts, answers, inputs, results or error messages: traces leave the machine.
//
// Invariants
// 1. `observe` never throws, whatever the host's SDK does.
// 2. Every started span is ended: with its run, when the run is parked or recovered, when it is evicted, and at
//    `close`. A killed process exports nothing, so it leaves no open span.
// 3. The state is bounded: runs, spans in a run, processes.
import { type Meter, metrics, type Tracer, trace } from "@opentelemetry/api";
import type { CancelReason } from "../core/model/cancel.ts";
import type { Recorded } from "../core/model/event.ts";
import type { CallId, ProcessId, RunId, SessionId } from "../core/model/ids.ts";
import { runOf } from "../core/model/ids.ts";
import { BoundedMap } from "./bounded-map.ts";
import { EventCounters } from "./event-counters.ts";
import { otelRecorder, type Recorder } from "./instruments.ts";
import { SPAN_NAME_CHARS_MAX, SPAN_NAMES_MAX, SPANS_RUNS_MAX, TEXT_CHARS_READ_MAX } from "./limits.ts";
import type { Redact } from "./redactor.ts";
import { RunTrace, type RunTraceOptions } from "./run-trace.ts";

export interface TelemetryOptions {
  /** Redacts session titles and tool names, which people and models choose. */
  readonly redact: Redact;
  /** The version of Belay that the SDK exports. */
  readonly version?: string;
}

/** The instrumentation scope, by which an SDK is configured for Belay. */
const SCOPE = "agent-belay";

export class Telemetry {
  readonly #tracer: Tracer;
  readonly #record: Recorder;
  readonly #redact: Redact;
  readonly #counters = new EventCounters();
  readonly #runs = new BoundedMap<RunId, RunTrace>(SPANS_RUNS_MAX, (run) => run.leave());
  /** The calls that wait for processes. */
  readonly #callOf = new BoundedMap<ProcessId, CallId>(SPAN_NAMES_MAX);
  #faults = 0;

  constructor({ redact, version }: TelemetryOptions) {
    this.#redact = redact;
    this.#tracer = trace.getTracer(SCOPE, version);
    const meter: Meter = metrics.getMeter(SCOPE, version);
    this.#record = otelRecorder(meter);
  }

  /** How many times the host's SDK has thrown. */
  get faults(): number {
    return this.#faults;
  }

  /** The number of runs with an open span. */
  get open(): number {
    return this.#runs.size;
  }

  observe(session: SessionId, events: readonly Recorded[]): void {
    this.#guarded(() => {
      for (const measure of this.#counters.measure(events)) this.#record(measure);
    });
    let covered: readonly RunId[] = [];
    for (const event of events) {
      if (event.type === "session.cancel_requested") covered = event.covers;
      // The cancel of the session was already added to this run.
      if (event.type === "run.cancel_requested" && covered.includes(event.runId)) continue;
      this.#guarded(() => this.#trace(session, event));
    }
  }

  /** Ends all open spans with an unknown outcome. */
  close(): void {
    for (const run of this.#runs.takeAll()) this.#guarded(() => run.leave());
  }

  #trace(session: SessionId, event: Recorded): void {
    switch (event.type) {
      case "session.cancel_requested":
        for (const runId of event.covers) this.#runs.get(runId)?.cancelled({ ...event, scope: "session" });
        return;
      case "process.requested":
        if (isCall(event.owner)) this.#callOf.set(event.processId, event.owner);
        return;
      case "process.detached":
      case "process.settled":
        this.#callOf.take(event.processId);
        return;
      case "process.cancel_requested":
        this.#cancelProcess(event.processId, event);
        return;
      default:
        if ("runId" in event) this.#traceRun(session, event);
    }
  }

  #traceRun(session: SessionId, event: Extract<Recorded, { readonly runId: RunId }>): void {
    const { runId, at } = event;
    const run = this.#runs.get(runId);
    switch (event.type) {
      case "run.started":
      case "run.recovered":
        this.#begin(session, { runId, at, attempt: event.type === "run.started" ? 1 : event.attempt });
        break;
      case "run.parked":
        this.#runs.take(runId)?.end(at, { kind: "parked" });
        break;
      case "run.settled":
        this.#runs.take(runId)?.end(at, event.outcome);
        break;
      case "run.cancel_requested":
        run?.cancelled({ ...event, scope: "run" });
        break;
      case "turn.requested":
        run?.beginTurn(event);
        break;
      case "turn.settled":
        run?.endTurn(event);
        break;
      case "call.requested":
        run?.beginCall(event, this.#name(event.name));
        break;
      case "call.cancel_requested":
        run?.cancelled({ ...event, scope: "call" }, event.callId);
        break;
      case "call.settled":
        run?.endCall(event);
        break;
    }
  }

  #begin(session: SessionId, started: Pick<RunTraceOptions, "runId" | "at" | "attempt">): void {
    // Another worker drove the run in between, so this process did not see how this attempt ended.
    this.#runs.take(started.runId)?.leave(started.at);
    const run = new RunTrace({ ...started, tracer: this.#tracer, redact: this.#redact, session });
    this.#runs.set(started.runId, run);
  }

  #cancelProcess(id: ProcessId, { reason, at }: { readonly reason: CancelReason; readonly at: number }): void {
    const call = this.#callOf.get(id);
    if (call !== undefined) this.#runs.get(runOf(call))?.cancelled({ reason, at, scope: "process" }, call);
  }

  #name(text: string): string {
    if (text.length > TEXT_CHARS_READ_MAX) return "belay";
    return this.#redact(text).slice(0, SPAN_NAME_CHARS_MAX).toWellFormed();
  }

  #guarded(call: () => void): void {
    try {
      call();
    } catch {
      this.#faults += 1;
    }
  }
}

const isCall = (owner: CallId | SessionId): owner is CallId => owner.startsWith("call_");
