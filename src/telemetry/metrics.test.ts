import { describe, expect, test } from "vitest";
import type { Event, Recorded } from "../core/model/event.ts";
import { EventCounters, eventMetrics } from "./event-counters.ts";
import { RUNS_MEASURED_MAX, SERIES_MAX } from "./limits.ts";
import { Metrics } from "./metrics.ts";

const samples = (metrics: Metrics): readonly string[] =>
  metrics
    .text()
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));

describe("the text of a scrape", () => {
  test("has exactly the Prometheus format: help, type, samples, in order, each line ended", () => {
    const metrics = new Metrics();
    const counter = metrics.counter({ name: "belay_a_total", help: "Things.", labels: ["kind", "by"] });
    counter.add(1, { kind: "x", by: "y" });
    counter.add(2.5, { kind: "x", by: "y" });
    counter.add(1, { kind: "z", by: "y" });
    metrics.counter({ name: "belay_b_total", help: "Others." });
    metrics.gauge({ name: "belay_c", help: "Now." }, () => 7);
    expect(metrics.text()).toBe(
      [
        "# HELP belay_a_total Things.",
        "# TYPE belay_a_total counter",
        'belay_a_total{kind="x",by="y"} 3.5',
        'belay_a_total{kind="z",by="y"} 1',
        "# HELP belay_b_total Others.",
        "# TYPE belay_b_total counter",
        "belay_b_total 0",
        "# HELP belay_c Now.",
        "# TYPE belay_c gauge",
        "belay_c 7",
        "",
      ].join("\n"),
    );
  });

  test("counts a value in every bucket that it fits", () => {
    const metrics = new Metrics();
    const histogram = metrics.histogram({ name: "belay_d_seconds", help: "Took.", labels: ["of"] }, [0.1, 1]);
    for (const value of [0.1, 0.5, 3, Number.NaN]) histogram.observe(value, { of: "it" });
    expect(samples(metrics)).toEqual([
      'belay_d_seconds_bucket{of="it",le="0.1"} 1',
      'belay_d_seconds_bucket{of="it",le="1"} 2',
      'belay_d_seconds_bucket{of="it",le="+Inf"} 3',
      'belay_d_seconds_sum{of="it"} 3.6',
      'belay_d_seconds_count{of="it"} 3',
    ]);
  });

  test("escapes characters that would end a line or a label", () => {
    const metrics = new Metrics();
    const counter = metrics.counter({ name: "a_total", help: 'one\ntwo \\ "', labels: ["l"] });
    counter.add(1, { l: 'x"} 9\nforged 1 \\' });
    expect(metrics.text()).toBe(
      '# HELP a_total one\\ntwo \\\\ "\n# TYPE a_total counter\na_total{l="x\\"} 9\\nforged 1 \\\\"} 1\n',
    );
  });

  test("has the current value of a gauge for each set of labels, and omits a gauge that throws", () => {
    const metrics = new Metrics();
    let open = 1;
    metrics.gauge({ name: "a", help: "a" }, () => open);
    metrics.gauge({ name: "b", help: "b" }, () => {
      throw new Error("no");
    });
    metrics.gauge({ name: "c", help: "c" }, () => [
      { value: Number.NaN, labels: { k: "1" } },
      { value: -Infinity, labels: { k: "2" } },
    ]);
    open = 2;
    expect(samples(metrics)).toEqual(["a 2", 'c{k="1"} NaN', 'c{k="2"} -Inf']);
  });

  test("K11: has a bounded number of series, whatever users do", { meta: { id: "G33/metric-series-bounded" } }, () => {
    const metrics = new Metrics();
    const counter = metrics.counter({ name: "a_total", help: "a", labels: ["k"] });
    for (let index = 0; index < 10_000; index += 1) counter.add(1, { k: `value ${index}` });
    counter.add(1, { k: "value 0" });
    expect(samples(metrics)).toHaveLength(SERIES_MAX + 1);
    expect(samples(metrics)[0]).toBe('a_total{k="value 0"} 2');
    expect(samples(metrics).at(-1)).toBe(`a_total{k="other"} ${10_000 - SERIES_MAX}`);
  });

  test("has counters that never decrease, and metrics with unique names", () => {
    const metrics = new Metrics();
    const counter = metrics.counter({ name: "a_total", help: "a" });
    for (const by of [1, -5, Number.NaN, Infinity]) counter.add(by, {});
    expect(samples(metrics)).toEqual(["a_total 1"]);
    expect(() => metrics.counter({ name: "a_total", help: "again" })).toThrow("already");
    expect(() => metrics.counter({ name: "not a name", help: "x" })).toThrow("not the name");
  });
});

/** Events one second apart, starting at 1 s. */
const recorded = (...events: readonly Event[]): readonly Recorded[] =>
  events.map((event, index) => ({ ...event, seq: index + 1, at: 1_000 * (index + 1) }));

const accepted = (runId: `run_${string}`): Event => ({
  type: "run.accepted",
  runId,
  prompt: { text: "secret words" },
  delivery: "queue",
});

