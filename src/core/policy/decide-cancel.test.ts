// Cancelling a session, a run, a call, by id or by key; and closing. What is covered, the receipts, and what is left
// alone.
import { describe, expect, test } from "vitest";
import {
  accept,
  call,
  cancelCall,
  cancelKey,
  cancelledBy,
  cancelRequested,
  cancelRun,
  cancelSession,
  close,
  completed,
  park,
  policy,
  requeued,
  running,
  runSettled,
  settleCall,
  settleTurn,
  start,
  user,
} from "../../../test/fixtures/commands.ts";
import { given, givenNoSession } from "../../testing/given.ts";
import type { RunId } from "../model/ids.ts";
import { decide } from "./decide.ts";

const steer = (runId: RunId) => accept(runId, { delivery: "steer" });
const callCancelRequested = {
  type: "call.cancel_requested",
  runId: "run_a",
  callId: "call_a.1",
  reason: user,
} as const;

describe("cancel a session", () => {
  test("G7: it covers the live run and every waiting run, and each has its own receipt", () => {
    given(...running("run_a"), accept("run_b"), steer("run_s"), accept("run_c"))
      .when(cancelSession(policy))
      .then(
        { type: "session.cancel_requested", reason: policy, covers: ["run_a", "run_b", "run_c", "run_s"] },
        cancelRequested("run_a", policy),
        runSettled("run_b", cancelledBy(policy)),
        runSettled("run_c", cancelledBy(policy)),
        runSettled("run_s", cancelledBy(policy)),
      )
      .answers({
        kind: "stopping",
        runs: [
          { runId: "run_a", receipt: { kind: "stopping", since: 9, first: true } },
          { runId: "run_b", receipt: { kind: "withdrawn" } },
          { runId: "run_c", receipt: { kind: "withdrawn" } },
          { runId: "run_s", receipt: { kind: "withdrawn" } },
        ],
      });
  });

  test("G7: with no live run, waiting runs are withdrawn", () => {
    given(accept("run_a"), accept("run_b"))
      .when(cancelSession())
      .then(
        { type: "session.cancel_requested", reason: user, covers: ["run_a", "run_b"] },
        runSettled("run_a", cancelledBy(user)),
        runSettled("run_b", cancelledBy(user)),
      )
      .answers({
        kind: "withdrawn",
        runs: [
          { runId: "run_a", receipt: { kind: "withdrawn" } },
          { runId: "run_b", receipt: { kind: "withdrawn" } },
        ],
      });
  });

  test("G7: an idle session is unchanged, and the receipt is `idle`", () => {
    given().when(cancelSession()).then().answers({ kind: "idle", runs: [] });
    given(...running("run_a"), settleTurn("turn_a.1"))
      .when(cancelSession())
      .then()
      .answers({ kind: "idle", runs: [] });
  });

  test("a session that was never created is unknown", () => {
    givenNoSession().when(cancelSession()).then().answers({ kind: "unknown", runs: [] });
  });

  test("G10: a second cancel writes nothing, and the first reason is kept", () => {
    const past = given(...running("run_a"), accept("run_b"), cancelSession());
    past
      .when(cancelSession(policy))
      .then()
      .answers({
        kind: "stopping",
        runs: [{ runId: "run_a", receipt: { kind: "stopping", since: 7, first: false } }],
      });
    expect(past.lane.live).toMatchObject({ phase: "stopping", reason: user, since: 7 });
  });

  test("G7: a run accepted after a cancel is covered only by the next one", () => {
    const past = given(...running("run_a"), cancelSession(), accept("run_b"));
    expect(past.lane.queue.map((run) => run.id)).toEqual(["run_b"]);
    past
      .when(cancelSession(policy))
      .then(
        { type: "session.cancel_requested", reason: policy, covers: ["run_b"] },
        runSettled("run_b", cancelledBy(policy)),
      )
      .answers({
        kind: "stopping",
        runs: [
          { runId: "run_a", receipt: { kind: "stopping", since: 6, first: false } },
          { runId: "run_b", receipt: { kind: "withdrawn" } },
        ],
      });
  });

  test("G7: a prompt that follows a cancel runs, once the cancelled run has settled", () => {
    const stopped = settleTurn("turn_a.1", { outcome: cancelledBy(user) });
    const past = given(...running("run_a"), cancelSession(), accept("run_b"), stopped, start);
    expect(past.lane.live).toMatchObject({ id: "run_b", phase: "running" });
  });

  test("a parked run ends at once", () => {
    given(...running("run_a"), steer("run_s"), park)
      .when(cancelSession())
      .then(
        { type: "session.cancel_requested", reason: user, covers: ["run_a", "run_s"] },
        cancelRequested("run_a"),
        runSettled("run_a", cancelledBy(user), { turnId: "turn_a.1", text: "" }),
        runSettled("run_s", cancelledBy(user)),
      )
      .answers({
        kind: "stopping",
        runs: [
          { runId: "run_a", receipt: { kind: "stopping", since: 9, first: true } },
          { runId: "run_s", receipt: { kind: "withdrawn" } },
        ],
      });
  });
});

