import { describe, expect, test } from "vitest";
import { RUN_CALLS_MAX, RUN_TEXT_CHARS_MAX } from "../limits.ts";
import type { Event, Recorded } from "../model/event.ts";
import type { CallId, RunId } from "../model/ids.ts";
import type { RunRow } from "../model/rows.ts";
import { RunReader } from "./run-view.ts";

const runId = "run_a" as const;
const turnId = "turn_a.1" as const;
const ROW: RunRow = {
  ...{ id: runId, session: "ses_1", phase: "live", acceptedAt: 2 },
  ...{ settledAt: undefined, key: "k", content: undefined, outcome: undefined },
};
const accepted: Event = { type: "run.accepted", runId, prompt: { text: "go" }, delivery: "queue" };
const started: Event = { type: "run.started", runId };
const requested: Event = { type: "turn.requested", runId, turnId };
const reason = { kind: "user", note: "enough" } as const;
const completed = { kind: "completed" } as const;
const usage = { inputTokens: 10, outputTokens: 2, estimated: false };
const model = { provider: "openai", id: "gpt" };

/** The events of a session from position 2, each at ten times its position. */
function readerOf(...events: readonly Event[]): RunReader {
  const reader = new RunReader(ROW);
  for (const [index, event] of events.entries()) {
    reader.note({ ...event, seq: index + 2, at: (index + 2) * 10 } as Recorded);
  }
  return reader;
}

const viewOf = (...events: readonly Event[]) => readerOf(...events).view;
const said = (text: string): Event => ({ type: "turn.extended", runId, turnId, text });
const ended = (fields: Partial<Extract<Event, { type: "turn.settled" }>> = {}): Event => ({
  ...{ type: "turn.settled", runId, turnId, outcome: completed, next: "end" },
  ...fields,
});
const callOf = (number: number, fields = {}): Event => ({
  ...{ type: "call.requested", runId, callId: `call_a.${number}` as CallId, name: "shell", input: null },
  ...fields,
});

describe("the view of a run", () => {
  test("has the prompt, the key, and when it was accepted, started and settled", () => {
    const edited: Event = { type: "run.edited", runId, prompt: { text: "go on" } };
    const settled: Event = { type: "run.settled", runId, outcome: completed };
    expect(viewOf(accepted, edited, started, settled)).toEqual({
      ...ROW,
      ...{ prompt: { text: "go on" }, delivery: "queue", accepted: { seq: 2, at: 20 } },
      ...{ started: { seq: 4, at: 40 }, settled: { seq: 5, at: 50 }, reason: undefined },
      ...{ turnId: undefined, text: undefined, turns: 0, usage: [], calls: [], callsOmitted: 0 },
    });
  });

  test("is incomplete if its beginning was removed, even if it is edited later", () => {
    const edited: Event = { type: "run.edited", runId, prompt: { text: "late" } };
    expect(viewOf(edited, started)).toMatchObject({ prompt: undefined, accepted: undefined, incomplete: true });
    expect(viewOf(accepted)).not.toHaveProperty("incomplete");
  });

  test("ignores events of other runs and of the session", () => {
    const other = "run_b" as RunId;
    const view = viewOf(
      accepted,
      { ...started, runId: other },
      { type: "run.settled", runId: other, outcome: completed },
      { type: "session.mode_set", mode: "auto" } as Event,
    );
    expect(view).toMatchObject({ started: undefined, settled: undefined });
  });

  test("keeps the first reason of its stop: that of the request, else that of its outcome", () => {
    const cancelled = { kind: "cancelled", reason: { kind: "timeout", limitMs: 5 } } as const;
    const settled: Event = { type: "run.settled", runId, outcome: cancelled };
    expect(viewOf(accepted, { type: "run.cancel_requested", runId, reason }).reason).toEqual(reason);
    expect(viewOf(accepted, { type: "run.cancel_requested", runId, reason }, settled).reason).toEqual(reason);
    expect(viewOf(accepted, settled).reason).toEqual(cancelled.reason);
    expect(viewOf(accepted, { type: "run.settled", runId, outcome: completed }).reason).toBeUndefined();
  });
});

