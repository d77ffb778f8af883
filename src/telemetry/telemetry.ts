// The work as OpenTelemetry tells it: a span for each run, in it one for each turn and call; and the same counts.
//
// It speaks to the API only: without an SDK that the host has registered, nothing comes of it. What was said (prompts,
// answers, inputs, results, messages of errors) is in no span and no metric: traces go to other people's machines.
//
// Invariants
// 1. `observe` never throws, whatever the host's SDK does.
// 2. Every span that was begun is ended: with its run, when the run is parked or taken up again, when it has to make
//    room, and at `close`. Of a program that is killed nothing is exported, so nothing stays open either.
// 3. What is remembered is bounded: runs, spans in a run, processes.
import { type Meter, metrics, type Tracer, trace } from "@opentelemetry/api";
import type { CancelReason } from "../core/model/cancel.ts";
import type { Recorded } from "../core/model/event.ts";
import type { CallId, ProcessId, RunId, SessionId } from "../core/model/ids.ts";
import { runOf } from "../core/model/ids.ts";
import { BoundedMap } from "./bounded-map.ts";
import { EventCounters } from "./event-counters.ts";
import { SPAN_NAME_CHARS_MAX, SPAN_NAMES_MAX, SPANS_RUNS_MAX, TEXT_CHARS_READ_MAX } from "./limits.ts";
import { type Teller, tellMeter } from "./meter.ts";
import type { Redact } from "./redactor.ts";
import { type RunBegun, RunTrace } from "./run-trace.ts";

export interface TelemetryOptions {
  /** Titles of sessions and names of tools are chosen by people and models. */
  readonly redact: Redact;
  /** Of Belay, as the SDK is told it. */
  readonly version?: string;
}

/** The name under which an SDK finds and configures what we tell. */
const SCOPE = "agent-belay";

export class Telemetry {
  readonly #tracer: Tracer;
  readonly #tell: Teller;
  readonly #redact: Redact;
  readonly #tally = new EventCounters();
  readonly #runs = new BoundedMap<RunId, RunTrace>(SPANS_RUNS_MAX, (run) => run.leave());
  /** The call that waits for a process. */
  readonly #callOf = new BoundedMap<ProcessId, CallId>(SPAN_NAMES_MAX);
  #faults = 0;

  constructor({ redact, version }: TelemetryOptions) {
    this.#redact = redact;
    this.#tracer = trace.getTracer(SCOPE, version);
    const meter: Meter = metrics.getMeter(SCOPE, version);
    this.#tell = tellMeter(meter);
  }

  /** How often the host's SDK has thrown. */
  get faults(): number {
    return this.#faults;
  }

  /** Runs with an open span. */
  get open(): number {
    return this.#runs.size;
  }

  observe(session: SessionId, events: readonly Recorded[]): void {
    this.#guarded(() => {
      for (const measure of this.#tally.of(events)) this.#tell(measure);
    });
    let covered: readonly RunId[] = [];
    for (const event of events) {
      if (event.type === "session.cancel_requested") covered = event.covers;
      // The cancel of the session was told to this run already.
      if (event.type === "run.cancel_requested" && covered.includes(event.runId)) continue;
      this.#guarded(() => this.#hear(session, event));
    }
  }

  /** Ends what is still open: nobody will tell how it ends. */
  close(): void {
    for (const run of this.#runs.takeAll()) this.#guarded(() => run.leave());
  }

  #hear(session: SessionId, event: Recorded): void {
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
        if ("runId" in event) this.#hearRun(session, event);
    }
  }

  #hearRun(session: SessionId, event: Extract<Recorded, { readonly runId: RunId }>): void {
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

  #begin(session: SessionId, begun: Pick<RunBegun, "runId" | "at" | "attempt">): void {
    // Somebody else drove it meanwhile: how this part of it ended was not told here.
    this.#runs.take(begun.runId)?.leave(begun.at);
    const run = new RunTrace({ ...begun, tracer: this.#tracer, redact: this.#redact, session });
    this.#runs.set(begun.runId, run);
  }

  #cancelProcess(id: ProcessId, { reason, at }: { readonly reason: CancelReason; readonly at: number }): void {
    const call = this.#callOf.get(id);
    if (call !== undefined) this.#runs.get(runOf(call))?.cancelled({ reason, at, scope: "process" }, call);
  }

  #name(text: string): string {
    if (text.length > TEXT_CHARS_READ_MAX) return "belay";
    return this.#redact(text).slice(0, SPAN_NAME_CHARS_MAX).toWellFormed();
  }

  #guarded(tell: () => void): void {
    try {
      tell();
    } catch {
      this.#faults += 1;
    }
  }
}

const isCall = (owner: CallId | SessionId): owner is CallId => owner.startsWith("call_");
