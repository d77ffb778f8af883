// The policy of processes: which may begin, whose end ends them, and how they ended. (Who receives their results, and
// what begins a run, is in decide-wake.test.ts.)
import { describe, expect, test } from "vitest";
import {
  accept,
  beginProcess,
  call,
  callSettled,
  cancelCall,
  cancelledBy,
  cancelProcess,
  cancelRequested,
  cancelRun,
  cancelSession,
  cancelSessionOnly,
  close,
  completed,
  detachProcess,
  loseProcess,
  lost,
  noteProcess,
  park,
  policy,
  post,
  processCancelled,
  processDetached,
  processRequested,
  processSettled,
  recover,
  recovered,
  running,
  runSettled,
  settleAsking,
  settleCall,
  settleProcess,
  settleTurn,
  stopProcess,
  turnRequested,
  user,
  wanted,
} from "../../../test/fixtures/commands.ts";
import { given, givenNoSession } from "../../testing/given.ts";
import { INBOX_ITEMS_MAX, PROCESSES_LIVE_MAX } from "../limits.ts";
import type { CancelReason } from "../model/cancel.ts";
import { decide } from "./decide.ts";
import { demandStops } from "./decide-process.ts";

const calling = given(...running("run_a"), call("call_a.1"), call("call_a.2"));
/** call_a.1 has a process. */
const owned = calling.and(beginProcess("call_a.1"));
/** The same, but the turn has requested its calls at its end. */
const byEnd = given(
  ...running("run_a"),
  settleAsking("turn_a.1", wanted("call_a.1", { idempotent: true })),
  beginProcess("call_a.1"),
);
const background = given(beginProcess());
const stopped = cancelledBy(user);
const first = "proc_1.1";
const sessionCancelled = (reason: CancelReason = user, ...covers: readonly `run_${string}`[]) =>
  ({ type: "session.cancel_requested", reason, covers }) as const;
const times = <T>(count: number, make: (index: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, index) => make(index));

describe("a process begins", () => {
  test("of a live call, and of the session", () => {
    calling
      .when({ ...beginProcess("call_a.1", "silent"), command: ["ls", "-l"], cwd: "/tmp" })
      .then({
        type: "process.requested",
        processId: first,
        owner: "call_a.1",
        command: ["ls", "-l"],
        cwd: "/tmp",
        feedback: "silent",
      })
      .answers({ kind: "begun", processId: first });
    given().when(beginProcess()).then(processRequested(first)).answers({ kind: "begun", processId: first });
  });

  test("an id names one process, even after the one before it has ended", () => {
    const one = given(beginProcess("ses_1", "silent"), settleProcess(first));
    one.when(beginProcess()).then(processRequested("proc_1.2")).answers({ kind: "begun", processId: "proc_1.2" });
    one
      .and(beginProcess("ses_1", "silent"), settleProcess("proc_1.2"))
      .when(beginProcess())
      .then(processRequested("proc_1.3"))
      .answers({ kind: "begun", processId: "proc_1.3" });
  });

  test("its pid and tier are recorded once it has started, while it is live", () => {
    background
      .when(noteProcess(first))
      .then({ type: "process.started", processId: first, pid: 7, tier: "A", profile: "open" })
      .answers(undefined);
    background.and(settleProcess(first)).when(noteProcess(first)).then().answers(undefined);
    given().when(noteProcess(first)).then();
  });

  test("G3: not in a session that was never created, nor in a closed one", () => {
    givenNoSession()
      .when(beginProcess())
      .then()
      .answers({ kind: "refused", code: "not_found", message: "There is no session ses_1." });
    given(close())
      .when(beginProcess())
      .then()
      .answers({ kind: "refused", code: "closed", message: "Session ses_1 is closed." });
  });

  test.each([
    ["that is being stopped", calling.and(cancelCall("call_a.1"))],
    ["whose run is being stopped", calling.and(cancelRun("run_a"))],
    ["whose run is ending", calling.and(settleTurn("turn_a.1"))],
    ["that has ended", calling.and(settleCall("call_a.1"))],
    ["that a parked run has kept", byEnd.and(park)],
    ["of another run", given(...running("run_b"))],
    ["of nobody", given()],
  ] as const)("G11: not of a call %s", (_, past) => {
    past
      .when(beginProcess("call_a.1"))
      .then()
      .answers({ kind: "refused", code: "busy", message: "call_a.1 begins nothing new." });
  });

  test("of the session, by a live turn only", () => {
    const byTurn = { ...beginProcess(), by: "turn_a.1" } as const;
    given(...running("run_a"))
      .when(byTurn)
      .then(processRequested(first));
    for (const past of [
      calling.and(cancelRun("run_a")),
      calling.and(settleTurn("turn_a.1", { next: "turn" })),
      given(),
    ]) {
      past.when(byTurn).then().answers({ kind: "refused", code: "busy", message: "turn_a.1 begins nothing new." });
    }
  });

  test("G11: a cancel of one call does not prevent another from starting a process", () => {
    calling.and(cancelCall("call_a.2")).when(beginProcess("call_a.1")).then(processRequested(first, "call_a.1"));
  });

  test("G33: up to the limit of one session, and no more until one has ended", () => {
    const full = given(...times(PROCESSES_LIVE_MAX, () => beginProcess("ses_1", "silent")));
    full.when(beginProcess()).then().answers({
      kind: "refused",
      code: "overloaded",
      message: "ses_1 has 64 live processes; that is the limit.",
    });
    full
      .and(settleProcess("proc_1.7"))
      .when(beginProcess())
      .then(processRequested(`proc_1.${PROCESSES_LIVE_MAX + 1}`));
  });

  test("G33: not if the inbox has no room for its result, and nothing takes a reserved place", () => {
    const full = given(...times(INBOX_ITEMS_MAX - 1, (index) => post(`${index}`)), beginProcess("ses_1", "next-turn"));
    const message = "The inbox of ses_1 is full: it has no room for the result of this process.";
    full.when(beginProcess()).then().answers({ kind: "refused", code: "queue_full", message });
    full.when(post("more")).then().answers({
      kind: "refused",
      code: "queue_full",
      message: "99 items wait in the inbox of ses_1; it has no room for more.",
    });
    const told = full.and(settleProcess(first));
    expect(told.lane.inbox).toHaveLength(INBOX_ITEMS_MAX);
    told.when(beginProcess()).then();
    full.and(cancelProcess(first), stopProcess(first)).when(beginProcess()).then(processRequested("proc_1.2"));
  });
});