describe("its text", () => {
  test("is that of its last turn, as far as it is known", () => {
    expect(viewOf(accepted, requested)).toMatchObject({ turnId, text: "", turns: 1 });
    expect(viewOf(accepted, requested, said("a"), said("b"))).toMatchObject({ text: "ab" });
    expect(viewOf(accepted, requested, said("a"), ended({ text: "abc" }))).toMatchObject({ text: "abc" });
    expect(viewOf(accepted, requested, said("a"), ended())).toMatchObject({ text: "a" });
    const next: Event = { type: "turn.requested", runId, turnId: "turn_a.2" };
    expect(viewOf(accepted, requested, said("a"), ended(), next)).toMatchObject({
      ...{ turnId: "turn_a.2", text: "", turns: 2 },
    });
    expect(readerOf(accepted, requested, said("a"), ended(), next).text).toBe("");
    // Its request was removed by a trim.
    expect(viewOf(said("rest"))).toMatchObject({ turnId, text: "rest", turns: 0 });
  });

  test("is cut in the view, and whole in the reader", () => {
    const long = "x".repeat(RUN_TEXT_CHARS_MAX + 1);
    const reader = readerOf(accepted, requested, ended({ text: long }));
    expect(reader.view).toMatchObject({ text: long.slice(1), truncated: true });
    expect(reader.text).toBe(long);
    expect(viewOf(accepted, requested, ended({ text: long.slice(1) }))).not.toHaveProperty("truncated");
  });
});

describe("its usage", () => {
  test("is added up for each model, and estimated if any part of it is", () => {
    const second: Event = { type: "turn.requested", runId, turnId: "turn_a.2" };
    const estimated = { ...usage, estimated: true };
    const sum = (...ends: readonly Event[]) => viewOf(accepted, requested, ...ends).usage;
    expect(sum(ended({ usage, model }), second, ended({ usage: estimated, model }))).toEqual([
      { model, turns: 2, inputTokens: 20, outputTokens: 4, estimated: true },
    ]);
    expect(sum(ended({ usage, model }), second, ended({ usage }))).toEqual([
      { model, turns: 1, ...usage },
      { model: undefined, turns: 1, ...usage },
    ]);
    expect(sum(ended())).toEqual([]);
  });

  test("includes the cost of the live turn so far, once", () => {
    const part = { inputTokens: 4, outputTokens: 1, estimated: true };
    const extended: Event = { type: "turn.extended", runId, turnId, text: "a", usage: part, model };
    const known = [{ model, turns: 1, ...part }];
    expect(viewOf(accepted, requested, extended).usage).toEqual(known);
    // A later piece without a figure forgets neither figure nor model.
    expect(viewOf(accepted, requested, extended, said("b")).usage).toEqual(known);
    expect(viewOf(accepted, requested, extended, ended({ usage, model })).usage).toEqual([
      { model, turns: 1, ...usage },
    ]);
    expect(viewOf(accepted, requested, extended, ended()).usage).toEqual([]);
  });
});

describe("its calls", () => {
  test("are listed with their tool, the model's id and their outcome", () => {
    const end: Event = { type: "call.settled", runId, callId: "call_a.1", outcome: completed };
    const none: Event = { type: "call.settled", runId, callId: "call_a.9", outcome: completed };
    const provider = { id: "toolu_1", input: "{}" };
    expect(viewOf(accepted, callOf(1), callOf(2, { provider }), end, none).calls).toEqual([
      {
        ...{ callId: "call_a.1", tool: "shell", outcome: completed },
        ...{ requested: { seq: 3, at: 30 }, settled: { seq: 5, at: 50 } },
      },
      {
        ...{ callId: "call_a.2", tool: "shell", providerCallId: "toolu_1", outcome: { kind: "running" } },
        ...{ requested: { seq: 4, at: 40 }, settled: undefined },
      },
    ]);
  });

  test("are the latest ones, and the omitted ones are counted", () => {
    const many = Array.from({ length: RUN_CALLS_MAX + 2 }, (_, index) => callOf(index + 1));
    const { calls, callsOmitted } = viewOf(accepted, ...many);
    expect(calls).toHaveLength(RUN_CALLS_MAX);
    expect(calls[0]?.callId).toBe("call_a.3");
    expect(callsOmitted).toBe(2);
    expect(viewOf(accepted, ...many.slice(2)).callsOmitted).toBe(0);
  });
});