const USER = { kind: "user", note: "secret note" } as const;
const CANCELLED = { kind: "cancelled", reason: USER } as const;

function scraped(...batches: readonly (readonly Recorded[])[]): readonly string[] {
  const metrics = new Metrics();
  const observe = eventMetrics(metrics);
  for (const batch of batches) observe("ses_1", batch);
  return samples(metrics).filter((line) => !line.endsWith(" 0"));
}

describe("recorded events", () => {
  test("of a cancelled run count it, its wait in the queue and the duration of its stop", () => {
    const lines = scraped(
      recorded(
        accepted("run_1"),
        { type: "run.started", runId: "run_1" },
        { type: "run.cancel_requested", runId: "run_1", reason: USER },
        { type: "run.settled", runId: "run_1", outcome: CANCELLED },
      ),
    );
    expect(lines).toContain('belay_runs_accepted_total{delivery="queue"} 1');
    expect(lines).toContain('belay_runs_settled_total{outcome="cancelled"} 1');
    expect(lines).toContain('belay_cancels_requested_total{scope="run",reason="user"} 1');
    expect(lines).toContain("belay_run_stop_seconds_sum 1");
    expect(lines).toContain("belay_queue_wait_seconds_sum 1");
    expect(lines.join()).not.toContain("secret");
  });

  test("of turns, calls and processes count tokens, outcomes and escaped processes", () => {
    const usage = { inputTokens: 10, outputTokens: 5, estimated: false };
    const lines = scraped(
      recorded(
        { type: "turn.settled", runId: "run_1", turnId: "turn_1.1", outcome: CANCELLED, next: "end", usage },
        { type: "call.cancel_requested", runId: "run_1", callId: "call_1.1", reason: USER },
        { type: "call.settled", runId: "run_1", callId: "call_1.1", outcome: CANCELLED },
        { type: "process.started", processId: "proc_1.1", pid: 1, tier: "group", profile: "none" },
        { type: "process.cancel_requested", processId: "proc_1.1", reason: { kind: "timeout", limitMs: 1 } },
        { type: "process.settled", processId: "proc_1.1", outcome: { kind: "lost" }, escaped: [4, 5] },
      ),
    );
    expect(lines).toEqual([
      'belay_calls_settled_total{outcome="cancelled"} 1',
      'belay_cancels_requested_total{scope="call",reason="user"} 1',
      'belay_cancels_requested_total{scope="process",reason="timeout"} 1',
      'belay_turn_tokens_total{direction="input",counted_by="provider"} 10',
      'belay_turn_tokens_total{direction="output",counted_by="provider"} 5',
      "belay_processes_started_total 1",
      'belay_processes_settled_total{outcome="lost"} 1',
      "belay_processes_escaped_total 2",
    ]);
  });

  test("of the cancel of a session count one cancel, whatever it covers", () => {
    const lines = scraped(
      recorded(accepted("run_1"), { type: "run.started", runId: "run_1" }, accepted("run_2")),
      recorded(
        { type: "session.cancel_requested", reason: USER, covers: ["run_1", "run_2"] },
        { type: "run.cancel_requested", runId: "run_1", reason: USER },
        { type: "run.settled", runId: "run_2", outcome: CANCELLED },
        { type: "process.cancel_requested", processId: "proc_1.1", reason: USER },
      ),
    );
    expect(lines.filter((line) => line.startsWith("belay_cancels"))).toEqual([
      'belay_cancels_requested_total{scope="session",reason="user"} 1',
    ]);
  });

  test("of a run that was withdrawn before its start count the cancel, and no duration", () => {
    const lines = scraped(recorded(accepted("run_1"), { type: "run.settled", runId: "run_1", outcome: CANCELLED }));
    expect(lines).toContain('belay_cancels_requested_total{scope="run",reason="user"} 1');
    expect(lines.join()).not.toContain("seconds");
  });

  test("G34: across a clock that was set back have a duration of 0", {
    meta: { id: "G34/metrics-clock-set-back" },
  }, () => {
    const counters = new EventCounters();
    counters.measure([{ ...accepted("run_1"), seq: 1, at: 5_000 }]);
    expect(counters.measure([{ type: "run.started", runId: "run_1", seq: 2, at: 1_000 }])).toEqual([
      { of: "queueWait", value: 0, labels: {} },
    ]);
  });

  test("K10: of a run are dropped when it settles, and earlier if there are too many runs", {
    meta: { id: "G33/run-metrics-forgotten" },
  }, () => {
    const counters = new EventCounters();
    for (let index = 0; index < RUNS_MEASURED_MAX + 10; index += 1)
      counters.measure(recorded(accepted(`run_${index}`)));
    expect(counters.size).toBe(RUNS_MEASURED_MAX);
    for (let index = 0; index < RUNS_MEASURED_MAX + 10; index += 1) {
      counters.measure(recorded({ type: "run.settled", runId: `run_${index}`, outcome: { kind: "completed" } }));
    }
    expect(counters.size).toBe(0);
  });
});
