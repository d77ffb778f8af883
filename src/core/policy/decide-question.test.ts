// The policy of questions: who may ask, who may answer, and what ends them.
import { describe, expect, test } from "vitest";
import {
  accept,
  answer,
  approval,
  ask,
  asked,
  call,
  callSettled,
  cancelCall,
  cancelledBy,
  cancelQuestion,
  cancelRequested,
  cancelRun,
  cancelSession,
  close,
  completed,
  expire,
  lost,
  park,
  plainQuestion,
  policy,
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
  turnRequested,
  user,
  wanted,
} from "../../../test/fixtures/commands.ts";
import { type Given, given } from "../../testing/given.ts";
import { GRANTS_KEPT, QUESTIONS_BYTES_MAX, QUESTIONS_OPEN_MAX } from "../limits.ts";
import type { Command } from "../model/command.ts";
import type { CallId } from "../model/ids.ts";
import type { QuestionReply, Subject } from "../model/question.ts";

const live = given(...running("run_a"));
const calling = live.and(call("call_a.1", "build"), call("call_a.2", "test"));
/** The first call has an approval, the turn a question. */
const asking = calling.and(ask("call_a.1"), ask("turn_a.1", plainQuestion));

const over = (owner: string) => ({
  kind: "refused",
  code: "busy",
  message: `${owner} has ended, and can ask nothing more.`,
});
const open = ({ lane }: Given) => lane.live?.questions.map((one) => one.id) ?? [];
const turnSettled = { type: "turn.settled", runId: "run_a", turnId: "turn_a.1", outcome: completed, text: "" } as const;

