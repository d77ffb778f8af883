// The history checker on calls requested at the end of a turn, questions, the inbox and summaries: the correct log has
// no findings, and each rule is broken once.
import { describe, expect, test } from "vitest";
import {
  accept,
  added,
  answer,
  approval,
  ask,
  asked,
  call,
  callRequested,
  callSettled,
  cancelCall,
  cancelledBy,
  cancelQuestion,
  cancelReminding,
  cancelRequested,
  cancelRun,
  cancelSession,
  close,
  compact,
  completed,
  expire,
  failed,
  item,
  itemsTaken,
  lost,
  park,
  plainQuestion,
  post,
  questionSettled,
  questionWithdrawn,
  recover,
  recovered,
  running,
  runSettled,
  settleAsking,
  settleCall,
  settleTurn,
  start,
  take,
  taken,
  turnRequested,
  user,
  wanted,
} from "../../../test/fixtures/commands.ts";
import { type Given, given } from "../../testing/given.ts";
import type { Outcome } from "../model/cancel.ts";
import type { Event, Recorded } from "../model/event.ts";
import type { CallId, TurnId } from "../model/ids.ts";
import { reminder } from "../model/inbox.ts";
import { verify, verifyAtRest } from "./verify.ts";

const recorded = (events: readonly Event[], first = 1): readonly Recorded[] =>
  events.map((event, index) => ({ ...event, seq: first + index, at: 0 }));

/** The guarantees that the checker reports as broken. */
const broken = (...events: readonly Event[]): readonly string[] =>
  verify(recorded(events)).map((finding) => finding.guarantee);

const turnSettled = (turnId: TurnId, next: "turn" | "end", outcome: Outcome = completed): Event => ({
  type: "turn.settled",
  runId: "run_a",
  turnId,
  outcome,
  next,
});
const callCancelled = (callId: CallId, remind?: true): Event => ({
  type: "call.cancel_requested",
  runId: "run_a",
  callId,
  reason: user,
  ...(remind === undefined ? {} : { remind }),
});
const parked: Event = { type: "run.parked", runId: "run_a" };
const one = callRequested(wanted("call_a.1"));
const two = callRequested(wanted("call_a.2"));
const repeatable = callRequested(wanted("call_a.1", { idempotent: true }));
const reminded = added(reminder("call_a.1", "tool", user));
const stopped = cancelledBy(user);

/** run_a with its live first turn. */
const { events: live } = given(...running("run_a"));
/** The first turn has ended, and another is to follow. */
const ended: readonly Event[] = [...live, turnSettled("turn_a.1", "turn")];
const waiting: readonly Event[] = [...ended, one, asked("ask_a.1", "call_a.1")];

