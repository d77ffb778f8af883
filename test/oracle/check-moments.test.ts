// What the model finds if it knows the log at the moment of an answer: the answer must be true by then.
import { describe, expect, test } from "vitest";
import type { Event } from "../../src/core/model/event.ts";
import type { AnswerMoment, CallerRequest } from "./caller-history.ts";
import {
  accepted,
  also,
  at,
  completed,
  enough,
  found,
  GOOD,
  type Made,
  one,
  outcome,
  prompt,
  receipt,
  record,
  refused,
  request,
  returned,
  sessionId,
  two,
} from "./example-history.ts";

const wrong = ["G10 falseReceipts"];

test("an answer that is true by the end of the log was not true before that was recorded", () => {
  const early = { head: 1 };
  expect(found(also(at(prompt("first", one, 2, 1), early)))).toEqual(["G1 lost"]);
  expect(found(also(at(outcome(one, completed), { head: 9 })))).toEqual(["G16 falseOutcomes"]);
  const settled = request("cancel-run", { runId: one }, returned({ kind: "settled", outcome: completed }));
  expect(found(also(at(settled, { head: 9 })))).toEqual(wrong);
  const withdrawn = request("cancel-run", { runId: two }, returned({ kind: "withdrawn" }));
  expect(found(also(at(withdrawn, { head: 6 })))).toEqual(wrong);
  const event = { type: "run.settled", like: { runId: two }, unique: false } as const;
  const changed = request("change", { event }, returned({ kind: "changed", seq: 7 }));
  expect(found(also(at(changed, { head: 6 })))).toEqual(["G6 falseReceipts"]);
  for (const made of [prompt("first", one, 2, 1), outcome(one, completed), settled, withdrawn, changed]) {
    expect(found(also(at(made)))).toEqual([]);
  }
});

test("an event that a follower received before it was recorded", () => {
  const received = record(GOOD);
  const heads = (least: number) => received.map((_, index) => ({ head: Math.max(least, index + 1), trimmedTo: 0 }));
  const slice = (positions: ReturnType<typeof heads>) => ({
    slices: [{ sessionId, after: 0, received, positions, untilRest: true } as const],
  });
  expect(found(slice(heads(0)))).toEqual([]);
  expect(found(slice(heads(0).with(4, { head: 4, trimmedTo: 0 })))).toEqual(["G16 brokenSlices"]);
});

test("a gap that was announced before the log was trimmed", () => {
  const gap = (trimmedTo: number): Made => ({
    slices: [
      { sessionId, after: 0, received: [{ type: "gap", from: 1, to: 3 }], positions: [{ head: 10, trimmedTo }] },
    ],
  });
  expect(found(gap(3))).toEqual([]);
  expect(found(gap(2))).toEqual(["G30 brokenSlices"]);
});

describe("a refusal needs its reason at that moment:", () => {
  const refusedAs = (code: string, moment: Partial<AnswerMoment> = {}): readonly string[] =>
    found(also(at(request("prompt", { label: "third" }, refused(code)), moment)));

  test("a store that fails, or a server that closes", () => {
    expect(refusedAs("store_full")).toEqual(["G28 faults"]);
    const unknown = request("prompt", { label: "third" }, { kind: "unknown", code: "unavailable" });
    expect(found(also(at(unknown)))).toEqual(["G28 faults"]);
    expect(refusedAs("store_full", { storeFailed: true })).toEqual([]);
    expect(refusedAs("store_full", { server: "closing" })).toEqual([]);
    expect(refusedAs("store_full", { server: "not-driving" })).toEqual([]);
    expect(refusedAs("busy")).toEqual([]);
  });

  test("a closed session", () => {
    expect(refusedAs("closed")).toEqual(["G3 falseReceipts"]);
    const events = [...GOOD, { type: "session.closed", reason: { kind: "user" } } as const];
    const closed = at(request("prompt", { label: "third" }, refused("closed")), { head: 11 });
    expect(found({ events, requests: [closed] })).toEqual([]);
  });

  test("other content under the same key", () => {
    const conflict = (text: string, head = 10) =>
      found(also(at(request("prompt", { label: "first", text }, refused("conflict")), { head })));
    expect(conflict("other")).toEqual([]);
    expect(conflict("first")).toEqual(["G2 falseReceipts"]);
    expect(conflict("other", 1)).toEqual(["G2 falseReceipts"]);
  });

  test("a post: a closed session or a full inbox", () => {
    const event = { type: "inbox.added", like: { item: { text: "note" } }, unique: true } as const;
    const post = (code: "closed" | "queue_full") =>
      found(also(at(request("change", { event }, returned({ kind: "refused", code, message: "" })))));
    expect(post("closed")).toEqual(["G3 falseReceipts"]);
    expect(post("queue_full")).toEqual(["G3 falseReceipts"]);
  });
});