describe("G15: how a process ended", () => {
  test.each([
    ["completed", { exit: { code: 0 } }],
    ["completed, whatever its exit code says", { exit: { code: 3 }, durationMs: 12 }],
    ["completed, by a signal that was not ours", { exit: { signal: "SIGSEGV" } }],
  ] as const)("%s", (_, { ...end }) => {
    const { exit, ...rest } = end;
    const more = "durationMs" in rest ? { exit, durationMs: rest.durationMs } : { exit };
    owned
      .when(settleProcess(first, end))
      .then(processSettled(first, completed, more))
      .answers("recorded");
  });

  test("failed, without a result for the model: Belay sent a signal, but no stop is recorded", () => {
    expect(decide(background.lane, stopProcess(first)).events).toMatchObject([{ outcome: { code: "stopped" } }]);
  });

  test("failed: it could not be started", () => {
    const failure = { code: "not_started", message: "There is no program make." };
    owned.when(settleProcess(first, { failed: failure })).then(processSettled(first, { kind: "failed", ...failure }));
    const stopping = owned.and(cancelProcess(first));
    stopping
      .when(settleProcess(first, { failed: failure }))
      .then(processSettled(first, { kind: "failed", ...failure }));
  });

  test("lost: nothing is known of its end", () => {
    owned.when(loseProcess(first)).then(processSettled(first, lost)).answers("recorded");
  });

  test("with all known fields", () => {
    const output = { bytes: 3, stdoutBytes: 2, stderrBytes: 1, tail: "ok", dir: "out/1" };
    owned
      .when(settleProcess(first, { exit: { code: 1 }, durationMs: 5, output, escaped: [] }))
      .then(processSettled(first, completed, { exit: { code: 1 }, durationMs: 5, output }));
  });

  test("a cancel, then a signal, then its end: cancelled", () => {
    owned
      .and(cancelProcess(first))
      .when(stopProcess(first))
      .then(processSettled(first, stopped, { exit: { signal: "SIGTERM" } }));
  });

  test("a cancel after it had ended, before a signal was sent: completed", () => {
    owned
      .and(cancelProcess(first))
      .when(settleProcess(first))
      .then(processSettled(first, completed, { exit: { code: 0 } }));
  });

  test("its end, then a cancel: too late, as the receipt reports", () => {
    const over = owned.and(settleProcess(first));
    over.when(cancelProcess(first)).then().answers({ kind: "unknown" });
    over.when(stopProcess(first)).then().answers("late");
  });

  test("G12: survivors of the stop ladder are named", () => {
    owned
      .and(cancelProcess(first))
      .when({ type: "settle-process", end: { processId: first, stopped: true, escaped: [8, 9] } })
      .then(
        processSettled(first, { kind: "cancelled", reason: user, abandoned: ["pid 8", "pid 9"] }, { escaped: [8, 9] }),
      );
  });

  test.each([
    ["its call", owned.and(cancelCall("call_a.1", policy)), policy],
    ["its run", owned.and(cancelRun("run_a", policy)), policy],
    ["its session", owned.and(cancelSession(policy)), policy],
    ["the last turn of its run", owned.and(settleTurn("turn_a.1")), { kind: "parent", id: "run_a" }],
    [
      "something more urgent",
      owned.and(accept("run_i", { delivery: "interrupt" })),
      { kind: "superseded", by: "run_i" },
    ],
  ] as const)("G9: a cancel of its owner reaches it without a separate event: %s", (_, past, reason) => {
    expect(past.events.filter(({ type }) => type === "process.cancel_requested")).toEqual([]);
    expect(demandStops(past.lane)).toEqual([{ id: first, reason, alone: false }]);
    past.when(stopProcess(first)).then(processSettled(first, cancelledBy(reason), { exit: { signal: "SIGTERM" } }));
    past.when(settleProcess(first)).then(processSettled(first, completed, { exit: { code: 0 } }));
  });

  test("G9: a cancel of another call does not reach it", () => {
    expect(demandStops(owned.and(cancelCall("call_a.2")).lane)).toEqual([]);
  });
});