describe("cancel a run", () => {
  test("G10: the first request stops a live run from its own position", () => {
    given(...running("run_a"), accept("run_b"))
      .when(cancelRun("run_a"))
      .then(cancelRequested("run_a"))
      .answers({ kind: "stopping", since: 6, first: true });
  });

  test("G10: the second request gets the position of the first, and writes nothing", () => {
    given(...running("run_a"), accept("run_b"), cancelRun("run_a"))
      .when(cancelRun("run_a", policy))
      .then()
      .answers({ kind: "stopping", since: 6, first: false });
  });

  test("G8: a queued run is withdrawn, with its own outcome", { meta: { id: "G8/queued-run-withdrawn" } }, () => {
    given(...running("run_a"), accept("run_b"))
      .when(cancelRun("run_b", policy))
      .then(runSettled("run_b", cancelledBy(policy)))
      .answers({ kind: "withdrawn" });
  });

  test("a waiting steer is withdrawn", () => {
    given(...running("run_a"), steer("run_s"))
      .when(cancelRun("run_s"))
      .then(runSettled("run_s", cancelledBy(user)))
      .answers({ kind: "withdrawn" });
  });

  test("G10: an id that is not in the lane stops no run", () => {
    given(...running("run_a"), accept("run_b"))
      .when(cancelRun("run_x"))
      .then()
      .answers({ kind: "unknown" });
    given(...running("run_a"), steer("run_s"))
      .when(cancelRun("run_x"))
      .then()
      .answers({ kind: "unknown" });
    given(...running("run_a"), settleTurn("turn_a.1"))
      .when(cancelRun("run_a"))
      .then()
      .answers({ kind: "unknown" });
    givenNoSession().when(cancelRun("run_a")).then().answers({ kind: "unknown" });
  });

  test("a parked run has nothing to wait for: it settles at once, and its steers are queued", () => {
    const asked = given(...running("run_a"), steer("run_s"), park).when(cancelRun("run_a"));
    asked
      .then(
        cancelRequested("run_a"),
        runSettled("run_a", cancelledBy(user), { turnId: "turn_a.1", text: "" }),
        requeued("run_s"),
      )
      .answers({ kind: "stopping", since: 8, first: true });
    expect(asked.after.lane).toMatchObject({ live: undefined, steers: [], queue: [{ id: "run_s" }] });
  });

  test("G15: a run that is ending, but not settled, can still be cancelled", () => {
    given(...running("run_a"), call("call_a.1"), settleTurn("turn_a.1"))
      .when(cancelRun("run_a"))
      .then(cancelRequested("run_a"))
      .answers({ kind: "stopping", since: 7, first: true });
  });
});

describe("cancel by key", () => {
  const keyed = given(accept("run_a", { key: "ka" }), start, accept("run_b", { key: "kb" }), accept("run_c"));

  test("G7: the caller's key names the live run", () => {
    keyed
      .when(cancelKey("ka"))
      .then(cancelRequested("run_a"))
      .answers({ kind: "stopping", since: 7, first: true, runId: "run_a" });
  });

  test("G7: the caller's key names a queued run", () => {
    keyed
      .when(cancelKey("kb", policy))
      .then(runSettled("run_b", cancelledBy(policy), { key: "kb" }))
      .answers({ kind: "withdrawn", runId: "run_b" });
  });

  test("the key of a steer names the steer", () => {
    given(...running("run_a"), accept("run_s", { key: "ks", delivery: "steer" }))
      .when(cancelKey("ks"))
      .then(runSettled("run_s", cancelledBy(user), { key: "ks" }))
      .answers({ kind: "withdrawn", runId: "run_s" });
  });

  test("an unknown key stops no run", () => {
    keyed.when(cancelKey("kx")).then().answers({ kind: "unknown" });
    given().when(cancelKey("ka")).then().answers({ kind: "unknown" });
  });

  test("G10: a key with the content of its prompt does not name a run of another prompt", () => {
    const house = given(accept("run_a", { key: "ka", content: "one" }));
    house
      .when({ ...cancelKey("ka"), content: "other" })
      .then()
      .answers({ kind: "unknown" });
    house
      .when({ ...cancelKey("ka"), content: "one" })
      .then(runSettled("run_a", cancelledBy(user), { key: "ka" }))
      .answers({ kind: "withdrawn", runId: "run_a" });
  });
});

