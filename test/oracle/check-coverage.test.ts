// What the model finds by the notes of requests: each stop goes back to the request that made it, and to no other.
import { describe, expect, test } from "vitest";
import type { CancelReason, CoveredProcess } from "../../src/core/model/cancel.ts";
import type { Event } from "../../src/core/model/event.ts";
import type { ProcessId } from "../../src/core/model/ids.ts";
import type { CallerRequest } from "./caller-history.ts";
import {
  at,
  call,
  found,
  GOOD,
  type Made,
  one,
  prompt,
  receipt,
  request,
  requested,
  returned,
  sessionId,
  turn,
  two,
} from "./example-history.ts";

const user = (note: string): CancelReason => ({ kind: "user", note });
const because = (note: string) => ({ kind: "cancelled", reason: user(note) }) as const;

/** The second run is withdrawn with this note. */
const withdrawn = (note: string): readonly Event[] =>
  GOOD.with(6, { type: "run.settled", runId: two, outcome: because(note) });
const wrong = ["G10 falseReceipts"];

describe("a run that was cancelled with a note:", () => {
  const cancel = (note: string) => request("cancel-run", { runId: two, note }, returned({ kind: "withdrawn" }));

  test("only its own request is reported as having withdrawn it", () => {
    expect(found({ events: withdrawn("mine"), requests: [cancel("mine")] })).toEqual([]);
    expect(found({ events: withdrawn("mine"), requests: [cancel("mine"), cancel("other")] })).toEqual(wrong);
  });

  test("some request has that note, if the history is complete", () => {
    expect(found({ events: withdrawn("mine"), requests: [] })).toEqual([]);
    expect(found({ events: withdrawn("mine"), requests: [], complete: true })).toEqual(["G15 falseOutcomes"]);
  });

  test("that request names it", () => {
    const settled = returned({ kind: "settled", outcome: { kind: "completed" } } as const);
    const aimed = (made: CallerRequest): Made => ({ events: withdrawn("mine"), requests: [made] });
    const other = request("cancel-run", { runId: one, note: "mine" }, settled);
    expect(found(aimed(other))).toEqual(["G7 falseReceipts"]);
    const byKey = request("cancel-prompt", { label: "second", note: "mine" }, returned({ kind: "withdrawn" }));
    expect(found(aimed(byKey))).toEqual([]);
    const event = { type: "run.settled", like: { runId: two }, unique: true } as const;
    const change = request("change", { runId: two, event, note: "mine" }, returned({ kind: "changed", seq: 7 }));
    expect(found(aimed(change))).toEqual([]);
    const reached = returned({ kind: "withdrawn", runId: one } as const);
    expect(found(aimed(request("cancel-prompt", { label: "second", note: "mine" }, reached)))).toEqual(wrong);
  });

  test("G7: a cancel of its session was sent after it", () => {
    const runs = [{ runId: two, receipt: { kind: "withdrawn" } }] as const;
    const wide = (sentAt: number) => ({
      ...request("cancel-session", { note: "mine" }, returned({ kind: "withdrawn", runs }), sentAt),
      life: 1,
    });
    const sent = { ...request("prompt", { label: "second", runId: two }, receipt(two, 6), 30), life: 1 };
    expect(found({ events: withdrawn("mine"), requests: [sent, wide(40)] })).toEqual([]);
    expect(found({ events: withdrawn("mine"), requests: [sent, wide(20)] })).toEqual(["G7 falseReceipts"]);
  });

  test("it was not stopped for a run that was never accepted", () => {
    const outcome = { kind: "cancelled", reason: { kind: "superseded", by: "run_nine" } } as const;
    const events = GOOD.with(6, { type: "run.settled", runId: two, outcome });
    expect(found({ events, requests: [] })).toEqual(["G3 refusedTraces"]);
  });
});

