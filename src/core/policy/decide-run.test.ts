// The policy of a live run: turns and calls settle, runs end, are stopped, parked and recovered.
import { describe, expect, test } from "vitest";
import {
  abandonedBy,
  accept,
  call,
  cancelCall,
  cancelledBy,
  cancelRun,
  completed,
  failed,
  lost,
  park,
  policy,
  recover,
  requeued,
  running,
  runSettled,
  settleCall,
  settleTurn,
  start,
  taken,
  turnRequested,
  user,
} from "../../../test/fixtures/commands.ts";
import { type Given, given } from "../../testing/given.ts";
import { Bug } from "../bug.ts";
import { CALLS_LIVE_MAX } from "../limits.ts";
import type { Outcome } from "../model/cancel.ts";
import type { CallId, TurnId } from "../model/ids.ts";
import type { Run } from "../model/run.ts";
import { decide } from "./decide.ts";
import { cancelOneCall, parkRun, settleTurn as settleTurnOf } from "./decide-run.ts";

const live = given(...running("run_a"));
const calling = live.and(call("call_a.1", "build"), call("call_a.2", "test"));
/** Its turn is over and another will follow its calls. */
const between = calling.and(settleTurn("turn_a.1", { next: "turn" }));
const ending = calling.and(settleTurn("turn_a.1"));
const stopping = calling.and(cancelRun("run_a"));

const turnSettled = (turnId: TurnId, outcome: Outcome, next: "turn" | "end" = "end", text = "") =>
  ({ type: "turn.settled", runId: "run_a", turnId, outcome, next, text }) as const;
const callSettled = (callId: CallId, outcome: Outcome) =>
  ({ type: "call.settled", runId: "run_a", callId, outcome }) as const;
const turnCut = (turnId: TurnId, outcome: Outcome) =>
  ({ type: "turn.settled", runId: "run_a", turnId, outcome, next: "turn" }) as const;
const stoppedByItself = {
  kind: "failed",
  code: "turn_stopped",
  message: "The turn ended as cancelled, but was not cancelled.",
} as const;

function liveRun(past: Given): Run {
  if (past.lane.live === undefined) throw new Error("nothing is live");
  return past.lane.live;
}

describe("a turn settles", () => {
  test("a run without calls has the outcome of its last turn", () => {
    for (const outcome of [completed, failed]) {
      live
        .when(settleTurn("turn_a.1", { outcome, text: "hello" }))
        .then(
          turnSettled("turn_a.1", outcome, "end", "hello"),
          runSettled("run_a", outcome, { turnId: "turn_a.1", text: "hello" }),
        )
        .answers("recorded");
    }
  });

  test("G18: its cost is recorded, even when it was stopped", () => {
    const usage = { inputTokens: 3, outputTokens: 5, estimated: true };
    live
      .and(cancelRun("run_a"))
      .when(settleTurn("turn_a.1", { outcome: cancelledBy(user), text: "hel", usage }))
      .then(
        { ...turnSettled("turn_a.1", cancelledBy(user), "end", "hel"), usage },
        runSettled("run_a", cancelledBy(user), { turnId: "turn_a.1", text: "hel" }),
      );
  });

  test("another turn follows at once if it requests one and no call is live", () => {
    live
      .when(settleTurn("turn_a.1", { next: "turn" }))
      .then(turnSettled("turn_a.1", completed, "turn"), turnRequested("run_a", "turn_a.2"));
  });

  test("with live calls, neither the next turn nor the end comes before theirs", () => {
    calling.when(settleTurn("turn_a.1", { next: "turn" })).then(turnSettled("turn_a.1", completed, "turn"));
    calling.when(settleTurn("turn_a.1")).then(turnSettled("turn_a.1", completed));
    expect(ending.lane.live).toMatchObject({ phase: "ending", outcome: completed, turn: undefined });
    expect(between.lane.live).toMatchObject({ phase: "running", turn: undefined });
  });

  test.each([cancelledBy(user), lost])("G15: a turn that reports %j does not cancel its run", (outcome) => {
    live
      .when(settleTurn("turn_a.1", { outcome }))
      .then(turnSettled("turn_a.1", outcome), runSettled("run_a", stoppedByItself, { turnId: "turn_a.1", text: "" }));
  });

  test.each([cancelledBy(user), lost])("G15: nor if calls were live when it ended (%j)", (outcome) => {
    const past = calling.and(settleTurn("turn_a.1", { outcome }), settleCall("call_a.1"), settleCall("call_a.2"));
    expect(past.events.at(-1)).toEqual(runSettled("run_a", stoppedByItself, { turnId: "turn_a.1", text: "" }));
  });

  test("a late report is dropped, and the answer is `late`", () => {
    for (const past of [live.and(settleTurn("turn_a.1", { next: "turn" })), given(), between]) {
      past.when(settleTurn("turn_a.1")).then().answers("late");
    }
    live.when(settleTurn("turn_b.1")).then().answers("late");
    expect(settleTurnOf(liveRun(live), settleTurn("turn_a.2").end)).toEqual([]);
  });

  test("turns are numbered one after the other", () => {
    const third = live.and(settleTurn("turn_a.1", { next: "turn" }), settleTurn("turn_a.2", { next: "turn" }));
    expect(third.lane.live).toMatchObject({ turn: "turn_a.3", turns: 3 });
  });
});