describe("a question is asked", () => {
  test("by a call or by the turn, and is named after its run", () => {
    calling.when(ask("call_a.1")).then(asked("ask_a.1", "call_a.1")).answers({ kind: "asked", questionId: "ask_a.1" });
    calling
      .and(ask("call_a.1"))
      .when({ ...ask("turn_a.1", plainQuestion), deadlineMs: 5 })
      .then({ ...asked("ask_a.2", "turn_a.1", plainQuestion), deadlineMs: 5 } as never)
      .answers({ kind: "asked", questionId: "ask_a.2" });
    expect(asking.lane.live?.questions).toEqual([
      { id: "ask_a.1", owner: "call_a.1", about: approval(), deadlineMs: undefined },
      { id: "ask_a.2", owner: "turn_a.1", about: plainQuestion, deadlineMs: undefined },
    ]);
  });

  test("the same approval of the same call, requested again, is the same question", () => {
    asking.when(ask("call_a.1")).then().answers({ kind: "asked", questionId: "ask_a.1" });
    asking.when(ask("call_a.2")).then(asked("ask_a.3", "call_a.2")).answers({ kind: "asked", questionId: "ask_a.3" });
  });

  test("an approval for a changed input replaces the one before", () => {
    asking
      .when(ask("call_a.1", approval("d2")))
      .then(
        questionWithdrawn("ask_a.1", { kind: "parent", id: "call_a.1" }),
        asked("ask_a.3", "call_a.1", approval("d2")),
      );
  });

  test("an approval and another question of the same call are both open, in any order", () => {
    const [one, other] = [approval(), plainQuestion];
    for (const [first, second] of [[one, other] as const, [other, one] as const]) {
      calling
        .and(ask("call_a.1", first))
        .when(ask("call_a.1", second))
        .then(asked("ask_a.2", "call_a.1", second));
    }
  });

  test("G33: the size of open questions is bounded to the byte", () => {
    const around = JSON.stringify({ kind: "question", text: "" }).length;
    const sized = (bytes: number): Subject => ({ kind: "question", text: "x".repeat(bytes - around) });
    live.when(ask("turn_a.1", sized(QUESTIONS_BYTES_MAX))).answers({ kind: "asked", questionId: "ask_a.1" });
    live.when(ask("turn_a.1", sized(QUESTIONS_BYTES_MAX + 1))).then();
  });

  test("G33: the size of open questions is bounded", () => {
    const large: Subject = { kind: "question", text: "x".repeat(QUESTIONS_BYTES_MAX / 4) };
    const full = live.and(...Array.from({ length: 3 }, () => ask("turn_a.1", large)));
    full
      .when(ask("turn_a.1", large))
      .then()
      .answers({
        kind: "refused",
        code: "queue_full",
        message: `The open questions of run_a would exceed ${QUESTIONS_BYTES_MAX} bytes.`,
      });
    full.when(ask("turn_a.1", plainQuestion)).answers({ kind: "asked", questionId: "ask_a.4" });
  });

  test("two questions with the same text are two questions", () => {
    asking.when(ask("turn_a.1", plainQuestion)).then(asked("ask_a.3", "turn_a.1", plainQuestion));
  });

  test.each([
    ["the run is being stopped", calling.and(cancelRun("run_a")), "call_a.1"],
    ["the call is being stopped", calling.and(cancelCall("call_a.1")), "call_a.1"],
    ["the call is over", calling.and(settleCall("call_a.1")), "call_a.1"],
    ["the turn is over", calling.and(settleTurn("turn_a.1", { next: "turn" })), "turn_a.1"],
    ["the run is ending", calling.and(settleTurn("turn_a.1")), "call_a.1"],
    ["the run is parked", calling.and(park), "call_a.1"],
    ["the run is over", live.and(settleTurn("turn_a.1")), "turn_a.1"],
    ["it is of another run", live, "turn_b.1"],
  ] as const)("G11: no question is asked once %s", (_, past, owner) => {
    past
      .when(ask(owner))
      .then()
      .answers(over(owner) as never);
  });

  test("G33: open questions are bounded, and an answer makes room", () => {
    const many = Array.from({ length: QUESTIONS_OPEN_MAX }, () => ask("turn_a.1", plainQuestion));
    const full = live.and(...many);
    full.when(ask("turn_a.1", plainQuestion)).then().answers({
      kind: "refused",
      code: "queue_full",
      message: "64 questions of run_a are open; that is the limit.",
    });
    full.and(expire("ask_a.1")).when(ask("turn_a.1", plainQuestion)).answers({ kind: "asked", questionId: "ask_a.65" });
  });
});

