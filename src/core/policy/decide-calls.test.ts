// The policy of calls that a turn requests at its end: begun together, followed by a turn, kept across a crash if they
// can be begun again.
import { describe, expect, test } from "vitest";
import {
  abandonedBy,
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
  cancelReminding,
  cancelRequested,
  cancelRun,
  completed,
  expire,
  failed,
  lost,
  park,
  plainQuestion,
  questionWithdrawn,
  recover,
  recovered,
  running,
  runSettled,
  settleAsking,
  settleCall,
  settleTurn,
  turnRequested,
  user,
  wanted,
} from "../../../test/fixtures/commands.ts";
import { type Given, given } from "../../testing/given.ts";
import { CALLS_LIVE_MAX } from "../limits.ts";
import type { Event } from "../model/event.ts";
import { reminder } from "../model/inbox.ts";
import { decide } from "./decide.ts";
import { demand } from "./demand.ts";

const live = given(...running("run_a"));
const [one, two, again] = [wanted("call_a.1"), wanted("call_a.2"), wanted("call_a.3", { idempotent: true })];
const asking = settleAsking("turn_a.1", one, two, again);
/** Three calls by the end of the first turn, the third of which may be repeated. */
const called = live.and(asking);

const turnSettled: Event = {
  type: "turn.settled",
  runId: "run_a",
  turnId: "turn_a.1",
  outcome: completed,
  next: "turn",
  text: "",
  finish: "calls",
};
const shutdown = cancelledBy({ kind: "shutdown" });
const denied = { kind: "failed", code: "denied", message: "Not carried out: it was not approved." } as const;

const demanded = ({ lane }: Given) => (lane.live === undefined ? [] : demand(lane.live));
const liveCalls = ({ lane }: Given) => lane.live?.live.map((one) => one.id);

describe("the end of a turn requests calls", () => {
  test("they are recorded with the end, in order, and begin together", () => {
    live
      .when(asking)
      .then(turnSettled, callRequested(one), callRequested(two), callRequested(again))
      .answers("recorded");
    expect(called.lane.live).toMatchObject({ phase: "running", turn: undefined, calls: 3 });
    expect(demanded(called).map((effect) => `${effect.type} ${effect.work}`)).toEqual([
      "begin call_a.1",
      "begin call_a.2",
      "begin call_a.3",
    ]);
  });

  test("the next turn is requested when the last of them has ended, in any order", () => {
    called.when(settleCall("call_a.3")).then(callSettled("call_a.3"));
    called.and(settleCall("call_a.3")).when(settleCall("call_a.1")).then(callSettled("call_a.1"));
    called
      .and(settleCall("call_a.3"), settleCall("call_a.1"))
      .when(settleCall("call_a.2", { outcome: failed }))
      .then(callSettled("call_a.2", failed), turnRequested("run_a", "turn_a.2"));
  });

  test("the next turn waits for calls requested during the turn as well", () => {
    const both = live.and(call("call_a.1"), settleAsking("turn_a.1", two));
    expect(liveCalls(both)).toEqual(["call_a.1", "call_a.2"]);
    both.when(settleCall("call_a.2")).then(callSettled("call_a.2"));
  });

  test("G11: no call is requested if a cancel was decided first", () => {
    live
      .and(cancelRun("run_a"))
      .when(asking)
      .then(turnSettled, runSettled("run_a", cancelledBy(user), { turnId: "turn_a.1", text: "" }));
  });

  test("the last turn of a run requests no calls", () => {
    live
      .when(settleTurn("turn_a.1", { calls: [one] }))
      .then(
        { type: "turn.settled", runId: "run_a", turnId: "turn_a.1", outcome: completed, next: "end", text: "" },
        runSettled("run_a", completed, { turnId: "turn_a.1", text: "" }),
      );
  });

  test("G2: a repeated end of a turn requests its calls once", () => {
    called.when(asking).then().answers("late");
  });

  test("G33: live calls are bounded, and surplus calls have a result too", () => {
    const many = Array.from({ length: CALLS_LIVE_MAX + 1 }, (_, index) => wanted(`call_a.${index + 2}`));
    const full = live.and(call("call_a.1"), settleAsking("turn_a.1", ...many));
    expect(full.lane.live?.live).toHaveLength(CALLS_LIVE_MAX);
    expect(full.events.slice(-2)).toEqual([
      callSettled("call_a.257", expect.objectContaining({ kind: "failed", code: "too_many_calls" })),
      callSettled("call_a.258", expect.objectContaining({ kind: "failed", code: "too_many_calls" })),
    ]);
  });

  test("G9: a cancel of one call leaves its siblings and the run running", () => {
    const cancelled = called.and(cancelCall("call_a.2"));
    expect(demanded(cancelled).map((effect) => effect.type)).toEqual(["begin", "stop", "begin"]);
    expect(cancelled.lane.live).toMatchObject({ phase: "running" });
    const over = cancelled.and(
      settleCall("call_a.2", { outcome: cancelledBy(user) }),
      settleCall("call_a.1"),
      settleCall("call_a.3"),
    );
    expect(over.lane.live).toMatchObject({ phase: "running", turn: "turn_a.2" });
  });

  test("G12: a late end of an abandoned call changes nothing", () => {
    const given = called.and(cancelCall("call_a.2"), settleCall("call_a.2", { outcome: abandonedBy(user, "tool") }));
    given
      .when(settleCall("call_a.2", { result: "late" }))
      .then()
      .answers("late");
  });

  test("a cancelled run that has only calls left ends with the last of them, and requests no turn", () => {
    const past = live.and(settleAsking("turn_a.1", one), cancelRun("run_a"));
    past
      .when(settleCall("call_a.1"))
      .then(callSettled("call_a.1"), runSettled("run_a", cancelledBy(user), { turnId: "turn_a.1", text: "" }));
  });
});