test("G7: a cancel of a session and a prompt are recorded in the order they were sent in", () => {
  const events = GOOD.toSpliced(5, 0, { type: "session.cancel_requested", reason: user("mine"), covers: [] });
  const cancel = (sentAt: number) => ({
    ...request("cancel-session", { note: "mine" }, returned({ kind: "idle", runs: [] }), sentAt),
    life: 1,
  });
  const sent = { ...request("prompt", { label: "second", runId: two }, receipt(two, 7), 30), life: 1 };
  expect(found({ events, requests: [sent, cancel(20)] })).not.toContain("G7 outOfOrder");
  expect(found({ events, requests: [sent, cancel(40)] })).toContain("G7 outOfOrder");
  expect(found({ events, requests: [sent, { ...cancel(40), life: 2 }] })).not.toContain("G7 outOfOrder");
});

/** The call, or the run, is stopped while it is live. */
const stopped = (...stops: readonly Event[]): readonly Event[] => [
  ...GOOD.slice(0, 7),
  ...stops,
  { type: "call.settled", runId: one, callId: call, outcome: because("mine") },
  { type: "turn.settled", ...turn(one), outcome: because("mine"), next: "end", text: "" },
  { type: "run.settled", runId: one, outcome: because("mine") },
];

describe("a stop", () => {
  const runStop: Event = { type: "run.cancel_requested", runId: one, reason: user("mine") };
  const stopping = (first: boolean, since = 8) => returned({ kind: "stopping", since, first } as const);
  const of = (note: string, first: boolean, since?: number) =>
    request("cancel-run", { runId: one, note }, stopping(first, since));
  const check = (...requests: readonly CallerRequest[]) => found({ events: stopped(runStop), requests });

  test("is the first one for one request only, since where it is recorded", () => {
    expect(check(of("mine", true), of("other", false))).toEqual([]);
    expect(check(of("mine", false))).toEqual(wrong);
    expect(check(of("other", true))).toEqual(["G10 falseReceipts"]);
    expect(check(of("mine", true, 7))).toEqual(wrong);
    expect(check(at(of("mine", true), { head: 7 }))).toEqual(wrong);
  });

  test("of a run stops its calls as well", () => {
    expect(check(request("cancel-call", { callId: call, note: "other" }, stopping(false)))).toEqual([]);
    expect(check(request("cancel-call", { callId: call, note: "other" }, stopping(true)))).toEqual(wrong);
    expect(check(request("cancel-call", { callId: call }, returned({ kind: "withdrawn" })))).toEqual(wrong);
  });
});

test("G12: a cancelled run names the work that did not stop, and no other", () => {
  const stop: Event = { type: "run.cancel_requested", runId: one, reason: user("mine") };
  const abandoned = (work: readonly string[] | undefined, named: readonly string[] | undefined): readonly Event[] =>
    stopped(stop).map((event) => {
      if (event.type !== "call.settled" && event.type !== "run.settled") return event;
      const names = event.type === "call.settled" ? work : event.runId === one ? named : undefined;
      return names === undefined ? event : { ...event, outcome: { ...because("mine"), abandoned: names } };
    });
  const check = (work?: readonly string[], named?: readonly string[]) =>
    found({ events: abandoned(work, named), requests: [] });
  expect(check()).toEqual([]);
  expect(check(["call"], ["call"])).toEqual([]);
  expect(check(["call"])).toEqual(["G12 falseOutcomes"]);
  expect(check(undefined, ["call"])).toEqual(["G12 falseOutcomes"]);
});