describe("a question is answered", () => {
  test("once: the answer is recorded, and a second one finds no open question", () => {
    const reply: QuestionReply = { kind: "denied", by: "ann", note: "not now" };
    asking
      .when(answer("ask_a.1", reply))
      .then(questionSettled("ask_a.1", reply))
      .answers({ kind: "recorded", questionId: "ask_a.1" });
    const after = asking.and(answer("ask_a.1", reply));
    expect(open(after)).toEqual(["ask_a.2"]);
    after.when(answer("ask_a.1")).then().answers({ kind: "unknown" });
    after.when(expire("ask_a.1")).then();
    after.when(cancelQuestion("ask_a.1")).then().answers({ kind: "unknown" });
  });

  test("a question that was never asked is unknown", () => {
    for (const id of ["ask_a.9", "ask_b.1"] as const) asking.when(answer(id)).then().answers({ kind: "unknown" });
    given().when(answer("ask_a.1")).then().answers({ kind: "unknown" });
  });

  test("it expires once", () => {
    asking.when(expire("ask_a.1")).then(questionSettled("ask_a.1", { kind: "expired", limitMs: 1_000 }));
    asking.and(expire("ask_a.1")).when(expire("ask_a.1")).then();
    asking.and(expire("ask_a.1")).when(answer("ask_a.1")).then().answers({ kind: "unknown" });
  });

  const value = (one: string): QuestionReply => ({ kind: "answered", value: one });
  const only: Subject = { kind: "question", text: "Which?", options: ["a", "b"], only: true };
  const unsaid: Subject = { kind: "question", text: "Which?", only: true };
  const either: Subject = { kind: "question", text: "Which?", options: ["a", "b"] };

  test.each([
    ["an approval with a value", approval(), value("a"), "An approval is answered with `allowed` or `denied`."],
    ["a question with a yes", plainQuestion, { kind: "allowed" } as const, "A question is answered with a value."],
    ["a choice with something else", only, value("c"), "The answer is one of: a, b."],
    ["a choice of nothing", { ...only, options: [] }, value("c"), "The answer is one of: ."],
    ["a choice without options", unsaid, value("c"), "The answer is one of: ."],
  ])("G3: %s is not a valid answer, and nothing is recorded", (_, about, reply, message) => {
    live
      .and(ask("turn_a.1", about))
      .when(answer("ask_a.1", reply))
      .then()
      .answers({ kind: "refused", code: "invalid", message });
  });

  test("options are suggestions, unless the question has `only`", () => {
    for (const [about, said] of [
      [either, "c"],
      [only, "b"],
    ] as const) {
      live
        .and(ask("turn_a.1", about))
        .when(answer("ask_a.1", value(said)))
        .then(questionSettled("ask_a.1", value(said)));
    }
  });

  test("an answer for other bytes than those of the call is a conflict, and the question stays open", () => {
    asking
      .when({ ...answer("ask_a.1"), digest: "d2" })
      .then()
      .answers({
        kind: "refused",
        code: "conflict",
        message: "The approval is for other bytes than those the call would carry out.",
      });
    asking.when({ ...answer("ask_a.1"), digest: "d1" }).answers({ kind: "recorded", questionId: "ask_a.1" });
  });
});

describe("an approval for the whole session", () => {
  const granted = calling.and(ask("call_a.1"), answer("ask_a.1", { kind: "allowed", remember: "session" }));

  test("is remembered by its scope, and its question is not asked again", () => {
    granted
      .when(ask("call_a.2", approval("other bytes")))
      .then()
      .answers({ kind: "granted" });
    granted.when(ask("call_a.2", approval("d1", "other"))).then(asked("ask_a.2", "call_a.2", approval("d1", "other")));
    const next = granted.and(
      settleCall("call_a.1"),
      settleCall("call_a.2"),
      settleTurn("turn_a.1"),
      accept("run_b"),
      start,
    );
    next.and(call("call_b.1")).when(ask("call_b.1")).then().answers({ kind: "granted" });
  });

  test("G11: is not used for a call that is being stopped", () => {
    granted
      .and(cancelCall("call_a.2"))
      .when(ask("call_a.2"))
      .answers(over("call_a.2") as never);
  });

  test("an approval for one call, and a denial, are not remembered", () => {
    for (const reply of [{ kind: "allowed" }, { kind: "denied" }] as const) {
      calling.and(ask("call_a.1"), answer("ask_a.1", reply)).when(ask("call_a.2")).then(asked("ask_a.2", "call_a.2"));
    }
  });

  test("an approval for one of two waiting calls is for that one alone", () => {
    const two = calling.and(ask("call_a.1", approval("d1", "build")), ask("call_a.2", approval("d2", "test")));
    const after = two.and(answer("ask_a.2", { kind: "allowed", remember: "session" }));
    expect(after.lane.grants).toEqual(["test"]);
    expect(after.lane.live?.live.map((one) => one.verdict)).toEqual([undefined, { digest: "d2", allowed: true }]);
    expect(open(after)).toEqual(["ask_a.1"]);
  });

  test("an approval for one call does not answer waiting questions", () => {
    const both = calling.and(ask("call_a.1"), ask("call_a.2", approval("d2")));
    for (const reply of [{ kind: "allowed" }, { kind: "denied" }] as const) {
      both.when(answer("ask_a.1", reply)).then(questionSettled("ask_a.1", reply));
    }
  });

  test("G33: are bounded: the oldest is forgotten, and the same scope is kept once", () => {
    const all: Command[] = [];
    for (let n = 1; n <= GRANTS_KEPT + 1; n += 1) {
      const remember = answer(`ask_a.${n}`, { kind: "allowed", remember: "session" });
      all.push(ask("call_a.1", approval(`d${n}`, `s${n}`)), remember);
    }
    const full = calling.and(...all);
    expect(full.lane.grants).toHaveLength(GRANTS_KEPT);
    expect(full.lane.grants.at(0)).toBe("s2");
  });

  test("also answers waiting questions of the same scope, and of no other", () => {
    const reply = { kind: "allowed", remember: "session" } as const;
    const both = calling.and(ask("call_a.1"), ask("call_a.2", approval("d2")));
    both.when(answer("ask_a.1", reply)).then(questionSettled("ask_a.1", reply), questionSettled("ask_a.2", reply));
    expect(both.and(answer("ask_a.1", reply)).lane.grants).toEqual(["tool"]);
    const other = calling.and(ask("call_a.1"), ask("call_a.2", approval("d2", "other")));
    other.when(answer("ask_a.1", reply)).then(questionSettled("ask_a.1", reply));
  });
});