describe("G25: after a crash", () => {
  test("calls whose end is unknown are lost; idempotent ones are kept and begun again", {
    meta: { id: "G25/only-idempotent-calls-repeated" },
  }, () => {
    called.when(recover()).then(callSettled("call_a.1", lost), callSettled("call_a.2", lost), recovered("run_a", 2));
    expect(demanded(called.and(recover()))).toEqual([{ type: "begin", work: "call_a.3" }]);
    called
      .and(recover())
      .when(settleCall("call_a.3"))
      .then(callSettled("call_a.3"), turnRequested("run_a", "turn_a.2"));
  });

  test("a call that waits for its approval has not begun, and is kept with its question", () => {
    const waiting = live.and(settleAsking("turn_a.1", one, two), ask("call_a.1"));
    waiting.when(recover()).then(callSettled("call_a.2", lost), recovered("run_a", 2));
    const after = waiting.and(recover());
    expect(after.lane.live?.questions.map((one) => one.id)).toEqual(["ask_a.1"]);
    expect(demanded(after)).toEqual([{ type: "begin", work: "call_a.1" }]);
    after.when(ask("call_a.1")).then().answers({ kind: "asked", questionId: "ask_a.1" });
  });

  test("an approval that was answered is not requested again for the same bytes", () => {
    const past = live.and(settleAsking("turn_a.1", again), ask("call_a.3"), answer("ask_a.1"), recover());
    past.when(ask("call_a.3")).then().answers({ kind: "granted" });
    past
      .when(ask("call_a.3", approval("d2")))
      .then(asked("ask_a.2", "call_a.3", approval("d2")))
      .answers({ kind: "asked", questionId: "ask_a.2" });
  });

  test("a call that was approved may have begun, and is lost", () => {
    live
      .and(settleAsking("turn_a.1", one), ask("call_a.1"), answer("ask_a.1"))
      .when(recover())
      .then(callSettled("call_a.1", lost), recovered("run_a", 2), turnRequested("run_a", "turn_a.2"));
  });

  test.each([answer("ask_a.1", { kind: "denied" }), expire("ask_a.1")])(
    "G15: a denied call has not begun, and is not recorded as lost (%j)",
    (no) => {
      for (const wish of [one, { ...one, idempotent: true } as const]) {
        live
          .and(settleAsking("turn_a.1", wish), ask("call_a.1"), no)
          .when(recover())
          .then(callSettled("call_a.1", denied), recovered("run_a", 2), turnRequested("run_a", "turn_a.2"));
      }
    },
  );

  test("a question other than the approval of a kept call is withdrawn: the call will ask it again", () => {
    live
      .and(settleAsking("turn_a.1", again), ask("call_a.3", plainQuestion))
      .when(recover())
      .then(questionWithdrawn("ask_a.1", { kind: "parent", id: "call_a.3" }), recovered("run_a", 2));
  });

  test("G9: a question of a call that is not kept is withdrawn once, with that call", () => {
    live
      .and(settleAsking("turn_a.1", one, again), ask("call_a.1", plainQuestion))
      .when(recover())
      .then(
        questionWithdrawn("ask_a.1", { kind: "parent", id: "call_a.1" }),
        callSettled("call_a.1", lost),
        recovered("run_a", 2),
      );
  });

  test("calls requested during a turn are lost even if idempotent: the repeated turn requests them again", () => {
    const within = live.and({ ...call("call_a.1"), idempotent: true }, call("call_a.2"), ask("call_a.2"));
    within
      .when(recover())
      .then(
        callSettled("call_a.1", lost),
        questionWithdrawn("ask_a.1", { kind: "parent", id: "call_a.2" }),
        callSettled("call_a.2", lost),
        { type: "turn.settled", runId: "run_a", turnId: "turn_a.1", outcome: lost, next: "turn" },
        recovered("run_a", 2),
        turnRequested("run_a", "turn_a.2"),
      );
  });

  test("a call that was being stopped is not begun again", () => {
    live
      .and(settleAsking("turn_a.1", again), cancelCall("call_a.3"))
      .when(recover())
      .then(callSettled("call_a.3", lost), recovered("run_a", 2), turnRequested("run_a", "turn_a.2"));
  });

  test("the third crash fails the run, and settles the calls it had kept", () => {
    const waiting = live.and(settleAsking("turn_a.1", one, again), ask("call_a.1"));
    const third = waiting.and(recover(), recover());
    expect(liveCalls(third)).toEqual(["call_a.1", "call_a.3"]);
    third.when(recover()).then(
      questionWithdrawn("ask_a.1", { kind: "parent", id: "call_a.1" }),
      callSettled("call_a.1", lost),
      callSettled("call_a.3", lost),
      runSettled(
        "run_a",
        {
          kind: "failed",
          code: "crash_loop",
          message: "Its worker vanished 3 times while it ran. It is not started again.",
        },
        { turnId: "turn_a.1", text: "" },
      ),
    );
  });

  test("a host that does not resume loses them all", () => {
    called
      .when(recover("lose"))
      .then(
        callSettled("call_a.1", lost),
        callSettled("call_a.2", lost),
        callSettled("call_a.3", lost),
        runSettled("run_a", lost, { turnId: "turn_a.1", text: "" }),
      );
  });
});

