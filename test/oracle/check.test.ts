// The model, tested with made-up histories: it finds each broken promise, and nothing in a good history.
import { describe, expect, test } from "vitest";
import type { Event, Recorded } from "../../src/core/model/event.ts";
import type { CallId, RunId } from "../../src/core/model/ids.ts";
import { transcript } from "../../src/core/read/transcript-builder.ts";
import type { Answer, CallerRequest, RequestTypes } from "./caller-history.ts";
import { acknowledged } from "./check-prompts.ts";
import {
  accepted,
  also,
  begin,
  but,
  call,
  completed,
  EFFECTS,
  end,
  enough,
  findings,
  found,
  GOOD,
  type Made,
  one,
  outcome,
  prompt,
  REQUESTS,
  receipt,
  record,
  refused,
  request,
  requested,
  returned,
  sessionId,
  settled,
  two,
} from "./example-history.ts";

test("a history that fits its log has no findings, and its acknowledged prompts are counted", () => {
  const slices = [{ sessionId, after: 0, received: record(GOOD), untilRest: true }] as const;
  const transcripts = new Map([[sessionId, transcript(GOOD)]]);
  expect(findings({ slices, transcripts })).toEqual([]);
  expect(acknowledged({ requests: REQUESTS, slices })).toBe(2);
});

describe("prompts: the model finds", () => {
  test("one that was acknowledged and is not in the log", () => {
    expect(found(also(prompt("third", "run_three", 11, 9)))).toEqual(["G1 lost"]);
    expect(found({ events: GOOD.slice(0, 1), requests: [prompt("first", one, 2, 1)], effects: [] })).toEqual([
      "G1 lost",
    ]);
  });

  test("one that was acknowledged as the run of another prompt, or at another place", () => {
    expect(found({ requests: [prompt("first", two, 6, 1)] })).toEqual(["G1 lost"]);
    expect(found({ requests: [prompt("first", one, 3, 1)] })).toEqual(["G10 falseReceipts"]);
  });

  test("one that became two runs", () => {
    const last: Event = { type: "run.settled", runId: "run_three", outcome: enough };
    expect(found({ events: [...GOOD, accepted("run_three", "first"), last] })).toEqual(["G2 doublePrompts"]);
  });

  test("one that repeats another, and runs as well", () => {
    const twice = request("prompt", { label: "first", runId: one }, receipt("run_nine", 2));
    expect(found({ requests: [twice] })).toContain("G2 doublePrompts");
  });

  test("two runs with one key", () => {
    const runs = (["run_three", "run_four"] as const).flatMap((runId): Event[] => [
      accepted(runId, runId, "k"),
      { type: "run.settled", runId, outcome: enough },
    ]);
    expect(found({ events: [...GOOD, ...runs] })).toEqual(["G2 brokenLogs"]);
  });

  test("one that was refused and is in the log, by its label or by its run", () => {
    const [first, , ...others] = REQUESTS;
    const labelled = request("prompt", { label: "second" }, refused("busy"));
    expect(found({ requests: [first, labelled, ...others].flatMap((each) => each ?? []) })).toEqual([
      "G3 refusedTraces",
    ]);
    const known = request("prompt", { label: "again", runId: two }, refused("store_full"));
    expect(found(also(known))).toEqual(["G3 refusedTraces"]);
  });

  test("one that comes before a prompt that was acknowledged before it was sent", () => {
    expect(found({ requests: [prompt("second", two, 6, 1), prompt("first", one, 2, 3)] })).toEqual(["G4 outOfOrder"]);
  });

  test("nothing, if the answer is unknown, in the log or not", () => {
    const unknown: Answer<never> = { kind: "unknown", code: "disconnected" };
    const requests = ["first", "second", "third"].map((label) => request("prompt", { label }, unknown));
    expect(found({ requests })).toEqual([]);
    expect(found({ requests: [request("prompt", { label: "first", runId: one }, unknown)] })).toEqual([]);
  });
});

describe("any request: the model finds", () => {
  test("one that is never answered", () => {
    expect(found(also(request("other", { label: "create" }, { kind: "pending" })))).toEqual(["G8 stuck"]);
  });

  test("one that is rejected without a code, or with a fault of Belay's own", () => {
    const error: Answer<never> = { kind: "error", error: "TypeError" };
    expect(found(also(request("other", { label: "create" }, error)))).toEqual(["G28 faults"]);
  });
});