describe("a call that was cancelled by itself", () => {
  const events = (remind: boolean): readonly Event[] => {
    const cancelled: Event = { type: "call.cancel_requested", runId: one, callId: call, reason: user("mine") };
    const settled: Event = { type: "call.settled", runId: one, callId: call, outcome: because("mine") };
    return GOOD.toSpliced(7, 1, remind ? { ...cancelled, remind: true } : cancelled, settled);
  };
  const calls = (made: Made): readonly string[] =>
    found({ complete: true, requests: [prompt("first", one, 2, 1)], ...made }).filter(
      (each) => each !== "G9 brokenLogs" && !each.startsWith("G15"),
    );
  const aimed = (callId: typeof call, remind: boolean) =>
    request("cancel-call", { callId, remind, note: "mine" }, { kind: "unknown", code: "disconnected" });

  test("was named by the request with that note, and has the reminder it requests", () => {
    expect(calls({ events: events(false), requests: [aimed(call, false)] })).toEqual([]);
    expect(calls({ events: events(false), requests: [aimed("call_one.7", false)] })).toEqual(wrong);
    expect(calls({ events: events(false), requests: [aimed(call, true)] })).toEqual(["G9 falseReceipts"]);
    expect(calls({ events: events(true), requests: [aimed(call, false)] })).toEqual(["G9 falseReceipts"]);
  });
});

describe("processes in the background", () => {
  const processId: ProcessId = "proc_a.1";
  const started: Event = {
    type: "process.requested",
    processId,
    owner: sessionId,
    command: "sleep",
    feedback: "silent",
  };
  const ends = (note: string): readonly Event[] => [
    { type: "session.cancel_requested", reason: user(note), covers: [] },
    { type: "process.cancel_requested", processId, reason: user(note) },
    { type: "process.settled", processId, outcome: because(note) },
  ];
  const events = [...GOOD, started, ...ends("mine")];
  const cancel = (processes: readonly CoveredProcess[], keep?: true) =>
    at(
      request(
        "cancel-session",
        { note: "mine", ...(keep === undefined ? {} : { keep }) },
        returned({ kind: "stopping", runs: [], processes }),
      ),
      { sentHead: 11, head: 13 },
    );
  const stopping = (since: number, first: boolean): readonly CoveredProcess[] => [
    { processId, receipt: { kind: "stopping", since, first } },
  ];
  const check = (made: CallerRequest) => found({ events, requests: [made] });

  test("are covered by a cancel of their session, with their own stop", () => {
    expect(check(cancel(stopping(13, true)))).toEqual([]);
    expect(check(cancel(stopping(12, true)))).toEqual(wrong);
    expect(check(cancel(stopping(13, false)))).toEqual(wrong);
    expect(check(cancel([{ processId, receipt: { kind: "withdrawn" } }]))).toEqual(wrong);
    expect(check(cancel([]))).toEqual(["G7 falseReceipts"]);
  });

  test("are kept if the cancel says so", () => {
    expect(check(cancel([], true))).toEqual([]);
    expect(check(cancel(stopping(13, true), true))).toEqual(["G9 falseReceipts"]);
  });

  test("are never withdrawn", () => {
    const made = request("cancel-process", { processId }, returned({ kind: "withdrawn" }));
    expect(check(made)).toEqual(wrong);
    const own = request(
      "cancel-process",
      { processId, note: "mine" },
      returned({ kind: "stopping", since: 13, first: true }),
    );
    expect(check(own)).toEqual([]);
  });
});

test("a stop of a process may be that of the call it belongs to", () => {
  const processId: ProcessId = "proc_a.1";
  const started: Event = { type: "process.requested", processId, owner: call, command: "x", feedback: "silent" };
  const events = [
    ...GOOD.slice(0, 4),
    requested(call),
    started,
    { type: "call.cancel_requested", runId: one, callId: call, reason: user("mine") },
    { type: "process.settled", processId, outcome: because("mine") },
    { type: "call.settled", runId: one, callId: call, outcome: because("mine") },
    { type: "turn.settled", ...turn(one), outcome: { kind: "completed" }, next: "end", text: "" },
    { type: "run.settled", runId: one, outcome: { kind: "completed" } },
  ] as const;
  const made = (since: number, first: boolean) =>
    request("cancel-process", { processId, note: "other" }, returned({ kind: "stopping", since, first }));
  const check = (cancel: CallerRequest) => found({ events, requests: [cancel] });
  expect(check(made(7, false))).toEqual([]);
  expect(check(made(7, true))).toEqual(wrong);
  expect(check(made(6, false))).toEqual(wrong);
});