describe("G9: a question is withdrawn together with its owner", () => {
  const parent = (id: "call_a.1" | "turn_a.1") => ({ kind: "parent", id }) as const;

  test("when its call is cancelled, and not when another is", () => {
    asking
      .when(cancelCall("call_a.1", policy))
      .then(
        { type: "call.cancel_requested", runId: "run_a", callId: "call_a.1", reason: policy },
        questionWithdrawn("ask_a.1", policy),
      );
    asking.and(cancelCall("call_a.1")).when(cancelCall("call_a.1")).then();
  });

  test("when its run is cancelled", () => {
    asking
      .when(cancelRun("run_a"))
      .then(cancelRequested("run_a"), questionWithdrawn("ask_a.1"), questionWithdrawn("ask_a.2"))
      .answers({ kind: "stopping", since: 9, first: true });
    const after = asking.and(cancelRun("run_a"));
    after.when(answer("ask_a.1")).then().answers({ kind: "unknown" });
    after.when(settleCall("call_a.1")).then(callSettled("call_a.1"));
  });

  test("when its run is interrupted", () => {
    const reason = { kind: "superseded", by: "run_i" } as const;
    const after = asking.and(accept("run_i", { delivery: "interrupt" }));
    expect(after.events.slice(-3)).toEqual([
      cancelRequested("run_a", reason),
      questionWithdrawn("ask_a.1", reason),
      questionWithdrawn("ask_a.2", reason),
    ]);
  });

  test("when its session is cancelled or closed", () => {
    for (const end of [cancelSession(), close(user)]) {
      const after = asking.and(accept("run_b"), end);
      expect(after.events.slice(-4)).toEqual([
        cancelRequested("run_a"),
        questionWithdrawn("ask_a.1"),
        questionWithdrawn("ask_a.2"),
        runSettled("run_b", cancelledBy(user)),
      ]);
      expect(open(after)).toEqual([]);
    }
  });

  test("when its call ends", () => {
    asking.when(settleCall("call_a.1")).then(questionWithdrawn("ask_a.1", parent("call_a.1")), callSettled("call_a.1"));
  });

  test("when its turn ends; questions of live calls stay open", () => {
    asking
      .when(settleTurn("turn_a.1", { next: "turn" }))
      .then(questionWithdrawn("ask_a.2", parent("turn_a.1")), { ...turnSettled, next: "turn" });
    expect(open(asking.and(settleTurn("turn_a.1", { next: "turn" })))).toEqual(["ask_a.1"]);
  });

  test("when the last turn ends, with those of its calls, which are stopped from then on", () => {
    asking
      .when(settleTurn("turn_a.1"))
      .then(questionWithdrawn("ask_a.1", parent("turn_a.1")), questionWithdrawn("ask_a.2", parent("turn_a.1")), {
        ...turnSettled,
        next: "end",
      });
  });

  test("when its worker vanished or was shut down, and the call cannot be begun again", () => {
    const cut = { type: "turn.settled", runId: "run_a", turnId: "turn_a.1", next: "turn" } as const;
    asking
      .when(recover())
      .then(
        questionWithdrawn("ask_a.1", parent("call_a.1")),
        callSettled("call_a.1", lost),
        callSettled("call_a.2", lost),
        questionWithdrawn("ask_a.2", parent("turn_a.1")),
        { ...cut, outcome: lost },
        recovered("run_a", 2),
        turnRequested("run_a", "turn_a.2"),
      );
    expect(open(asking.and(park))).toEqual([]);
  });
});