describe("outcomes and logs: the model finds", () => {
  test("an outcome that is not the recorded one", () => {
    expect(found(also(outcome(one, { kind: "lost" })))).toEqual(["G15 falseOutcomes"]);
  });

  test("a run that has no outcome, or two", () => {
    expect(found({ events: GOOD.slice(0, -1), requests: [] })).toContain("G24 withoutOutcome");
    const twice: Event = { type: "run.settled", runId: one, outcome: completed };
    expect(found({ events: [...GOOD, twice] })).toContain("G14 twoOutcomes");
  });

  test("a log that breaks the contract in itself", () => {
    expect(found({ events: GOOD.toSpliced(3, 0, { type: "run.started", runId: two }) })).toContain("G4 brokenLogs");
  });

  test("a returned transcript that is not that of the log", () => {
    expect(found({ transcripts: new Map([[sessionId, []]]) })).toEqual(["G17 brokenTranscripts"]);
  });
});

describe("work: the model finds", () => {
  test("a call that was carried out twice, or by another call again", () => {
    expect(found({ effects: [begin, { ...begin, life: 2 }, end] })).toEqual(["G25 repeatedCalls"]);
    const again: CallId = "call_one.2";
    const effects = [begin, end, { ...begin, work: again }, { ...end, work: again }];
    expect(found({ events: GOOD.toSpliced(8, 0, requested(again), settled(again)), effects })).toEqual([
      "G25 repeatedCalls",
    ]);
  });

  test("a turn that was carried out twice", () => {
    expect(found({ effects: [...EFFECTS, ...EFFECTS.slice(0, 1)] })).toEqual(["G25 repeatedCalls"]);
  });

  test("work that the log never requested", () => {
    expect(found({ effects: [...EFFECTS, { ...begin, work: "call_one.7", step: "one 7" }] })).toEqual([
      "G1 repeatedCalls",
    ]);
  });

  test("a call that is recorded as completed and never came to its end", () => {
    expect(found({ effects: [begin] })).toEqual(["G15 falseOutcomes"]);
  });

  test("a call that may be repeated and was, only if that was in one life", () => {
    const events = but(4, requested(call, { idempotent: true }));
    expect(found({ events, effects: [begin, { ...begin, life: 2 }, end] })).toEqual([]);
    expect(found({ events, effects: [begin, begin, end] })).toEqual(["G25 repeatedCalls"]);
    const { life: _, ...unknown } = begin;
    expect(found({ events, effects: [unknown, unknown, end] })).toEqual([]);
  });
});

describe("followers: the model finds", () => {
  const slice = (received: readonly Recorded[], untilRest?: true): Made => ({
    slices: [{ sessionId, after: 0, received, ...(untilRest === undefined ? {} : { untilRest }) }],
  });
  const all = record(GOOD);

  test("one that missed an event, or received one twice", () => {
    expect(found(slice(all.toSpliced(3, 1)))).toEqual(["G30 brokenSlices"]);
    expect(found(slice(all.slice(0, 2).concat(all.slice(1, 2))))).toEqual(["G30 brokenSlices"]);
  });

  test("one that received another event than the log has, or one beyond its end", () => {
    const other: Recorded = { type: "run.started", runId: two, seq: 3, at: 0 };
    expect(found(slice(all.toSpliced(2, 1, other)))).toEqual(["G29 brokenSlices"]);
    expect(found(slice([...all, { ...other, seq: 11 }]))).toEqual(["G29 brokenSlices"]);
  });

  test("one that was connected until everything was at rest, and has not received everything", () => {
    expect(found(slice(all.slice(0, 3), true))).toEqual(["G30 brokenSlices"]);
    expect(found(slice(all.slice(0, 3)))).toEqual([]);
  });

  test("nothing, if a gap was announced; but a gap that does not follow", () => {
    const gap = (from: number): Made => ({
      slices: [{ sessionId, after: 0, received: [{ type: "gap", from, to: 3 }, ...all.slice(3)], untilRest: true }],
    });
    expect(found(gap(1))).toEqual([]);
    expect(found(gap(2))).toEqual(["G30 brokenSlices"]);
  });
});