describe("a parked run", () => {
  const waiting = called.and(ask("call_a.1"), ask("call_a.3", plainQuestion));
  const parked = waiting.and(park);
  // It waits for its approval, so it has not begun.
  const unbegun = { ...callSettled("call_a.1", cancelledBy(user)), begun: false } as const;

  test("G25: keeps calls that can be begun again, and recovers without a turn", () => {
    waiting
      .when(park)
      .then(questionWithdrawn("ask_a.2", { kind: "parent", id: "call_a.3" }), callSettled("call_a.2", shutdown), {
        type: "run.parked",
        runId: "run_a",
      });
    expect(liveCalls(parked)).toEqual(["call_a.1", "call_a.3"]);
    expect(demanded(parked)).toEqual([]);
    parked.when(recover()).then(recovered("run_a", 1));
    expect(demanded(parked.and(recover())).map((effect) => effect.work)).toEqual(["call_a.1", "call_a.3"]);
  });

  test("G9: a cancel settles it at once, its kept calls and their approvals with it, each once", () => {
    parked
      .when(cancelRun("run_a"))
      .then(
        cancelRequested("run_a"),
        questionWithdrawn("ask_a.1"),
        unbegun,
        callSettled("call_a.3", cancelledBy(user)),
        runSettled("run_a", cancelledBy(user), { turnId: "turn_a.1", text: "" }),
      );
  });

  test("G9: a cancel of a kept call settles that call at once, and the others are recovered", () => {
    parked
      .when(cancelCall("call_a.1"))
      .then(
        { type: "call.cancel_requested", runId: "run_a", callId: "call_a.1", reason: user, begun: false },
        questionWithdrawn("ask_a.1"),
        unbegun,
      );
    parked.and(cancelCall("call_a.1")).when(recover()).then(recovered("run_a", 1));
    parked
      .and(cancelCall("call_a.1"), cancelCall("call_a.3"))
      .when(recover())
      .then(recovered("run_a", 1), turnRequested("run_a", "turn_a.2"));
  });

  test("a late end of a kept call is dropped: it is not running, and will be begun again", () => {
    parked.when(settleCall("call_a.3")).then().answers("late");
  });

  test("an approval given while it is parked is found when the call begins", () => {
    const after = parked.and(answer("ask_a.1"));
    after.when(recover()).then(recovered("run_a", 1));
    expect(decide(after.and(recover()).lane, ask("call_a.1"))).toEqual({ events: [], answer: { kind: "granted" } });
  });

  test("an approval denied while it is parked ends the call when the run is recovered", () => {
    parked
      .and(answer("ask_a.1", { kind: "denied" }))
      .when(recover())
      .then(callSettled("call_a.1", denied), recovered("run_a", 1));
  });

  test("G15: a call denied while it is parked and then cancelled is cancelled, and the model is reminded", () => {
    parked
      .and(answer("ask_a.1", { kind: "denied" }))
      .when(cancelReminding("call_a.1"))
      .then(
        { type: "call.cancel_requested", runId: "run_a", callId: "call_a.1", reason: user, remind: true, begun: false },
        unbegun,
        added(reminder("call_a.1", "tool", user)),
      );
  });
});