describe("cancel a call", () => {
  const calling = given(...running("run_a"), call("call_a.1"), call("call_a.2"));

  test("G9: it leaves the run and its siblings running", () => {
    const asked = calling.when(cancelCall("call_a.1"));
    asked.then(callCancelRequested).answers({ kind: "stopping", since: 7, first: true });
    expect(asked.after.lane.live).toMatchObject({
      phase: "running",
      turn: "turn_a.1",
      live: [
        { phase: "stopping", id: "call_a.1", reason: user, since: 7 },
        { phase: "running", id: "call_a.2" },
      ],
    });
  });

  test("G10: the second request gets the position of the first, and writes nothing", () => {
    calling
      .and(cancelCall("call_a.1"))
      .when(cancelCall("call_a.1", policy))
      .then()
      .answers({ kind: "stopping", since: 7, first: false });
  });

  test("a call of a stopping run is stopping with it", () => {
    calling
      .and(cancelRun("run_a"))
      .when(cancelCall("call_a.1", policy))
      .then()
      .answers({ kind: "stopping", since: 7, first: false });
  });

  test("a call that was cancelled before its run has been stopping since its own cancel", () => {
    calling
      .and(cancelCall("call_a.1"), cancelRun("run_a"))
      .when(cancelCall("call_a.1", policy))
      .then()
      .answers({ kind: "stopping", since: 7, first: false });
  });

  test("G10: a call that is not live is unknown, whether it settled, never was, or belongs to another run", () => {
    const unknown = { kind: "unknown" } as const;
    calling.and(settleCall("call_a.1")).when(cancelCall("call_a.1")).then().answers(unknown);
    calling.when(cancelCall("call_a.3")).then().answers(unknown);
    calling.when(cancelCall("call_b.1")).then().answers(unknown);
    given().when(cancelCall("call_a.1")).then().answers(unknown);
  });

  test("G9: a call of an ending run can be cancelled by id", () => {
    calling
      .and(settleTurn("turn_a.1"))
      .when(cancelCall("call_a.1"))
      .then(callCancelRequested)
      .answers({ kind: "stopping", since: 8, first: true });
  });
});

describe("close", () => {
  const reason = { kind: "closed" } as const;
  const closed = { type: "session.closed", reason } as const;

  test("an idle session is closed, and there was nothing to cancel", () => {
    given().when(close()).then(closed).answers({ kind: "idle", runs: [] });
  });

  test("G8: closing covers what a cancel would cover", () => {
    given(...running("run_a"), accept("run_b"))
      .when(close())
      .then(
        closed,
        { type: "session.cancel_requested", reason, covers: ["run_a", "run_b"] },
        cancelRequested("run_a", reason),
        runSettled("run_b", cancelledBy(reason)),
      )
      .answers({
        kind: "stopping",
        runs: [
          { runId: "run_a", receipt: { kind: "stopping", since: 8, first: true } },
          { runId: "run_b", receipt: { kind: "withdrawn" } },
        ],
      });
  });

  test("closing while the live run is being stopped leaves its reason", () => {
    const past = given(...running("run_a"), cancelRun("run_a"));
    past
      .when(close())
      .then(closed)
      .answers({
        kind: "stopping",
        runs: [{ runId: "run_a", receipt: { kind: "stopping", since: 5, first: false } }],
      });
    expect(past.and(close()).lane).toMatchObject({ phase: "closed", live: { reason: user } });
  });

  test("closing twice changes nothing", () => {
    given(close()).when(close()).then().answers({ kind: "idle", runs: [] });
  });

  test("G16: closing twice does not report idle while a run is still stopping", () => {
    given(...running("run_a"), close())
      .when(close())
      .then()
      .answers({
        kind: "stopping",
        runs: [{ runId: "run_a", receipt: { kind: "stopping", since: 7, first: false } }],
      });
  });

  test("a session that was never created is unknown", () => {
    givenNoSession().when(close()).then().answers({ kind: "unknown", runs: [] });
  });

  test("G8: in a closed session the live run still settles, and nothing starts after it", () => {
    const past = given(...running("run_a"), accept("run_b"), close(), settleTurn("turn_a.1"));
    expect(past.events.at(-1)).toEqual(runSettled("run_a", cancelledBy(reason), { turnId: "turn_a.1", text: "" }));
    expect(past.lane).toMatchObject({ phase: "closed", live: undefined, queue: [], steers: [] });
    expect(decide(past.lane, start)).toEqual({ events: [], answer: undefined });
  });
});

test("G15: work that completed in spite of its stop has completed, and the run is still cancelled", () => {
  const end = settleTurn("turn_a.1", { text: "all of it" });
  given(...running("run_a"), cancelRun("run_a"))
    .when(end)
    .then(
      { type: "turn.settled", runId: "run_a", turnId: "turn_a.1", outcome: completed, next: "end", text: "all of it" },
      runSettled("run_a", cancelledBy(user), { turnId: "turn_a.1", text: "all of it" }),
    )
    .answers("recorded");
});