describe("a receipt of a cancel is false if", () => {
  const wrong = ["G10 falseReceipts"];

  test("what is stopping was not stopped", () => {
    const stopping = returned({ kind: "stopping", since: 4, first: true } as const);
    expect(found(also(request("cancel-run", { runId: one }, stopping)))).toEqual(wrong);
    expect(found(also(request("cancel-call", { callId: call }, stopping)))).toEqual(wrong);
    expect(found(also(request("cancel-process", { processId: "proc_1.1" }, stopping)))).toEqual(wrong);
  });

  test("what was withdrawn had begun", () => {
    expect(found(also(request("cancel-run", { runId: one }, returned({ kind: "withdrawn" }))))).toEqual(wrong);
    const runs = [{ runId: one, receipt: { kind: "withdrawn" } }] as const;
    expect(found(also(request("cancel-session", {}, returned({ kind: "withdrawn", runs }))))).toEqual(wrong);
  });

  test("what had settled had settled otherwise, or was waited for and did", () => {
    const lost = { kind: "settled", outcome: { kind: "lost" } } as const;
    expect(found(also(request("cancel-run", { runId: one }, returned(lost))))).toEqual(wrong);
    expect(found(also(request("cancel-prompt", { label: "first" }, returned(lost))))).toEqual(wrong);
    const waited = returned({ kind: "withdrawn", ended: lost } as const);
    expect(found(also(request("cancel-run", { runId: two }, waited)))).toEqual(wrong);
    expect(
      found(also(request("cancel-run", { runId: one }, returned({ kind: "settled", outcome: completed })))),
    ).toEqual([]);
  });

  test("what is in the log was reported as unknown", () => {
    const unknown = returned({ kind: "unknown" } as const);
    expect(found(also(request("cancel-run", { runId: one }, unknown)))).toEqual(wrong);
    expect(found(also(request("cancel-prompt", { label: "first" }, unknown)))).toEqual(wrong);
    expect(found(also(request("cancel-call", { callId: call }, unknown)))).toEqual(wrong);
  });

  test("it was refused, and the store does not fail", () => {
    const busy = also(request("cancel-run", { runId: one }, refused("busy")));
    expect(found(busy)).toEqual(wrong);
    expect(found({ ...busy, storeFails: true })).toEqual([]);
  });

  test("it was refused as carried out, and the run was not stopped", () => {
    const forgotten = also(request("cancel-run", { runId: one }, refused("store_full", true)));
    expect(found({ ...forgotten, storeFails: true })).toEqual(["G28 falseReceipts"]);
  });

  test("it names a prompt that is nowhere", () => {
    const withdrawn = request("cancel-prompt", { label: "none" }, returned({ kind: "withdrawn" }));
    expect(found(also(withdrawn))).toEqual(["G1 lost"]);
  });
});

describe("a change", () => {
  const moved = { runId: two, event: { type: "run.moved", like: { runId: two }, unique: false } } as const;
  const withdrawn = { ...moved, event: { ...moved.event, type: "run.settled" } } as const;
  const edited = (text: string) =>
    ({ runId: two, event: { type: "run.edited", like: { runId: two, prompt: { text } }, unique: true } }) as const;
  const changed = returned({ kind: "changed", seq: 7 } as const);
  const edits = GOOD.toSpliced(6, 0, { type: "run.edited", runId: two, prompt: { text: "other" } });
  const change = (answer: Answer<RequestTypes["change"]["value"]>): Made => ({
    ...{ events: edits, requests: [request("change", edited("other"), answer)] },
  });

  test("that is recorded is where its receipt says", () => {
    expect(found(also(request("change", withdrawn, changed)))).toEqual([]);
    expect(found(also(request("change", moved, changed)))).toEqual(["G6 falseReceipts"]);
    expect(found(also(request("change", edited("x"), changed)))).toEqual(["G6 falseReceipts"]);
    expect(found(change(changed))).toEqual([]);
  });

  test("that was refused, or came too late, is not recorded", () => {
    expect(found(change(refused("store_full")))).toEqual(["G3 refusedTraces"]);
    expect(found(change(returned({ kind: "started" })))).toContain("G3 refusedTraces");
    expect(found(change({ kind: "unknown", code: "unavailable" }))).toEqual([]);
  });

  test("that was refused and requested again may be recorded", () => {
    const { requests = [] } = change(refused("store_full"));
    expect(found({ events: edits, requests: [...requests, request("change", edited("other"), changed)] })).toEqual([]);
  });

  test("that is reported as too late finds its run started, or over", () => {
    const late = (runId: RunId): CallerRequest => request("change", { ...moved, runId }, returned({ kind: "started" }));
    expect(found(also(late(one), late(two)))).toEqual([]);
    expect(found(also(late("run_nine")))).toEqual(["G6 falseReceipts"]);
  });

  test("that is a reply was the one that counted", () => {
    const questionId = "ask_one.1";
    const event = {
      type: "question.settled",
      like: { questionId, ending: { kind: "allowed" } },
      unique: false,
    } as const;
    const recorded = returned({ kind: "recorded", questionId } as const);
    expect(found(also(request("answer", { questionId, event }, recorded)))).toEqual(["G10 falseReceipts"]);
    const over = returned({ kind: "settled", ending: { kind: "denied" } } as const);
    expect(found(also(request("answer", { questionId, event }, over)))).toEqual(["G10 falseReceipts"]);
  });
});