describe("G10: a call that had not begun when it was stopped", () => {
  const calls = live.and(call("call_a.1"), call("call_a.2"));
  const stop = { ...cancelCall("call_a.1"), begun: false } as const;
  const stopped = calls.and(stop);
  const unbegun = { ...callSettled("call_a.1", cancelledBy(user)), begun: false };

  test("is withdrawn, and so it is for a second cancel", () => {
    const asked = { type: "call.cancel_requested", runId: "run_a", callId: "call_a.1", reason: user } as const;
    calls
      .when(stop)
      .then({ ...asked, begun: false })
      .answers({ kind: "withdrawn" });
    stopped.when(cancelCall("call_a.1")).then().answers({ kind: "withdrawn" });
  });

  test("ends as cancelled, whatever is reported and even if its worker vanishes", () => {
    expect(decide(stopped.lane, settleCall("call_a.1")).events).toEqual([unbegun]);
    expect(decide(stopped.lane, recover()).events[0]).toEqual(unbegun);
  });

  test("ends as cancelled with its run, if its worker reports it", () => {
    const end = { callId: "call_a.1", outcome: cancelledBy(user), begun: false } as const;
    const { events } = decide(calls.and(cancelRun("run_a")).lane, { type: "settle-call", end });
    expect(events).toEqual([unbegun]);
  });
});