describe("a correct log has no findings", () => {
  const begun = given(...running("run_a"));
  const asking = begun.and(call("call_a.1"), ask("call_a.1"), ask("turn_a.1", plainQuestion));
  const called = begun.and(
    settleAsking("turn_a.1", wanted("call_a.1"), wanted("call_a.2", { idempotent: true }), wanted("call_a.3")),
    ask("call_a.1"),
  );
  const clean: Readonly<Record<string, Given>> = {
    "calls by the end of a turn": called.and(
      settleCall("call_a.3"),
      answer("ask_a.1"),
      settleCall("call_a.1"),
      settleCall("call_a.2"),
      settleTurn("turn_a.2"),
    ),
    "calls by the end, kept across a crash and a shutdown": called.and(
      recover(),
      park,
      recover(),
      answer("ask_a.1", { kind: "denied" }),
      recover(),
      settleCall("call_a.2"),
      settleTurn("turn_a.2"),
    ),
    "answered and cancelled while the run is set down": called.and(
      park,
      answer("ask_a.1"),
      cancelReminding("call_a.2"),
      recover(),
      settleCall("call_a.1"),
      settleTurn("turn_a.2"),
    ),
    "a parked run that is cancelled with what it had kept": called.and(park, cancelRun("run_a")),
    "crashes up to the limit, with kept calls": called.and(recover(), recover(), recover()),
    "questions answered, expired and taken back": asking.and(
      expire("ask_a.1"),
      answer("ask_a.2", { kind: "answered", value: 1 }),
      ask("turn_a.1", plainQuestion),
      cancelQuestion("ask_a.3"),
      ask("call_a.1", approval("d2")),
      cancelQuestion("ask_a.4"),
      settleCall("call_a.1", { outcome: stopped }),
      settleTurn("turn_a.1"),
    ),
    "questions withdrawn with a call and with a turn": asking.and(
      cancelCall("call_a.1"),
      settleTurn("turn_a.1", { next: "turn" }),
      settleCall("call_a.1", { outcome: stopped }),
      settleTurn("turn_a.2"),
    ),
    "questions withdrawn with the last turn": asking.and(settleTurn("turn_a.1"), settleCall("call_a.1")),
    "questions withdrawn with the session": asking.and(
      cancelSession(),
      settleCall("call_a.1", { outcome: stopped }),
      settleTurn("turn_a.1"),
    ),
    "questions withdrawn by an interrupt": asking.and(
      accept("run_b", { delivery: "interrupt" }),
      settleCall("call_a.1", { outcome: stopped }),
      settleTurn("turn_a.1"),
      start,
      settleTurn("turn_b.1"),
    ),
    "an inbox, with steers and a summary": given(post("one"), ...running("run_a")).and(
      post("two"),
      accept("run_s", { delivery: "steer" }),
      take("turn_a.1"),
      compact("turn_a.1"),
      post("three"),
      accept("run_t", { delivery: "steer" }),
      settleTurn("turn_a.1", { next: "turn" }),
      settleTurn("turn_a.2"),
      post("four"),
    ),
    "a reminder that survives the end of its run and the session": called.and(
      cancelReminding("call_a.3"),
      close(),
      settleCall("call_a.1", { outcome: stopped }),
      settleCall("call_a.2", { outcome: stopped }),
      settleCall("call_a.3", { outcome: stopped }),
    ),
  };
  test.each(Object.entries(clean))("%s", (_, { events }) => {
    expect(verifyAtRest(recorded(events))).toEqual([]);
  });

  test("a log that retention has shortened", () => {
    const { events } = given(
      post("one"),
      ...running("run_z"),
      post("two"),
      settleTurn("turn_z.1"),
      ...running("run_a"),
    );
    for (let from = 1; from < events.length; from += 1) expect(verify(recorded(events.slice(from), 100))).toEqual([]);
    const shortened: readonly Event[] = [
      { type: "session.compacted", turnId: "turn_z.1", summary: "x" },
      itemsTaken("turn_z.1", item("one")),
      questionWithdrawn("ask_z.1"),
    ];
    expect(verify(recorded(shortened, 100))).toEqual([]);
  });
});

describe("a log that retention has shortened", () => {
  const { events } = given(...running("run_z"), settleTurn("turn_z.1"), ...running("run_a"));
  const shortened = (...more: readonly Event[]): readonly string[] =>
    verify(recorded([...events.slice(2), ...more], 100)).map((finding) => finding.guarantee);
  const [x, y] = [item("x"), item("y")];

  test("G22: is checked for the part of its inbox that it contains", () => {
    const next = [turnSettled("turn_a.1", "turn"), turnRequested("run_a", "turn_a.2")];
    expect(shortened(added(x), itemsTaken("turn_a.1", y, x), ...next)).toEqual([]);
    expect(shortened(added(x), itemsTaken("turn_a.1", y))).toEqual(["G22"]);
    expect(shortened(added(x), ...next)).toEqual(["G22"]);
  });
});

describe("calls requested at the end of a turn", () => {
  test("are reported if another event comes between", () => {
    expect(broken(...ended, one, two)).toEqual([]);
    expect(broken(...ended, added(item("x")), one)).toEqual(["G17"]);
    expect(broken(...ended, one, callSettled("call_a.1"), two)).toEqual(["G17"]);
  });
  test("G16: are reported after the last turn", () => {
    expect(broken(...live, turnSettled("turn_a.1", "end"), one)).toEqual(["G16"]);
  });
  test("G11: are reported after a cancel", () => {
    expect(broken(...live, cancelRequested("run_a"), turnSettled("turn_a.1", "turn"), one)).toEqual(["G11"]);
  });
  test("G17: are reported without a result at the next turn", () => {
    expect(broken(...ended, one, turnRequested("run_a", "turn_a.2"))).toEqual(["G17"]);
  });
  test("G17: as is a turn beside a live one", () => {
    expect(broken(...live, turnRequested("run_a", "turn_a.2"))).toEqual(["G17"]);
  });
});