describe("a question is cancelled", () => {
  test("G9: an approval: its call is stopped with a reminder, and its siblings run", () => {
    asking
      .when(cancelQuestion("ask_a.1", policy))
      .then(
        { type: "call.cancel_requested", runId: "run_a", callId: "call_a.1", reason: policy, remind: true },
        questionWithdrawn("ask_a.1", policy),
      )
      .answers({ kind: "withdrawn" });
    expect(asking.and(cancelQuestion("ask_a.1")).lane.live).toMatchObject({
      phase: "running",
      live: [
        { id: "call_a.1", phase: "stopping" },
        { id: "call_a.2", phase: "running" },
      ],
    });
  });

  test("another question: its owner continues", () => {
    asking.when(cancelQuestion("ask_a.2")).then(questionWithdrawn("ask_a.2")).answers({ kind: "withdrawn" });
    const ofACall = calling.and(ask("call_a.1", plainQuestion));
    ofACall.when(cancelQuestion("ask_a.1")).then(questionWithdrawn("ask_a.1")).answers({ kind: "withdrawn" });
  });

  test("an approval requested by a turn: it is only withdrawn", () => {
    live.and(ask("turn_a.1")).when(cancelQuestion("ask_a.1")).then(questionWithdrawn("ask_a.1"));
  });
});

describe("a call that an earlier worker left begins", () => {
  const admit = (callId: CallId) => ({ type: "admit-call", callId }) as const;
  const left = live.and(settleAsking("turn_a.1", wanted("call_a.1")), ask("call_a.1"), recover());
  const withdrawn = questionSettled("ask_a.1", { kind: "withdrawn", reason: { kind: "parent", id: "call_a.1" } });

  test("G25: its open approval is withdrawn first, and then it is not begun again after a crash or a park", () => {
    left.when(admit("call_a.1")).then(withdrawn).answers("admitted");
    for (const cut of [[recover()], [park, recover()]]) {
      expect(left.and(...cut).lane.live?.live).toHaveLength(1);
      expect(left.and(admit("call_a.1"), ...cut).lane.live?.live).toEqual([]);
    }
  });

  test("nothing is recorded if it has no open approval", () => {
    const allowed = left.and(answer("ask_a.1", { kind: "allowed" }));
    for (const past of [
      allowed,
      left.and(admit("call_a.1")),
      calling,
      asking.and(answer("ask_a.1", { kind: "allowed" })),
    ]) {
      past.when(admit("call_a.1")).then().answers("admitted");
    }
    asking.when(admit("call_a.2")).then().answers("admitted");
  });

  test("G9: not if it was denied, is being stopped, or has ended", () => {
    const denied = left.and(answer("ask_a.1", { kind: "denied" }));
    const gone = left.and(cancelCall("call_a.1"), settleCall("call_a.1", { outcome: cancelledBy(user) }));
    for (const past of [denied, left.and(cancelCall("call_a.1")), left.and(cancelRun("run_a")), gone]) {
      past.when(admit("call_a.1")).then().answers("denied");
    }
  });
});
