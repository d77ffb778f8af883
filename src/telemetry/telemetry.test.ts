import {
  type Attributes,
  type Context,
  createNoopMeter,
  type Meter,
  metrics,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  type SpanStatus,
  SpanStatusCode,
  type TimeInput,
  trace,
} from "@opentelemetry/api";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Outcome } from "../core/model/cancel.ts";
import type { Event, Recorded } from "../core/model/event.ts";
import type { CallId, RunId } from "../core/model/ids.ts";
import { SPANS_PER_RUN_MAX, SPANS_RUNS_MAX } from "./limits.ts";
import { redactor } from "./redactor.ts";
import { Telemetry } from "./telemetry.ts";

/** A span that records all calls. */
class KeptSpan implements Span {
  readonly name: string;
  readonly options: SpanOptions;
  readonly parent: KeptSpan | undefined;
  readonly attributes: Attributes;
  readonly events: { name: string; attributes: unknown; at: unknown }[] = [];
  status: SpanStatus | undefined;
  ends: (TimeInput | undefined)[] = [];

  constructor(name: string, options: SpanOptions, parent: Span | undefined) {
    this.name = name;
    this.options = options;
    this.parent = parent instanceof KeptSpan ? parent : undefined;
    this.attributes = { ...options.attributes };
  }

  spanContext = () => ({ traceId: "0".repeat(31).concat("1"), spanId: "0".repeat(15).concat("1"), traceFlags: 1 });
  isRecording = () => this.ends.length === 0;
  addLink = () => this;
  addLinks = () => this;
  updateName = () => this;
  recordException = () => undefined;
  setAttribute(key: string, value: Attributes[string]) {
    return this.setAttributes({ [key]: value });
  }
  setAttributes(attributes: Attributes) {
    Object.assign(this.attributes, attributes);
    return this;
  }
  addEvent(name: string, attributes?: unknown, at?: unknown) {
    this.events.push({ name, attributes, at });
    return this;
  }
  setStatus(status: SpanStatus) {
    this.status = status;
    return this;
  }
  end(at?: TimeInput) {
    this.ends.push(at);
  }
}

let spans: KeptSpan[];
let added: [name: string, value: number, attributes: unknown][];
let broken: boolean;

beforeEach(() => {
  spans = [];
  added = [];
  broken = false;
  const startSpan = (name: string, options: SpanOptions = {}, context: Context = ROOT_CONTEXT): Span => {
    if (broken) throw new Error("the SDK is broken");
    const span = new KeptSpan(name, options, options.root ? undefined : trace.getSpan(context));
    spans.push(span);
    return span;
  };
  const startActiveSpan = () => {
    throw new Error("not used");
  };
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan, startActiveSpan }) });
  const instrument = (name: string) => {
    const record = (value: number, attributes?: unknown) => void added.push([name, value, attributes]);
    return { add: record, record };
  };
  const meter: Meter = { ...createNoopMeter(), createCounter: instrument, createHistogram: instrument };
  metrics.setGlobalMeterProvider({ getMeter: () => meter });
});

afterEach(() => {
  trace.disable();
  metrics.disable();
});

const SECRET = "canary-1234-canary";
const USER = { kind: "user", note: SECRET } as const;
const CANCELLED: Outcome = { kind: "cancelled", reason: USER };
const COMPLETED: Outcome = { kind: "completed" };

const open = (): Telemetry => new Telemetry({ redact: redactor([SECRET]), version: "1" });

const recorded = (...events: readonly Event[]): readonly Recorded[] =>
  events.map((event, index) => ({ ...event, seq: index + 1, at: 1_000 * (index + 1) + 7 }));

const started = (runId: RunId): Event => ({ type: "run.started", runId });
const called = (callId: CallId, name = "read"): Event => ({
  type: "call.requested",
  runId: "run_1",
  callId,
  name,
  input: { path: SECRET },
});
const ended = (callId: CallId, outcome: Outcome): Event => ({ type: "call.settled", runId: "run_1", callId, outcome });
const settled = (runId: RunId, outcome: Outcome): Event => ({ type: "run.settled", runId, outcome });

const named = (name: string): KeptSpan | undefined => spans.find((span) => span.name === name);