describe("the end of a run", () => {
  const end = (outcome: Outcome): readonly Event[] => [turnSettled("turn_a.1", "end", outcome)];

  test("G15: is reported if it completed, and its last turn did not", () => {
    expect(broken(...live, ...end(failed), runSettled("run_a", completed))).toEqual(["G15"]);
    expect(broken(...live, turnSettled("turn_a.1", "turn"), runSettled("run_a", completed))).toEqual(["G15"]);
    const unbegun = live.filter(({ type }) => type !== "turn.requested");
    expect(broken(...unbegun, runSettled("run_a", completed))).toEqual(["G15"]);
  });
  test("may be that of its last turn, even if another worker records it after a crash", () => {
    expect(broken(...live, ...end(completed), runSettled("run_a", completed))).toEqual([]);
    expect(broken(...live, ...end(completed), recovered("run_a", 2), runSettled("run_a", completed))).toEqual([]);
    expect(broken(...live, ...end(failed), runSettled("run_a", failed))).toEqual([]);
  });
});

describe("a call that is kept when its run changes hands", () => {
  test("may be idempotent, or wait for an approval", () => {
    for (const change of [parked, recovered("run_a", 2)]) {
      expect(broken(...ended, repeatable, change)).toEqual([]);
      expect(broken(...waiting, change)).toEqual([]);
    }
  });
  test.each([parked, recovered("run_a", 2)])("G17: is reported if it may have had effects (%j)", (change) => {
    expect(broken(...ended, one, change)).toEqual(["G17"]);
  });
  test("G17: is reported if it was requested during a turn", () => {
    const cut = turnSettled("turn_a.1", "turn", lost);
    expect(broken(...live, repeatable, cut, recovered("run_a", 2))).toEqual(["G17"]);
  });
  test("G17: is reported if it was being stopped", () => {
    expect(broken(...ended, repeatable, callCancelled("call_a.1"), recovered("run_a", 2))).toEqual(["G17"]);
    expect(broken(...ended, repeatable, parked, callCancelled("call_a.1"), recovered("run_a", 1))).toEqual(["G17"]);
  });
  test("G17: is reported if its approval was answered before", () => {
    const allowed = questionSettled("ask_a.1", { kind: "allowed" });
    expect(broken(...waiting, allowed, recovered("run_a", 2))).toEqual(["G17"]);
    expect(broken(...waiting, parked, allowed, recovered("run_a", 1))).toEqual([]);
  });
  test("G17: is reported if another call waits for an approval", () => {
    expect(broken(...ended, one, two, asked("ask_a.1", "call_a.1"), parked)).toEqual(["G17"]);
  });
  test("G25: is reported if it starts a process while its run is parked", () => {
    expect(broken(...ended, parked, turnRequested("run_a", "turn_a.2"))).toEqual(["G25"]);
    expect(broken(...ended, repeatable, parked, asked("ask_a.1", "call_a.1"))).toEqual(["G25"]);
  });
  test("G25: is reported if it ends while its run is parked", () => {
    expect(broken(...ended, repeatable, parked, callSettled("call_a.1"))).toEqual(["G25"]);
  });
  test("G25: is reported if it is a question whose owner has gone", () => {
    const question = asked("ask_a.1", "call_a.1", plainQuestion);
    expect(broken(...ended, repeatable, question, recovered("run_a", 2))).toEqual(["G25"]);
  });
});

