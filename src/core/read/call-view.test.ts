import { expect, test } from "vitest";
import type { Event, Recorded } from "../model/event.ts";
import type { CallId } from "../model/ids.ts";
import { CallReader } from "./call-view.ts";

const runId = "run_a" as const;
const reason = { kind: "user", note: "enough" } as const;
const completed = { kind: "completed" } as const;
const cancelled = { kind: "cancelled", reason: { kind: "timeout", limitMs: 5 } } as const;

const wanted = (number: number, fields = {}): Event => ({
  ...{ type: "call.requested", runId, callId: `call_a.${number}` as CallId, name: "shell", input: { command: "ls" } },
  ...fields,
});
const settled = (number: number, fields: Partial<Extract<Event, { type: "call.settled" }>> = {}): Event => ({
  ...{ type: "call.settled", runId, callId: `call_a.${number}` as CallId, outcome: completed },
  ...fields,
});
const stop: Event = { type: "call.cancel_requested", runId, callId: "call_a.1", reason };

function readerOf(...events: readonly Event[]): CallReader {
  const reader = new CallReader("ses_1", ({ name }) => name === "shell");
  for (const [index, event] of events.entries()) {
    reader.note({ ...event, seq: index + 1, at: (index + 1) * 10 } as Recorded);
  }
  return reader;
}

const viewOf = (...events: readonly Event[]) => readerOf(...events).view;

test("has the tool, input, run and time of a call", () => {
  const at = { seq: 1, at: 10 };
  const open = { settled: undefined, reason: undefined, outcome: undefined };
  const about = { id: "call_a.1", session: "ses_1", run: runId, tool: "shell", input: { command: "ls" } };
  expect(viewOf(wanted(1))).toEqual({ ...about, phase: "running", since: at, requested: at, ...open });
  expect(viewOf(wanted(1, { provider: { id: "toolu_1" } }))?.providerCallId).toBe("toolu_1");
  expect(viewOf(wanted(1, { name: "read" }), stop, settled(1))).toBeUndefined();
});

test("is stopping from the request of its stop, or of its run's, with the first reason", () => {
  const ofRun: Event = { type: "run.cancel_requested", runId, reason: { kind: "shutdown" } };
  const ofAnother: Event = { type: "run.cancel_requested", runId: "run_b", reason };
  expect(viewOf(wanted(1), stop)).toMatchObject({ phase: "stopping", reason, since: { seq: 2, at: 20 } });
  expect(viewOf(wanted(1), ofRun)).toMatchObject({ phase: "stopping", reason: { kind: "shutdown" } });
  expect(viewOf(wanted(1), stop, ofRun)).toMatchObject({ reason, since: { seq: 2, at: 20 } });
  expect(viewOf(wanted(1), ofAnother)).toMatchObject({ phase: "running", reason: undefined });
  expect(viewOf(wanted(1), settled(1), stop)).toMatchObject({ phase: "settled", reason: undefined });
});

test("has the end, with the result, the changes, and whether the call had begun", () => {
  const end = settled(1, { result: "listed", changes: ["a.txt"], begun: false });
  expect(viewOf(wanted(1), end)).toMatchObject({
    ...{ phase: "settled", since: { seq: 2, at: 20 }, settled: { seq: 2, at: 20 }, outcome: completed },
    ...{ result: "listed", changes: ["a.txt"], begun: false, reason: undefined },
  });
  for (const absent of ["result", "changes", "begun"]) {
    expect(viewOf(wanted(1), settled(1))).not.toHaveProperty(absent);
  }
  expect(viewOf(wanted(1), settled(1, { outcome: cancelled }))?.reason).toEqual(cancelled.reason);
  expect(viewOf(wanted(1), stop, settled(1, { outcome: cancelled }))?.reason).toEqual(reason);
  expect(viewOf(wanted(1), stop, settled(1))?.reason).toEqual(reason);
});

test("of several calls is that of the last live one, otherwise of the last one", () => {
  expect(viewOf(wanted(1), wanted(2), settled(2))?.id).toBe("call_a.1");
  expect(viewOf(wanted(1), wanted(2))?.id).toBe("call_a.2");
  expect(viewOf(wanted(1), wanted(2), settled(2), settled(1))?.id).toBe("call_a.2");
  expect(readerOf(wanted(1), wanted(2), settled(1)).live.map(({ id }) => id)).toEqual(["call_a.2"]);
});