describe("a run", () => {
  test("is a span, with one inside for each turn and call, at the times of the log", () => {
    const usage = { inputTokens: 10, outputTokens: 5, estimated: true };
    open().observe(
      "ses_1",
      recorded(
        { type: "session.created", sessionId: "ses_1", title: "Tidy up" },
        { type: "run.accepted", runId: "run_1", prompt: { text: SECRET }, delivery: "queue" },
        started("run_1"),
        { type: "turn.requested", runId: "run_1", turnId: "turn_1.1" },
        called("call_1.1"),
        ended("call_1.1", COMPLETED),
        { type: "turn.settled", runId: "run_1", turnId: "turn_1.1", outcome: COMPLETED, next: "end", usage },
        settled("run_1", COMPLETED),
      ),
    );
    expect(spans.map(({ name, parent }) => [name, parent?.name])).toEqual([
      ["invoke_agent", undefined],
      ["chat", "invoke_agent"],
      ["execute_tool read", "invoke_agent"],
    ]);
    expect(spans.map(({ options, ends }) => [options.startTime, ...ends])).toEqual([
      [
        [3, 7_000_000],
        [8, 7_000_000],
      ],
      [
        [4, 7_000_000],
        [7, 7_000_000],
      ],
      [
        [5, 7_000_000],
        [6, 7_000_000],
      ],
    ]);
    expect(spans[0]?.attributes).toEqual({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.conversation.id": "ses_1",
      "belay.run.id": "run_1",
      "belay.run.attempt": 1,
      "belay.outcome": "completed",
    });
    expect(spans[1]?.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.usage.input_tokens": 10,
      "gen_ai.usage.output_tokens": 5,
    });
    expect(spans[2]?.attributes).toMatchObject({ "gen_ai.tool.name": "read", "gen_ai.tool.call.id": "call_1.1" });
    expect(spans.map(({ status }) => status)).toEqual([undefined, undefined, undefined]);
  });

  test("that is cancelled has the outcome `cancelled` and no error status, and so does a call", () => {
    open().observe(
      "ses_1",
      recorded(
        started("run_1"),
        called("call_1.1"),
        { type: "process.requested", processId: "proc_1.1", owner: "call_1.1", command: SECRET, feedback: "silent" },
        { type: "process.cancel_requested", processId: "proc_1.1", reason: { kind: "timeout", limitMs: 5 } },
        { type: "call.cancel_requested", runId: "run_1", callId: "call_1.1", reason: USER },
        ended("call_1.1", CANCELLED),
        { type: "run.cancel_requested", runId: "run_1", reason: USER },
        settled("run_1", CANCELLED),
      ),
    );
    const [run, call] = spans;
    expect(run?.status).toBeUndefined();
    expect(run?.attributes).toMatchObject({ "belay.outcome": "cancelled", "belay.cancel.reason": "user" });
    expect(run?.events).toEqual([
      {
        name: "belay.cancel_requested",
        attributes: { "belay.cancel.scope": "run", "belay.cancel.reason": "user" },
        at: [7, 7_000_000],
      },
    ]);
    expect(call?.attributes).toMatchObject({ "belay.outcome": "cancelled" });
    expect(call?.attributes).not.toHaveProperty("error.type");
    expect(call?.status).toBeUndefined();
    expect(call?.events.map(({ attributes }) => attributes)).toEqual([
      { "belay.cancel.scope": "process", "belay.cancel.reason": "timeout" },
      { "belay.cancel.scope": "call", "belay.cancel.reason": "user" },
    ]);
  });

  test("that is covered by the cancel of its session gets one cancel event", () => {
    open().observe(
      "ses_1",
      recorded(
        started("run_1"),
        { type: "session.cancel_requested", reason: USER, covers: ["run_1", "run_2"] },
        { type: "run.cancel_requested", runId: "run_1", reason: USER },
      ),
    );
    expect(spans[0]?.events.map(({ attributes }) => attributes)).toEqual([
      { "belay.cancel.scope": "session", "belay.cancel.reason": "user" },
    ]);
  });

  test("that failed or was lost is an error with its code and without its message", () => {
    const failed: Outcome = { kind: "failed", code: "provider", message: SECRET };
    const telemetry = open();
    telemetry.observe("ses_1", recorded(started("run_1"), settled("run_1", failed)));
    telemetry.observe("ses_2", recorded(started("run_2"), settled("run_2", { kind: "lost" })));
    expect(spans.map(({ status, attributes }) => [status, attributes["error.type"]])).toEqual([
      [{ code: SpanStatusCode.ERROR }, "provider"],
      [{ code: SpanStatusCode.ERROR }, "lost"],
    ]);
  });
});