describe("a question", () => {
  const withdrawn = questionWithdrawn("ask_a.1");
  const ofTheTurn = asked("ask_a.1", "turn_a.1", plainQuestion);

  test("G17: that is settled twice, or was never asked", () => {
    expect(broken(...waiting, withdrawn, withdrawn)).toEqual(["G17"]);
    expect(broken(...live, withdrawn)).toEqual(["G17"]);
  });
  test("G17: that is answered with a value that does not fit", () => {
    expect(broken(...waiting, questionSettled("ask_a.1", { kind: "answered", value: 1 }))).toEqual(["G17"]);
    expect(broken(...live, ofTheTurn, questionSettled("ask_a.1", { kind: "allowed" }))).toEqual(["G17"]);
  });
  test("G17: whose id is used again", () => {
    expect(broken(...waiting, withdrawn, asked("ask_a.1", "call_a.1"))).toEqual(["G17"]);
  });
  test("G16: of work that is not live, or of a run instead of its work", () => {
    expect(broken(...live, asked("ask_a.1", "call_a.1"))).toEqual(["G16"]);
    expect(broken(...ended, one, asked("ask_a.1", "turn_a.1"))).toEqual(["G16"]);
    const over = given(...running("run_a"), settleTurn("turn_a.1"));
    expect(broken(...over.events, ofTheTurn)).toEqual(["G16"]);
  });
  test("G11: that is asked after a cancel of its run or its call", () => {
    expect(broken(...live, cancelRequested("run_a"), ofTheTurn)).toEqual(["G11"]);
    expect(broken(...ended, one, two, callCancelled("call_a.1"), asked("ask_a.1", "call_a.1"))).toEqual(["G11"]);
  });
  test("G9: that a cancel of its run or its call does not withdraw at once", () => {
    expect(broken(...waiting, cancelRequested("run_a"), added(item("x")), callSettled("call_a.1"))).toEqual(["G9"]);
    expect(broken(...waiting, callCancelled("call_a.1"), added(item("x")))).toEqual(["G9"]);
    expect(broken(...waiting, cancelRequested("run_a"), withdrawn, added(item("x")))).toEqual([]);
  });
  test("G9: that is answered after a cancel", () => {
    const allowed = questionSettled("ask_a.1", { kind: "allowed" });
    expect(broken(...waiting, cancelRequested("run_a"), allowed)).toEqual(["G9"]);
  });
  test("G9: that is asked again after a cancel, instead of being withdrawn", () => {
    const again = asked("ask_a.1", "call_a.1");
    expect(broken(...waiting, cancelRequested("run_a"), again)).toEqual(["G9", "G11", "G17"]);
  });
  test("G9: may stay open when another call is cancelled", () => {
    expect(
      broken(...ended, one, two, asked("ask_a.1", "call_a.1"), callCancelled("call_a.2"), added(item("x"))),
    ).toEqual([]);
  });
  test("G9: that outlives its call, its turn or its run", () => {
    expect(broken(...waiting, callSettled("call_a.1"))).toEqual(["G9"]);
    expect(broken(...live, ofTheTurn, turnSettled("turn_a.1", "turn"))).toEqual(["G9"]);
    expect(broken(...live, one, asked("ask_a.1", "call_a.1"), turnSettled("turn_a.1", "end"))).toEqual(["G9"]);
    // The run ends with a call that has no result, and with its approval: two findings, each once.
    expect(broken(...waiting, runSettled("run_a", completed))).toEqual(["G9", "G17"]);
  });
});

describe("the inbox", () => {
  const [x, y] = [item("x"), item("y")];
  const next = turnRequested("run_a", "turn_a.2");

  test("G22: an item that is taken and was not there, or twice, or out of order, or not all items", () => {
    expect(broken(...live, itemsTaken("turn_a.1", x))).toEqual(["G22"]);
    expect(broken(...live, added(x), itemsTaken("turn_a.1", x), itemsTaken("turn_a.1", x))).toEqual(["G22"]);
    expect(broken(...live, added(x), added(y), itemsTaken("turn_a.1", y, x))).toEqual(["G22"]);
    expect(broken(...live, added(x), added(y), itemsTaken("turn_a.1", y))).toEqual(["G22"]);
    expect(broken(...live, added(x), added(y), itemsTaken("turn_a.1", x, y))).toEqual([]);
  });
  test("G22: a turn that has not taken the items", () => {
    expect(broken(...live, added(x), turnSettled("turn_a.1", "turn"), next)).toEqual(["G22"]);
  });
  test("G22: items taken for a turn that is not requested", () => {
    expect(broken(...ended, added(x), itemsTaken("turn_a.2", x), cancelRequested("run_a"))).toEqual(["G22"]);
    const steer: Event = { type: "run.accepted", runId: "run_s", prompt: { text: "s" }, delivery: "steer" };
    const both = [steer, added(x), itemsTaken("turn_a.2", x), ...taken("run_s", "run_a", "turn_a.2")];
    expect(broken(...ended, ...both, next)).toEqual([]);
    expect(broken(...ended, ...both, cancelRequested("run_a"))).toEqual(["G22"]);
    const forSecond = [...ended, added(x), itemsTaken("turn_a.2", x)];
    expect(broken(...forSecond, turnRequested("run_a", "turn_a.3"))).toEqual(["G22", "G14"]);
    const early: Event = { type: "turn.extended", runId: "run_a", turnId: "turn_a.2", text: "x" };
    expect(broken(...forSecond, early)).toEqual(["G22", "G16"]);
    expect(broken(...forSecond, runSettled("run_a", failed))).toEqual(["G22"]);
    expect(verifyAtRest(recorded([...ended, added(x), itemsTaken("turn_a.2", x)]))).toMatchObject([
      { guarantee: "G22" },
      { guarantee: "G24" },
    ]);
  });
  test("G22: items taken for a turn that cannot receive them", () => {
    expect(broken(...live, added(x), itemsTaken("turn_a.9", x))).toEqual(["G22"]);
    expect(broken(...live, added(x), cancelRequested("run_a"), itemsTaken("turn_a.1", x))).toEqual(["G22"]);
  });
});

