// A process that is left when its call ends is dying: from then on it belongs to the session, the outcomes of its call
// and run name it, and its end is recorded when it is reported.
import { describe, expect, test } from "vitest";
import {
  answer,
  ask,
  beginProcess,
  call,
  callSettled,
  cancelCall,
  cancelledBy,
  cancelProcess,
  cancelRequested,
  cancelRun,
  cancelSession,
  completed,
  failed,
  park,
  policy,
  processSettled,
  recover,
  running,
  runSettled,
  settleAsking,
  settleCall,
  settleTurn,
  stopProcess,
  user,
  wanted,
} from "../../../test/fixtures/commands.ts";
import { given } from "../../testing/given.ts";
import type { CancelReason, Outcome } from "../model/cancel.ts";
import type { ProcessId } from "../model/ids.ts";
import { covers } from "./covers.ts";
import { demandStops } from "./decide-process.ts";

/** call_a.1 has a process. */
const owned = given(...running("run_a"), call("call_a.1"), call("call_a.2"), beginProcess("call_a.1"));
/** The same, but the turn has requested its calls at its end. */
const byEnd = given(
  ...running("run_a"),
  settleAsking("turn_a.1", wanted("call_a.1", { idempotent: true })),
  beginProcess("call_a.1"),
);
const stopped = cancelledBy(user);
const first = "proc_1.1";

describe("G12, G19: a process that is left when its call ends is dying", () => {
  const two = owned.and(beginProcess("call_a.1"), beginProcess("call_a.2"), beginProcess());
  const parent = { kind: "parent", id: "call_a.1" } as const;
  const handed = (processId: ProcessId, dying: CancelReason) =>
    ({ type: "process.detached", processId, owner: "ses_1", feedback: "silent", dying }) as const;
  const naming = (outcome: Outcome, ...dying: ProcessId[]): Outcome => ({ ...outcome, dying }) as Outcome;

  test.each([
    ["completed", completed, two, parent, completed],
    ["failed", failed, two, parent, failed],
    ["was stopped", stopped, two.and(cancelCall("call_a.1")), user, naming(stopped, first, "proc_1.2")],
    ["completed although its run was stopped", completed, two.and(cancelRun("run_a", policy)), policy, completed],
  ] as const)("its call %s", (_, outcome, past, reason, recorded) => {
    past
      .when(settleCall("call_a.1", { outcome }))
      .then(handed(first, reason), handed("proc_1.2", reason), callSettled("call_a.1", recorded));
  });

  test("a process that was cancelled separately keeps its reason", () => {
    owned
      .and(cancelProcess(first, policy))
      .when(settleCall("call_a.1"))
      .then(handed(first, policy), callSettled("call_a.1"));
  });

  const other = settleCall("call_a.2", { outcome: stopped });
  const dying = owned.and(cancelRun("run_a"), settleCall("call_a.1", { outcome: stopped }), other);

  test("G15: its end is recorded when it is reported, is not fed back, and begins no run", () => {
    dying
      .and(settleTurn("turn_a.1", { outcome: stopped }))
      .when(stopProcess(first))
      .then(processSettled(first, stopped, { exit: { signal: "SIGTERM" } }))
      .answers("recorded");
  });

  test("the outcome of the run names exactly the processes that are still dying", () => {
    const named = naming(stopped, first);
    const { events } = dying.and(settleTurn("turn_a.1", { outcome: stopped }));
    expect(events.at(-1)).toEqual(runSettled("run_a", named, { turnId: "turn_a.1", text: "" }));
    const gone = dying.and(stopProcess(first), settleTurn("turn_a.1", { outcome: stopped }));
    expect(gone.events.at(-1)).toEqual(runSettled("run_a", stopped, { turnId: "turn_a.1", text: "" }));
  });

  test("the next stop of the session covers it", () => {
    const after = dying.and(settleTurn("turn_a.1", { outcome: stopped }));
    expect(covers(after.lane, cancelSession()).processes).toEqual([first]);
    after
      .when(cancelSession())
      .then()
      .answers({
        kind: "stopping",
        runs: [],
        processes: [{ processId: first, receipt: { kind: "stopping", since: 9, first: false } }],
      });
    expect(demandStops(after.lane)).toEqual([{ id: first, reason: user, alone: true }]);
  });

  test("G20: if its worker vanishes it ends as cancelled, for the reason of the stop", () => {
    const after = dying.and(settleTurn("turn_a.1", { outcome: stopped }));
    after.when(recover()).then(processSettled(first, stopped));
  });

  test("at a shutdown, and when a parked run is cancelled", () => {
    const shutdown = cancelledBy({ kind: "shutdown" });
    const { events } = owned.and(park);
    expect(events.slice(7, 9)).toEqual([
      handed(first, { kind: "shutdown" }),
      callSettled("call_a.1", naming(shutdown, first)),
    ]);
    byEnd
      .and(park)
      .when(cancelRun("run_a"))
      .then(
        cancelRequested("run_a"),
        handed(first, user),
        callSettled("call_a.1", naming(stopped, first)),
        runSettled("run_a", naming(stopped, first), { turnId: "turn_a.1", text: "" }),
      );
    byEnd
      .and(park)
      .when(cancelCall("call_a.1"))
      .then(
        { type: "call.cancel_requested", runId: "run_a", callId: "call_a.1", reason: user },
        handed(first, user),
        callSettled("call_a.1", naming(stopped, first)),
      );
  });

  test("G10: with the reason of the run's cancel, if its call ends as denied in the same step", () => {
    const past = byEnd.and(ask("call_a.1"), park, answer("ask_a.1", { kind: "denied" }));
    const { events } = past.and(cancelRun("run_a"));
    expect(events.at(-3)).toEqual(handed(first, user));
    expect(events.at(-2)).toMatchObject({ type: "call.settled", outcome: { kind: "failed", code: "denied" } });
  });
});

test("G12: a parked run that is cancelled names the processes of all its calls as dying", () => {
  const busy = given(...running("run_a"), call("call_a.1"), settleAsking("turn_a.1", wanted("call_a.2", {})));
  const parked = busy.and(beginProcess("call_a.1"), beginProcess("call_a.2"), park, cancelSession());
  const ended = parked.events.find(({ type }) => type === "run.settled");
  expect(ended).toMatchObject({ outcome: { kind: "cancelled", dying: ["proc_1.1", "proc_1.2"] } });
});