describe("text of a live turn", () => {
  const extend = { type: "extend", turnId: "turn_a.1", text: "par" } as const;
  const extended = { type: "turn.extended", runId: "run_a", turnId: "turn_a.1", text: "par" } as const;

  test("G17: is kept while the turn is live, even while it is being stopped", () => {
    live.when(extend).then(extended);
    live.and(cancelRun("run_a")).when(extend).then(extended);
  });

  test("is dropped if the turn is not live", () => {
    live
      .and(settleTurn("turn_a.1", { next: "turn" }))
      .when(extend)
      .then();
    between.when(extend).then();
    given().when(extend).then();
    expect(decide(live.lane, extend).answer).toBeUndefined();
  });
});

describe("a call is requested", () => {
  const refusal = { kind: "refused", code: "busy", message: "run_a begins no new calls." } as const;

  test("it is recorded with its name and input before it begins", () => {
    const command = { type: "call", callId: "call_a.1", name: "shell", input: { line: "ls" } } as const;
    const asked = live.when(command);
    asked
      .then({ type: "call.requested", runId: "run_a", callId: "call_a.1", name: "shell", input: { line: "ls" } })
      .answers({ kind: "called", callId: "call_a.1" });
    expect(asked.after.lane.live).toMatchObject({
      calls: 1,
      live: [{ phase: "running", id: "call_a.1", name: "shell" }],
    });
  });

  test.each([
    ["is being stopped", stopping],
    ["is ending", ending],
    ["has no turn that could ask", between],
    ["is parked", live.and(park)],
    ["has settled", live.and(settleTurn("turn_a.1"))],
  ])("G11: none begins in a run that %s", (_, past) => {
    past.when(call("call_a.3")).then().answers(refusal);
  });

  test("a call of another run is refused", () => {
    live
      .when(call("call_b.1"))
      .then()
      .answers({ ...refusal, message: "run_b begins no new calls." });
  });

  test("G33: live calls are bounded, and the refusal of a surplus call names the limit", () => {
    const full = live.and(...Array.from({ length: CALLS_LIVE_MAX }, (_, index) => call(`call_a.${index + 1}`)));
    full
      .when(call("call_a.257"))
      .then()
      .answers({
        kind: "refused",
        code: "overloaded",
        message:
          "A run may have 256 live calls, and run_a has as many: call_a.257 was not begun. " +
          "Wait until one has ended, then make it again.",
      });
    full.and(cancelRun("run_a")).when(call("call_a.257")).then().answers(refusal);
    full.and(settleCall("call_a.1")).when(call("call_a.257")).answers({ kind: "called", callId: "call_a.257" });
  });

  test("G2: a request that is repeated because its answer was lost is one call", () => {
    calling.when(call("call_a.1", "build")).then().answers({ kind: "called", callId: "call_a.1" });
  });
});