describe("a cancel of one process", () => {
  test("G10: is recorded once, and the first reason is kept", () => {
    owned.when(cancelProcess(first)).then(processCancelled(first)).answers({ kind: "stopping", since: 8, first: true });
    owned
      .and(cancelProcess(first))
      .when(cancelProcess(first, policy))
      .then()
      .answers({ kind: "stopping", since: 8, first: false });
    const later = owned.and(cancelProcess(first), cancelCall("call_a.1", policy), cancelRun("run_a", policy));
    expect(demandStops(later.lane)).toEqual([{ id: first, reason: user, alone: false }]);
  });

  test("G10: is not recorded if its call or its run was being stopped already", () => {
    const receipt = { kind: "stopping", since: 8, first: false } as const;
    for (const past of [owned.and(cancelCall("call_a.1", policy)), owned.and(cancelRun("run_a", policy))]) {
      past.when(cancelProcess(first)).then().answers(receipt);
      expect(demandStops(past.lane)).toEqual([{ id: first, reason: policy, alone: false }]);
    }
    const both = owned.and(cancelCall("call_a.1", policy), cancelRun("run_a"));
    both.when(cancelProcess(first)).then().answers(receipt);
    expect(demandStops(both.lane)).toEqual([{ id: first, reason: policy, alone: false }]);
  });

  test("G10: a process that was cancelled before its call is stopping since its own cancel", () => {
    owned
      .and(cancelProcess(first), cancelCall("call_a.1", policy))
      .when(cancelProcess(first, policy))
      .then()
      .answers({ kind: "stopping", since: 8, first: false });
  });

  test("G9: is recorded while another call, or a run it does not belong to, is being stopped", () => {
    const other = calling.and(beginProcess("call_a.2"), cancelCall("call_a.1"));
    const behind = calling.and(beginProcess(), cancelRun("run_a"));
    for (const past of [other, behind]) {
      expect(demandStops(past.lane)).toEqual([]);
      past
        .when(cancelProcess(first))
        .then(processCancelled(first))
        .answers({ kind: "stopping", since: 9, first: true });
    }
  });

  test("is recorded in a run that is ending: that is not a cancel", () => {
    const past = owned.and(settleTurn("turn_a.1"));
    past.when(cancelProcess(first)).then(processCancelled(first)).answers({ kind: "stopping", since: 9, first: true });
    expect(demandStops(past.and(cancelProcess(first)).lane)).toEqual([{ id: first, reason: user, alone: false }]);
  });

  test("G9: leaves its call and its siblings running", () => {
    const past = owned.and(beginProcess("call_a.1"), cancelProcess(first));
    expect(demandStops(past.lane)).toEqual([{ id: first, reason: user, alone: true }]);
    expect(past.lane.live?.live).toMatchObject([{ phase: "running" }, { phase: "running" }]);
    past.when(beginProcess("call_a.1")).then(processRequested("proc_1.3", "call_a.1"));
  });

  test("G10: of a process that does not exist changes nothing", () => {
    for (const id of ["proc_1.2", "proc_2.1"] as const) {
      owned.when(cancelProcess(id)).then().answers({ kind: "unknown" });
    }
  });
});