describe("a prompt", () => {
  test("has the content that was sent, and the run that its caller knows", () => {
    const other = request("prompt", { label: "first", text: "other" }, receipt(one, 2), 1);
    expect(found({ requests: [other] })).toEqual(["G1 doublePrompts"]);
    const delivery = request("prompt", { label: "first", delivery: "steer" }, receipt(one, 2), 1);
    expect(found({ requests: [delivery] })).toEqual(["G1 doublePrompts"]);
    const unknown = request("prompt", { label: "first", runId: "run_nine" }, receipt(one, 2), 1);
    expect(found({ requests: [unknown] })).toEqual(["G1 lost"]);
  });

  test("that repeats another with other content is a conflict", () => {
    const value = { kind: "accepted", runId: one, seq: 2, joined: "queue", ahead: 0, repeated: true } as const;
    const repeat = (text: string) => request("prompt", { label: "first", text }, returned(value));
    expect(found(also(repeat("first")))).toEqual([]);
    expect(found(also(repeat("other")))).toEqual(["G2 doublePrompts"]);
  });

  test("that must be rejected by a busy session has nothing ahead of it", () => {
    const value = { kind: "accepted", runId: one, seq: 2, joined: "queue", ahead: 1, repeated: false } as const;
    const events = GOOD.with(1, { ...accepted(one, "first"), delivery: "reject" } as Event);
    const requests = [request("prompt", { label: "first", delivery: "reject" }, returned(value), 1)];
    expect(found({ events, requests })).toEqual(["G5 falseReceipts"]);
  });
});

describe("reported as unknown, or as another one:", () => {
  const unknown = { kind: "unknown" } as const;

  test("a run or session that was in the log", () => {
    const cancel = request("cancel-run", { runId: two }, returned(unknown));
    expect(found(also(at(cancel)))).toEqual(wrong);
    expect(found(also(at(cancel, { head: 5 })))).toEqual([]);
    expect(found(also(at(cancel, { server: "not-driving" })))).toEqual([]);
    const session = request("cancel-session", {}, returned({ ...unknown, runs: [] }));
    expect(found(also(at(session)))).toEqual(wrong);
    expect(found(also(at(session, { sentHead: 0 })))).toEqual([]);
    const wait = request("outcome", { runId: one }, returned(undefined));
    expect(found(also(at(wait)))).toEqual(["G16 falseOutcomes"]);
    expect(found(also(at(wait, { server: "closing" })))).toEqual([]);
  });

  test("a prompt that was received before its cancel", () => {
    const sent = at(request("prompt", { label: "first", runId: one }, receipt(one, 2), 10));
    const pending: CallerRequest = { ...sent, answeredAt: 90 };
    const cancel = (sentAt: number) => at(request("cancel-prompt", { label: "first" }, returned(unknown), sentAt));
    expect(found({ requests: [pending, cancel(11)] })).toEqual(wrong);
    expect(found({ requests: [pending, cancel(9)] })).toEqual([]);
  });

  test("a prompt whose cancel names another run, or none", () => {
    const cancel = (runId?: typeof one) => {
      const value = { kind: "settled", outcome: completed, ...(runId === undefined ? {} : { runId }) } as const;
      return request("cancel-prompt", { label: "first" }, returned(value));
    };
    expect(found(also(at(cancel(one)), cancel()))).toEqual([]);
    expect(found(also(at(cancel(two))))).toEqual(wrong);
    expect(found(also(at(cancel())))).toEqual(wrong);
  });

  test("a run that waited in the queue", () => {
    const change = (type: "run.edited" | "run.moved", head: number) =>
      found(
        also(
          at(request("change", { runId: two, event: { type, like: {}, unique: false } }, returned(unknown)), { head }),
        ),
      );
    expect(change("run.edited", 6)).toEqual(["G6 falseReceipts"]);
    expect(change("run.edited", 5)).toEqual([]);
    expect(change("run.edited", 7)).toEqual([]);
    expect(change("run.moved", 6)).toEqual([]);
  });
});

test("a change that is reported as too late finds its run started", () => {
  const event = { type: "run.moved", like: { runId: two }, unique: false } as const;
  const late = (runId: typeof one) =>
    found(also(at(request("change", { runId, event }, returned({ kind: "started" })))));
  expect(late(one)).toEqual([]);
  expect(late(two)).toEqual(["G6 falseReceipts"]);
});

test("G7: a cancel of a session covers the runs it found", () => {
  const idle = request("cancel-session", {}, returned({ kind: "idle", runs: [] }));
  expect(found(also(at(idle)))).toEqual([]);
  expect(found(also(at(idle, { sentHead: 6, head: 9 })))).toEqual(["G7 falseReceipts"]);
  expect(found(also(at(idle, { sentHead: 1, head: 9 })))).toEqual([]);
  const runs = [{ runId: two, receipt: { kind: "withdrawn" } }] as const;
  const cancel = request("cancel-session", {}, returned({ kind: "withdrawn", runs }));
  expect(
    found({ events: GOOD.with(6, { type: "run.settled", runId: two, outcome: enough }), ...also(cancel) }),
  ).toEqual([]);
});