describe("a call settles", () => {
  test("its end and its result are recorded as they are", () => {
    const recorded = { ...callSettled("call_a.1", failed), result: { code: 1 } };
    calling
      .when(settleCall("call_a.1", { outcome: failed, result: { code: 1 } }))
      .then(recorded)
      .answers(recorded);
  });

  test("the turn continues while its calls settle", () => {
    live.and(call("call_a.1")).when(settleCall("call_a.1")).then(callSettled("call_a.1", completed));
  });

  test("the next turn is requested when the last call has settled, and not before", () => {
    between.when(settleCall("call_a.2")).then(callSettled("call_a.2", completed));
    between
      .and(settleCall("call_a.2"))
      .when(settleCall("call_a.1", { outcome: failed }))
      .then(callSettled("call_a.1", failed), turnRequested("run_a", "turn_a.2"));
  });

  test("an ending run settles with its last call, with the outcome of its last turn", () => {
    for (const outcome of [completed, failed]) {
      calling
        .and(settleTurn("turn_a.1", { outcome }), settleCall("call_a.1"))
        .when(settleCall("call_a.2", { outcome: cancelledBy({ kind: "parent", id: "run_a" }) }))
        .then(
          callSettled("call_a.2", cancelledBy({ kind: "parent", id: "run_a" })),
          runSettled("run_a", outcome, { turnId: "turn_a.1", text: "" }),
        );
    }
  });

  test("G12: a late result is dropped, and the answer is `late`", () => {
    calling.and(settleCall("call_a.1")).when(settleCall("call_a.1")).then().answers("late");
    calling.when(settleCall("call_b.1")).then().answers("late");
    given().when(settleCall("call_a.1")).then().answers("late");
  });

  test("steers wait for the turn after the calls", () => {
    const steered = between.and(accept("run_s", { delivery: "steer" }), settleCall("call_a.1"));
    steered
      .when(settleCall("call_a.2"))
      .then(
        callSettled("call_a.2", completed),
        ...taken("run_s", "run_a", "turn_a.2"),
        turnRequested("run_a", "turn_a.2"),
      );
  });

  test("steers of an ending run are queued when it has ended", () => {
    calling
      .and(accept("run_s", { delivery: "steer" }), settleTurn("turn_a.1"), settleCall("call_a.1"))
      .when(settleCall("call_a.2"))
      .then(
        callSettled("call_a.2", completed),
        runSettled("run_a", completed, { turnId: "turn_a.1", text: "" }),
        requeued("run_s"),
      );
  });
});