describe("a background process", () => {
  test("is covered by a cancel of its session, with its own receipt", () => {
    background
      .when(cancelSession())
      .then(sessionCancelled(), processCancelled(first))
      .answers({
        kind: "stopping",
        runs: [],
        processes: [{ processId: first, receipt: { kind: "stopping", since: 4, first: true } }],
      });
    owned
      .and(beginProcess(), beginProcess(), cancelProcess("proc_1.2", policy))
      .when(cancelSession())
      .then(sessionCancelled(user, "run_a"), cancelRequested("run_a"), processCancelled("proc_1.3"))
      .answers({
        kind: "stopping",
        runs: [{ runId: "run_a", receipt: { kind: "stopping", since: 12, first: true } }],
        processes: [
          { processId: "proc_1.2", receipt: { kind: "stopping", since: 10, first: false } },
          { processId: "proc_1.3", receipt: { kind: "stopping", since: 13, first: true } },
        ],
      });
  });

  test("G10: has the position of its cancel in the receipt, for each process", () => {
    given(beginProcess(), beginProcess())
      .when(cancelSession())
      .then(sessionCancelled(), processCancelled(first), processCancelled("proc_1.2"))
      .answers({
        kind: "stopping",
        runs: [],
        processes: [
          { processId: first, receipt: { kind: "stopping", since: 5, first: true } },
          { processId: "proc_1.2", receipt: { kind: "stopping", since: 6, first: true } },
        ],
      });
  });

  test("G10: is not covered a second time", () => {
    background
      .and(cancelSession())
      .when(cancelSession(policy))
      .then()
      .answers({
        kind: "stopping",
        runs: [],
        processes: [{ processId: first, receipt: { kind: "stopping", since: 4, first: false } }],
      });
  });

  test("keeps running if the cancel asks for it", () => {
    background.when(cancelSessionOnly()).then().answers({ kind: "idle", runs: [] });
    const past = given(beginProcess(), ...running("run_a"));
    past
      .when(cancelSessionOnly())
      .then(sessionCancelled(user, "run_a"), cancelRequested("run_a"))
      .answers({
        kind: "stopping",
        runs: [{ runId: "run_a", receipt: { kind: "stopping", since: 7, first: true } }],
      });
    expect(demandStops(past.and(cancelSessionOnly()).lane)).toEqual([]);
  });

  test("a cancel of the session says `withdrawn` only if nothing has to be stopped", () => {
    given(accept("run_a"))
      .when(cancelSession())
      .answers({
        kind: "withdrawn",
        runs: [{ runId: "run_a", receipt: { kind: "withdrawn" } }],
      });
    background
      .and(accept("run_a"))
      .when(cancelSession())
      .then(sessionCancelled(user, "run_a"), runSettled("run_a", stopped), processCancelled(first))
      .answers({
        kind: "stopping",
        runs: [{ runId: "run_a", receipt: { kind: "withdrawn" } }],
        processes: [{ processId: first, receipt: { kind: "stopping", since: 6, first: true } }],
      });
  });

  test("G10: has the position of its cancel in the receipt, even after the calls of a parked run", () => {
    const past = byEnd.and(beginProcess(), park);
    const { events } = past.when(cancelSession()).after;
    const at = events.findIndex(({ type }) => type === "process.cancel_requested");
    past.when(cancelSession()).answers({
      kind: "stopping",
      runs: [{ runId: "run_a", receipt: { kind: "stopping", since: past.lane.head + 2, first: true } }],
      processes: [{ processId: "proc_1.2", receipt: { kind: "stopping", since: at + 1, first: true } }],
    });
  });

  test("ends with its session when that is closed", () => {
    background
      .when(close())
      .then(
        { type: "session.closed", reason: { kind: "closed" } },
        sessionCancelled({ kind: "closed" }),
        processCancelled(first, { kind: "closed" }),
      )
      .answers({
        kind: "stopping",
        runs: [],
        processes: [{ processId: first, receipt: { kind: "stopping", since: 5, first: true } }],
      });
  });

  test("G9: is not covered by a cancel of the run or call that started it", () => {
    const past = owned.and(detachProcess(first));
    for (const cancel of [cancelCall("call_a.1"), cancelRun("run_a")]) {
      expect(demandStops(past.and(cancel).lane)).toEqual([]);
    }
    expect(demandStops(past.and(cancelSession()).lane)).toEqual([{ id: first, reason: user, alone: true }]);
  });
});

