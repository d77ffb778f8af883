// Questions, replies and processes: what the model finds in made-up answers about them.
import { describe, expect, test } from "vitest";
import type { Event } from "../../src/core/model/event.ts";
import type { ProcessId, QuestionId } from "../../src/core/model/ids.ts";
import type { QuestionOutcome, QuestionReply, Subject } from "../../src/core/model/question.ts";
import type { AnswerMoment, CallerRequest, RequestTypes } from "./caller-history.ts";
import { at, call, completed, found, GOOD, one, request, returned, sessionId, two } from "./example-history.ts";

const questionId: QuestionId = "ask_one.1";
const wrong = ["G10 falseReceipts"];
const approval: Subject = { kind: "approval", name: "call", input: null, digest: "d", scope: "call" };
const choice: Subject = { kind: "question", text: "which?", options: ["a", "b"], only: true };
const allowed: QuestionReply = { kind: "allowed", by: "ann" };

/** The example, in which no user has cancelled anything. */
const LOG = GOOD.with(6, {
  ...{ type: "run.settled", runId: two, outcome: { kind: "cancelled", reason: { kind: "policy", note: "" } } },
});

/** The call asks something, and that ends. The question is asked at 6 and ends at 7. */
const asks = (about: Subject, ending: QuestionOutcome, deadlineMs?: number): readonly Event[] =>
  LOG.toSpliced(
    5,
    0,
    {
      ...{ type: "question.asked", runId: one, questionId, owner: call, about },
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
    },
    { type: "question.settled", runId: one, questionId, ending },
  );

function reply(
  value: RequestTypes["answer"]["value"],
  sent: QuestionReply = allowed,
  { digest, ...moment }: Partial<AnswerMoment> & { readonly digest?: string } = {},
): CallerRequest {
  const event = { type: "question.settled", like: { questionId, ending: sent }, unique: true } as const;
  const params = { questionId, event, reply: sent, ...(digest === undefined ? {} : { digest }) };
  return at(request("answer", params, returned(value)), { sentHead: 6, head: 12, ...moment });
}

const recorded = { kind: "recorded", questionId } as const;
const refused = { kind: "refused", code: "invalid", message: "" } as const;
const check = (events: readonly Event[], ...requests: readonly CallerRequest[]) =>
  found({ events, requests, complete: true });

describe("a reply", () => {
  test("that was recorded is how the question ended, by then", () => {
    expect(check(asks(approval, allowed), reply(recorded))).toEqual([]);
    expect(check(asks(approval, allowed), reply(recorded, allowed, { head: 6 }))).toEqual(wrong);
    const denied: QuestionReply = { kind: "denied", by: "bob" };
    expect(check(asks(approval, allowed), reply(recorded), reply(recorded, denied))).toEqual([
      "G10 falseReceipts",
      "G14 twoOutcomes",
    ]);
    const other = { kind: "recorded", questionId: "ask_one.2" } as const;
    expect(check(asks(approval, allowed), reply(other))).toEqual(wrong);
  });

  test("that was too late is answered with the ending of the question", () => {
    const late = (ending: QuestionOutcome) => reply({ kind: "settled", ending }, { kind: "denied", by: "bob" });
    expect(check(asks(approval, allowed), reply(recorded), late(allowed))).toEqual([]);
    expect(check(asks(approval, allowed), reply(recorded), late({ kind: "expired", limitMs: 1 }))).toEqual(wrong);
  });

  test("fits the question, or is refused", () => {
    const other: QuestionReply = { kind: "answered", value: "c", by: "ann" };
    expect(check(asks(approval, allowed), reply(recorded, allowed, { digest: "d" }))).toEqual([]);
    expect(check(asks(approval, allowed), reply(recorded, allowed, { digest: "e" }))).toEqual(wrong);
    expect(check(asks(choice, other), reply(recorded, other))).toContain("G10 falseReceipts");
    const fits: QuestionReply = { kind: "answered", value: "a", by: "ann" };
    const open = asks(choice, { ...fits, by: "bob" });
    const bob = reply(recorded, { ...fits, by: "bob" });
    expect(check(open, bob, reply(refused, other))).toEqual([]);
    expect(check(open, bob, reply(refused, fits))).toEqual(wrong);
    expect(check(open, bob, reply(refused))).toEqual([]);
  });

  test("that was refused is not recorded", () => {
    expect(check(asks(approval, allowed), reply(refused, allowed, { digest: "e" }))).toContain("G3 refusedTraces");
  });

  test("is answered as unknown only before the question is asked, or if its log was trimmed", () => {
    const unknown = { kind: "unknown" } as const;
    const denied: QuestionReply = { kind: "denied", by: "bob" };
    const also = (moment: Partial<AnswerMoment>) =>
      check(asks(approval, allowed), reply(recorded), reply(unknown, denied, moment));
    expect(also({})).toEqual(wrong);
    expect(also({ sentHead: 5 })).toEqual([]);
    expect(also({ trimmedTo: 1 })).toEqual([]);
  });

  test("that ended a question was sent to it, or allows its scope for the session", () => {
    expect(check(asks(approval, allowed))).toEqual(["G14 falseOutcomes"]);
    expect(found({ events: asks(approval, allowed), requests: [] })).toEqual([]);
  });
});