describe("a stopped run", () => {
  test("it settles only after everything it owns has settled, in any order", () => {
    const turn = settleTurn("turn_a.1", { outcome: cancelledBy(user) });
    const one = settleCall("call_a.1", { outcome: cancelledBy(user) });
    const two = settleCall("call_a.2");
    for (const order of [
      [turn, one, two],
      [one, turn, two],
      [one, two, turn],
      [two, one, turn],
    ]) {
      let past = stopping;
      for (const end of order) {
        expect(past.lane.live).toBeDefined();
        past = past.and(end);
      }
      expect(past.events.filter((event) => event.type === "run.settled")).toEqual([
        runSettled("run_a", cancelledBy(user), { turnId: "turn_a.1", text: "" }),
      ]);
      expect(past.lane.live).toBeUndefined();
    }
  });

  test("G11: no turn follows, even if the stopped turn requested one", () => {
    live
      .and(cancelRun("run_a"))
      .when(settleTurn("turn_a.1", { next: "turn" }))
      .then(
        turnSettled("turn_a.1", completed, "turn"),
        runSettled("run_a", cancelledBy(user), { turnId: "turn_a.1", text: "" }),
      );
    between
      .and(cancelRun("run_a"), settleCall("call_a.1"))
      .when(settleCall("call_a.2"))
      .then(
        callSettled("call_a.2", completed),
        runSettled("run_a", cancelledBy(user), { turnId: "turn_a.1", text: "" }),
      );
  });

  test("G12: its outcome names the work that did not stop", () => {
    const past = stopping.and(
      settleCall("call_a.2", { outcome: abandonedBy(user, "test") }),
      settleCall("call_a.1", { outcome: cancelledBy(user) }),
    );
    past
      .when(settleTurn("turn_a.1", { outcome: abandonedBy(user, "turn") }))
      .then(
        turnSettled("turn_a.1", abandonedBy(user, "turn")),
        runSettled("run_a", abandonedBy(user, "test", "turn"), { turnId: "turn_a.1", text: "" }),
      );
    past
      .when(settleTurn("turn_a.1"))
      .then(
        turnSettled("turn_a.1", completed),
        runSettled("run_a", abandonedBy(user, "test"), { turnId: "turn_a.1", text: "" }),
      );
  });

  test("G12: a call that is abandoned last is named, and so is a turn before it", () => {
    const past = stopping.and(
      settleTurn("turn_a.1", { outcome: abandonedBy(user, "turn") }),
      settleCall("call_a.1"),
      settleCall("call_a.2", { outcome: abandonedBy(user, "test") }),
    );
    expect(past.events.at(-1)).toEqual(
      runSettled("run_a", abandonedBy(user, "turn", "test"), { turnId: "turn_a.1", text: "" }),
    );
  });

  test("G15: a run that is cancelled while it is ending is cancelled", () => {
    const past = ending.and(cancelRun("run_a"), settleCall("call_a.1"), settleCall("call_a.2"));
    expect(past.events.at(-1)).toEqual(runSettled("run_a", cancelledBy(user), { turnId: "turn_a.1", text: "" }));
  });

  test("steers of a stopped run are queued when it has settled", () => {
    live
      .and(accept("run_s", { delivery: "steer" }), cancelRun("run_a"))
      .when(settleTurn("turn_a.1"))
      .then(
        turnSettled("turn_a.1", completed),
        runSettled("run_a", cancelledBy(user), { turnId: "turn_a.1", text: "" }),
        requeued("run_s"),
      );
  });
});

describe("recover", () => {
  test("without a live run there is nothing to recover", () => {
    given(accept("run_b")).when(recover()).then();
    expect(decide(given().lane, recover()).answer).toBeUndefined();
  });

  test("G25: live work is lost, the turn is requested again, and the run continues", () => {
    calling
      .when(recover())
      .then(
        callSettled("call_a.1", lost),
        callSettled("call_a.2", lost),
        turnCut("turn_a.1", lost),
        { type: "run.recovered", runId: "run_a", attempt: 2 },
        turnRequested("run_a", "turn_a.2"),
      );
    expect(calling.and(recover()).lane.live).toMatchObject({
      phase: "running",
      attempt: 2,
      turn: "turn_a.2",
      live: [],
    });
  });

  test("G25: a run between turns loses its calls and continues with the next turn", () => {
    between
      .and(settleCall("call_a.1"))
      .when(recover())
      .then(
        callSettled("call_a.2", lost),
        { type: "run.recovered", runId: "run_a", attempt: 2 },
        turnRequested("run_a", "turn_a.2"),
      );
  });

  test("a host that does not resume gets the run lost, and its steers queued", () => {
    live
      .and(accept("run_s", { delivery: "steer" }))
      .when(recover("lose"))
      .then(turnCut("turn_a.1", lost), runSettled("run_a", lost, { turnId: "turn_a.1", text: "" }), requeued("run_s"));
  });

  test("a recovered run takes its steers into the repeated turn", () => {
    live
      .and(accept("run_s", { delivery: "steer" }))
      .when(recover())
      .then(
        turnCut("turn_a.1", lost),
        { type: "run.recovered", runId: "run_a", attempt: 2 },
        ...taken("run_s", "run_a", "turn_a.2"),
        turnRequested("run_a", "turn_a.2"),
      );
  });

  test("G25: a run whose worker vanished three times fails", { meta: { id: "G25/third-crash-fails-run" } }, () => {
    live
      .and(recover(), recover())
      .when(recover())
      .then(
        turnCut("turn_a.3", lost),
        runSettled(
          "run_a",
          {
            kind: "failed",
            code: "crash_loop",
            message: "Its worker vanished 3 times while it ran. It is not started again.",
          },
          { turnId: "turn_a.3", text: "" },
        ),
      );
  });

  test("G15: a run that was being stopped is cancelled, with the recorded reason", () => {
    stopping
      .and(settleCall("call_a.2", { outcome: abandonedBy(user, "test") }))
      .when(recover())
      .then(
        callSettled("call_a.1", lost),
        turnCut("turn_a.1", lost),
        runSettled("run_a", abandonedBy(user, "test"), { turnId: "turn_a.1", text: "" }),
      );
    live
      .and(cancelRun("run_a", policy))
      .when(recover("lose"))
      .then(turnCut("turn_a.1", lost), runSettled("run_a", cancelledBy(policy), { turnId: "turn_a.1", text: "" }));
  });

  test("an ending run settles with its known outcome", () => {
    ending
      .and(settleCall("call_a.1"))
      .when(recover())
      .then(callSettled("call_a.2", lost), runSettled("run_a", completed, { turnId: "turn_a.1", text: "" }));
  });
});