describe("a process is detached", () => {
  test("it belongs to its session from now on", () => {
    owned.when(detachProcess(first)).then(processDetached(first)).answers("recorded");
    const past = owned.and(detachProcess(first, "next-turn"));
    expect(past.lane.processes.live).toEqual([
      { phase: "running", id: first, owner: "ses_1", feedback: "next-turn", title: "make" },
    ]);
    past.when(settleCall("call_a.1")).then(callSettled("call_a.1"));
  });

  test.each([
    ["it", owned.and(cancelProcess(first))],
    ["its call", owned.and(cancelCall("call_a.1"))],
    ["its run", owned.and(cancelRun("run_a"))],
    ["its session", owned.and(cancelSession())],
    ["its session, which is closed", owned.and(close())],
    ["the last turn of its run ends", owned.and(settleTurn("turn_a.1"))],
  ] as const)("G9: not once it is being stopped: %s", (_, past) => {
    past.when(detachProcess(first)).then().answers("late");
  });

  test("not once it has ended", () => {
    owned.and(settleProcess(first)).when(detachProcess(first)).then().answers("late");
  });

  test("and then cancelled: it is stopped as a background process", () => {
    owned
      .and(detachProcess(first))
      .when(cancelProcess(first))
      .then(processCancelled(first))
      .answers({ kind: "stopping", since: 9, first: true });
  });
});

describe("a worker vanishes", () => {
  test("G20: its processes end before any other event", () => {
    const turnLost = { type: "turn.settled", runId: "run_a", turnId: "turn_a.1", outcome: lost, next: "turn" } as const;
    owned
      .and(beginProcess("ses_1", "silent"), beginProcess("call_a.2"), cancelProcess("proc_1.3", policy))
      .when(recover())
      .then(
        processSettled(first, lost),
        processSettled("proc_1.2", lost),
        processSettled("proc_1.3", cancelledBy(policy)),
        callSettled("call_a.1", lost),
        callSettled("call_a.2", lost),
        turnLost,
        recovered("run_a", 2),
        turnRequested("run_a", "turn_a.2"),
      );
  });

  test("even if no run was live", () => {
    given(beginProcess("ses_1", "silent")).when(recover()).then(processSettled(first, lost));
    background.and(cancelSession()).when(recover()).then(processSettled(first, stopped));
  });

  test.each([
    ["its call", owned.and(cancelCall("call_a.1", policy)), policy],
    ["its run", owned.and(cancelRun("run_a", policy)), policy],
    ["the last turn of its run", owned.and(settleTurn("turn_a.1")), { kind: "parent", id: "run_a" }],
  ] as const)("G15: one that was being stopped with %s is cancelled, not lost", (_, past, reason) => {
    const [settled] = past.when(recover()).after.events.slice(past.events.length);
    expect(settled).toEqual(processSettled(first, cancelledBy(reason)));
  });

  test("G25: an idempotent call is kept, its process is not", () => {
    byEnd.when(recover()).then(processSettled(first, lost), recovered("run_a", 2));
    const again = byEnd.and(recover());
    again.when(beginProcess("call_a.1")).then(processRequested("proc_1.2", "call_a.1"));
    const parked = byEnd.and(park);
    parked.when(recover()).then(processSettled(first, lost), recovered("run_a", 1));
  });

  test("G25: a recovery that is cut off leaves nothing to lose", {
    meta: { id: "G25/recovery-itself-interrupted" },
  }, () => {
    given(beginProcess("ses_1", "silent"), recover()).when(recover()).then();
  });
});

describe("a lasting process", () => {
  const lasting = given({ ...beginProcess("ses_1", "silent"), lasting: true });

  test("is not stopped by a cancel of the session, even if it is the only one", () => {
    lasting.when(cancelSession()).then().answers({ kind: "idle", runs: [] });
    lasting.and(beginProcess()).when(cancelSession()).then(sessionCancelled(), processCancelled("proc_1.2", user));
  });

  test("G19: is stopped with the session, and by its own cancel", () => {
    lasting.when(cancelProcess(first)).then(processCancelled(first, user));
    const reason = { kind: "closed" } as const;
    lasting
      .when(close())
      .then({ type: "session.closed", reason }, sessionCancelled(reason), processCancelled(first, reason));
  });
});