describe("a reminder", () => {
  const stopping: readonly Event[] = [...live, one, callCancelled("call_a.1", true)];

  test("G9: that is missing", () => {
    for (const outcome of [stopped, lost]) {
      expect(broken(...stopping, callSettled("call_a.1", outcome), added(item("x")))).toEqual(["G9"]);
      expect(broken(...stopping, callSettled("call_a.1", outcome), turnSettled("turn_a.1", "turn"))).toEqual(["G9"]);
    }
    expect(verifyAtRest(recorded([...stopping, callSettled("call_a.1", stopped)]))).toMatchObject([
      { guarantee: "G9" },
      { guarantee: "G24" },
    ]);
    expect(broken(...stopping, callSettled("call_a.1", stopped), reminded)).toEqual([]);
  });
  test("G9: that comes twice", () => {
    expect(broken(...stopping, callSettled("call_a.1", stopped), reminded, reminded)).toEqual(["G9"]);
  });
  test("G9: that was not requested, or of a call that finished first", () => {
    expect(broken(...live, one, callCancelled("call_a.1"), callSettled("call_a.1", stopped), reminded)).toEqual(["G9"]);
    expect(broken(...stopping, callSettled("call_a.1", completed), reminded)).toEqual(["G9"]);
  });
  test("of anything else is not checked", () => {
    const other = added({ kind: "reminder", text: "Be brief." });
    expect(broken(...live, other, added({ kind: "reminder", text: "x", data: null }))).toEqual([]);
    const result = added({ kind: "result", text: "x", data: { callId: "call_a.1" } });
    expect(broken(...live, one, result)).toEqual([]);
  });
});

describe("a summary", () => {
  const compacted: Event = { type: "session.compacted", turnId: "turn_a.1", summary: "in short" };

  test("G16: by a turn that is not live", () => {
    expect(broken(...live, compacted)).toEqual([]);
    expect(broken(...ended, compacted)).toEqual(["G16"]);
    expect(broken(...live.slice(0, 2), compacted)).toEqual(["G16"]);
  });
  test("G11: after a cancel", () => {
    expect(broken(...live, cancelRequested("run_a"), compacted)).toEqual(["G11"]);
  });
});

describe("the cost of a turn", () => {
  const usage = (inputTokens: number, outputTokens = 1) => ({ inputTokens, outputTokens, estimated: true });
  const extended: Event = { type: "turn.extended", runId: "run_a", turnId: "turn_a.1", text: "x" };
  const over = turnSettled("turn_a.1", "turn", lost);

  test("G18: that is known and missing", () => {
    expect(broken(...live, { ...extended, usage: usage(1) }, over)).toEqual(["G18"]);
    const next = turnRequested("run_a", "turn_a.2");
    expect(broken(...ended, next, turnSettled("turn_a.2", "turn"))).toEqual([]);
  });
  test("may be present, or missing if it is unknown", () => {
    expect(broken(...live, { ...extended, usage: usage(1) }, { ...over, usage: usage(2) } as Event)).toEqual([]);
    expect(broken(...live, extended, over)).toEqual([]);
  });
  test.each([usage(-1), usage(1, -1), usage(Number.NaN), usage(1, Number.NaN)])(
    "G18: that is not a count: %j",
    (bad) => {
      expect(broken(...live, { ...extended, usage: bad })).toEqual(["G18"]);
    },
  );
  test("may be zero", () => {
    expect(broken(...live, { ...extended, usage: usage(0, 0) })).toEqual([]);
  });
});