describe("park", () => {
  const shutdown = cancelledBy({ kind: "shutdown" });

  test("live work is suspended, and the run continues where it was", () => {
    calling
      .when(park)
      .then(callSettled("call_a.1", shutdown), callSettled("call_a.2", shutdown), turnCut("turn_a.1", shutdown), {
        type: "run.parked",
        runId: "run_a",
      });
    expect(decide(calling.lane, park).answer).toBeUndefined();
    calling
      .and(park)
      .when(recover())
      .then({ type: "run.recovered", runId: "run_a", attempt: 1 }, turnRequested("run_a", "turn_a.2"));
  });

  test("parking is not a crash: it counts no attempt, even if the host does not resume crashed runs", () => {
    const again = live.and(recover(), park, recover("lose"), park, recover(), park, recover());
    expect(again.lane.live).toMatchObject({ phase: "running", attempt: 2, turn: "turn_a.5" });
  });

  test.each([
    ["being stopped", stopping],
    ["ending", ending],
    ["parked already", live.and(park)],
    ["not there", given(accept("run_b"))],
  ])("a run that is %s is not parked", (_, past) => {
    past.when(park).then();
  });

  test("steers keep waiting for a parked run, and are taken in when it is recovered", () => {
    const parked = live.and(accept("run_s", { delivery: "steer" }), park);
    expect(parked.lane.steers.map((run) => run.id)).toEqual(["run_s"]);
    parked
      .when(recover())
      .then(
        { type: "run.recovered", runId: "run_a", attempt: 1 },
        ...taken("run_s", "run_a", "turn_a.2"),
        turnRequested("run_a", "turn_a.2"),
      );
  });

  test("nothing starts while a run is parked, and late ends of its work are dropped", () => {
    const parked = calling.and(accept("run_b"), park);
    parked.when(start).then();
    parked.when(settleTurn("turn_a.1")).then().answers("late");
    parked.when(settleCall("call_a.1")).then().answers("late");
    parked.when(cancelCall("call_a.1")).then().answers({ kind: "unknown" });
    expect(parkRun(liveRun(parked))).toEqual([]);
  });
});

describe("a contradiction is a bug", () => {
  test("a parked run that owns a turn has no derivable outcome", () => {
    const impossible: Run = { ...liveRun(live), phase: "parked" };
    expect(() => settleTurnOf(impossible, settleTurn("turn_a.1").end)).toThrow(
      new Bug("run_a is parked and owns nothing that could settle"),
    );
  });

  test("cancelling a call that is unknown to its run returns `unknown`", () => {
    expect(cancelOneCall(liveRun(stopping), "call_a.9", { reason: user, remind: false }, 9)).toEqual({
      events: [],
      answer: { kind: "unknown" },
    });
  });
});