test("G35: no span contains prompts, answers or secrets in titles and names", () => {
  const telemetry = open();
  telemetry.observe(
    "ses_1",
    recorded(
      { type: "session.created", sessionId: "ses_1", title: `About ${SECRET}` },
      { type: "run.accepted", runId: "run_1", prompt: { text: SECRET, data: SECRET }, delivery: "queue" },
      started("run_1"),
      { type: "turn.requested", runId: "run_1", turnId: "turn_1.1" },
      { type: "turn.extended", runId: "run_1", turnId: "turn_1.1", text: SECRET },
      called("call_1.1", `tool ${SECRET} ${"x".repeat(500)}`),
      { type: "call.settled", runId: "run_1", callId: "call_1.1", outcome: COMPLETED, result: SECRET },
      { type: "run.cancel_requested", runId: "run_1", reason: USER },
      settled("run_1", { kind: "failed", code: SECRET, message: SECRET }),
    ),
  );
  const exported = spans.map(({ parent: _, ...span }) => span);
  expect(JSON.stringify([exported, added])).not.toContain("canary");
  expect(named("invoke_agent")).toBeDefined();
  // A name that is not a tool's may be a whole command.
  expect(spans.map(({ name }) => name).filter((name) => name.startsWith("execute_tool"))).toEqual([
    "execute_tool tool",
  ]);
  expect(JSON.stringify(exported)).not.toContain("xxx");
});

describe("no span stays open", () => {
  const left = (): readonly string[] => spans.filter(({ ends }) => ends.length !== 1).map(({ name }) => name);

  test("when its run is parked, and the recovered run gets a new span", () => {
    const telemetry = open();
    telemetry.observe("ses_1", recorded(started("run_1"), called("call_1.1"), { type: "run.parked", runId: "run_1" }));
    expect([left(), telemetry.open]).toEqual([[], 0]);
    expect(spans.map(({ attributes }) => attributes["belay.outcome"])).toEqual(["parked", "unknown"]);
    telemetry.observe("ses_1", recorded({ type: "run.recovered", runId: "run_1", attempt: 2 }));
    expect(spans[2]?.attributes["belay.run.attempt"]).toBe(2);
    telemetry.close();
    expect([left(), telemetry.open]).toEqual([[], 0]);
  });

  test("when another worker drove its run in between", () => {
    const telemetry = open();
    telemetry.observe("ses_1", recorded(started("run_1"), called("call_1.1")));
    telemetry.observe("ses_1", recorded({ type: "run.recovered", runId: "run_1", attempt: 2 }));
    telemetry.observe("ses_1", recorded(settled("run_1", COMPLETED)));
    expect(left()).toEqual([]);
  });

  test("G33: when there are too many runs, or too many in one", () => {
    const telemetry = open();
    for (let index = 0; index < SPANS_RUNS_MAX + 5; index += 1) {
      telemetry.observe("ses_1", recorded(started(`run_x${index}`)));
    }
    expect(telemetry.open).toBe(SPANS_RUNS_MAX);
    expect(left()).toHaveLength(SPANS_RUNS_MAX);
    telemetry.observe("ses_1", recorded(started("run_1")));
    const before = spans.length;
    for (let index = 0; index < SPANS_PER_RUN_MAX + 5; index += 1) {
      telemetry.observe("ses_1", recorded(called(`call_1.${index}`)));
    }
    expect(spans.length - before).toBe(SPANS_PER_RUN_MAX);
    telemetry.close();
    expect(left()).toEqual([]);
  });

  test("when its turn is requested again under the same id", () => {
    const telemetry = open();
    const requested: Event = { type: "turn.requested", runId: "run_1", turnId: "turn_1.1" };
    telemetry.observe("ses_1", recorded(started("run_1"), requested, requested, settled("run_1", COMPLETED)));
    expect([spans.length, left()]).toEqual([3, []]);
  });
});

test("events from the middle of a run, after a restart, make no span and do not throw", () => {
  const telemetry = open();
  telemetry.observe("ses_1", recorded(called("call_1.1"), ended("call_1.1", COMPLETED), settled("run_1", COMPLETED)));
  expect([spans, telemetry.faults]).toEqual([[], 0]);
});

test("the meter gets the same measures as Prometheus", () => {
  open().observe("ses_1", recorded(started("run_1"), settled("run_1", COMPLETED)));
  expect(added).toEqual([["belay.runs.settled", 1, { outcome: "completed" }]]);
});

test("an SDK that throws does not affect the caller", () => {
  const telemetry = open();
  broken = true;
  telemetry.observe("ses_1", recorded(started("run_1"), settled("run_1", COMPLETED)));
  expect(telemetry.faults).toBe(1);
});

test("without an SDK nothing is exported", () => {
  trace.disable();
  metrics.disable();
  const telemetry = open();
  telemetry.observe("ses_1", recorded(started("run_1"), called("call_1.1"), settled("run_1", COMPLETED)));
  expect([telemetry.faults, telemetry.open]).toEqual([0, 0]);
});