test("a question that expired had that limit", () => {
  expect(check(asks(choice, { kind: "expired", limitMs: 5 }, 5))).toEqual([]);
  expect(check(asks(choice, { kind: "expired", limitMs: 5 }, 6))).toEqual(["G34 falseOutcomes"]);
});

test("G25: an approval is not closed and asked again under another id", () => {
  const again: QuestionId = "ask_one.2";
  const events = (digest: string): readonly Event[] =>
    asks(approval, { kind: "withdrawn", reason: { kind: "parent", id: one } }).toSpliced(
      7,
      0,
      { type: "question.asked", runId: one, questionId: again, owner: call, about: { ...approval, digest } },
      { type: "question.settled", runId: one, questionId: again, ending: { kind: "expired", limitMs: 1 } },
    );
  expect(found({ events: events("d"), requests: [] })).toContain("G25 repeatedCalls");
  expect(found({ events: events("e"), requests: [] })).not.toContain("G25 repeatedCalls");
});

describe("a cancel of a question", () => {
  const note = "mine";
  const withdrawn: QuestionOutcome = { kind: "withdrawn", reason: { kind: "user", note } };
  const cancel = (value: RequestTypes["cancel-question"]["value"], own = note, moment: Partial<AnswerMoment> = {}) =>
    at(request("cancel-question", { questionId, note: own }, returned(value)), { sentHead: 6, head: 12, ...moment });
  const receipts = (about: Subject, ending: QuestionOutcome, made: CallerRequest) =>
    found({ events: asks(about, ending), requests: [made] }).filter((each) => each.endsWith("falseReceipts"));

  test("that withdrew it is how it ended, by this request", () => {
    expect(receipts(choice, withdrawn, cancel({ kind: "withdrawn" }))).toEqual([]);
    expect(receipts(choice, withdrawn, cancel({ kind: "withdrawn" }, "other"))).toEqual(wrong);
    expect(receipts(choice, withdrawn, cancel({ kind: "withdrawn" }, note, { head: 6 }))).toEqual(wrong);
    expect(receipts(choice, { kind: "expired", limitMs: 1 }, cancel({ kind: "withdrawn" }))).toEqual(wrong);
  });

  test("of an approval cancels the call that waits for it", () => {
    expect(receipts(approval, withdrawn, cancel({ kind: "withdrawn" }))).toEqual(wrong);
    const reason = { kind: "user", note } as const;
    const events = asks(approval, withdrawn).toSpliced(6, 0, {
      ...{ type: "call.cancel_requested", runId: one, callId: call, reason, remind: true },
    });
    expect(found({ events, requests: [cancel({ kind: "withdrawn" }, note, { head: 13 })] })).not.toContain(wrong[0]);
  });

  test("that was too late, or for nothing, says so", () => {
    const answered: QuestionOutcome = { kind: "answered", value: "a" };
    expect(receipts(choice, answered, cancel({ kind: "settled", outcome: completed }))).toEqual([]);
    expect(receipts(choice, answered, cancel({ kind: "settled", outcome: { kind: "lost" } }))).toEqual(wrong);
    expect(receipts(choice, answered, cancel({ kind: "unknown" }))).toEqual(wrong);
    expect(receipts(choice, answered, cancel({ kind: "unknown" }, note, { sentHead: 5 }))).toEqual([]);
    expect(receipts(choice, answered, cancel({ kind: "stopping", since: 7, first: true }))).toEqual(wrong);
  });
});

describe("a process", () => {
  const processId: ProcessId = "proc_a.1";
  const events: readonly Event[] = [
    ...LOG,
    { type: "process.requested", processId, owner: sessionId, command: "sleep 1", feedback: "silent" },
    { type: "process.settled", processId, outcome: completed },
  ];
  const start = (command: string, head: number) =>
    at(request("start-process", { command }, returned({ processId })), { head });
  const wait = (outcome: typeof completed | { readonly kind: "lost" }, head: number, id: ProcessId = processId) =>
    at(request("process-result", { processId: id }, returned({ processId, outcome })), { head });

  test("that was started is in the log by then, with its command", () => {
    expect(check(events, start("sleep 1", 11))).toEqual([]);
    expect(check(events, start("sleep 1", 10))).toEqual(["G1 lost"]);
    expect(check(events, start("sleep 2", 11))).toEqual(["G1 lost"]);
  });

  test("that was waited for has ended like that by then", () => {
    expect(check(events, wait(completed, 12))).toEqual([]);
    expect(check(events, wait(completed, 11))).toEqual(["G16 falseOutcomes"]);
    expect(check(events, wait({ kind: "lost" }, 12))).toEqual(["G16 falseOutcomes"]);
    expect(check(events, wait(completed, 12, "proc_a.2"))).toEqual(["G16 falseOutcomes"]);
    expect(check(events, at(request("process-result", { processId }, returned(undefined))))).toEqual([]);
  });
});
