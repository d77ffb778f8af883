// The history checker on processes and their results: the correct log has no findings, and each rule is broken once.
import { describe, expect, test } from "vitest";
import {
  accept,
  added,
  beginProcess,
  call,
  callRequested,
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
  failed,
  item,
  itemsTaken,
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
  settleFor,
  settleProcess,
  settleTurn,
  start,
  stopProcess,
  take,
  turnRequested,
  user,
  wanted,
  wokenRun,
} from "../../../test/fixtures/commands.ts";
import { type Given, given } from "../../testing/given.ts";
import { PROCESSES_LIVE_MAX } from "../limits.ts";
import type { CancelReason, Outcome } from "../model/cancel.ts";
import type { Event, Recorded } from "../model/event.ts";
import type { CallId, ProcessId, RunId, TurnId } from "../model/ids.ts";
import { verify, verifyAtRest } from "./verify.ts";

const recorded = (events: readonly Event[], first = 1): readonly Recorded[] =>
  events.map((event, index) => ({ ...event, seq: first + index, at: 0 }));
const names = (findings: readonly { readonly guarantee: string }[]) => findings.map((finding) => finding.guarantee);

/** The guarantees that the checker reports as broken. */
const broken = (...events: readonly Event[]): readonly string[] => names(verify(recorded(events)));
const brokenAtRest = (...events: readonly Event[]): readonly string[] => names(verifyAtRest(recorded(events)));

const first = "proc_1.1";
const second = "proc_1.2";
const stopped = cancelledBy(user);
const closing: CancelReason = { kind: "closed" };
const parent: Outcome = cancelledBy({ kind: "parent", id: "call_a.1" });

const created: Event = { type: "session.created", sessionId: "ses_1" };
const closed: Event = { type: "session.closed", reason: closing };
const sessionCancelled = (...covers: readonly RunId[]): Event => ({
  type: "session.cancel_requested",
  reason: user,
  covers,
});
const callCancelled = (callId: CallId, reason: CancelReason = user): Event => ({
  type: "call.cancel_requested",
  runId: "run_a",
  callId,
  reason,
});
const turnSettled = (turnId: TurnId, next: "turn" | "end", outcome: Outcome = completed): Event => ({
  type: "turn.settled",
  runId: "run_a",
  turnId,
  outcome,
  next,
});
const heard = (...ids: readonly ProcessId[]): Event => ({
  type: "call.settled",
  runId: "run_a",
  callId: "call_a.1",
  outcome: completed,
  heard: ids,
});
const parked: Event = { type: "run.parked", runId: "run_a" };
const told = (id: ProcessId, more: { wake?: true; heldBy?: CallId } = { wake: true }): Event => ({
  type: "inbox.added",
  item: item(id),
  processId: id,
  ...more,
});

/** run_a with its live first turn and two live calls. */
const { events: busy } = given(...running("run_a"), call("call_a.1"), call("call_a.2"));
/** call_a.1 has a process. */
const owned: readonly Event[] = [...busy, processRequested(first, "call_a.1")];
/** A background process of an otherwise idle session. */
const idle: readonly Event[] = [created, processRequested(first)];
/** The same in a busy session. */
const behind: readonly Event[] = [...busy, processRequested(first)];
const woken = wokenRun("run_1.w5");
/** call_a.1 has a process, and so has this call. */
const pair = (other: CallId): readonly Event[] => [...owned, processRequested(second, other)];
const processStarted = (processId: ProcessId): Event => ({
  type: "process.started",
  processId,
  pid: 1,
  tier: "A",
  profile: "open",
});

/** Runs the run that was begun for a result. */
function carriedOut(past: Given): Given {
  const begun = past.and(start);
  return begun.and(settleTurn(begun.lane.live?.turn ?? "turn_none.1"));
}

describe("a correct log has no findings", () => {
  const calling = given(...running("run_a"), call("call_a.1"), call("call_a.2"));
  const byEnd = given(
    ...running("run_a"),
    settleAsking("turn_a.1", wanted("call_a.1", { idempotent: true }), wanted("call_a.2")),
    beginProcess("call_a.1"),
    beginProcess("call_a.2"),
    beginProcess(),
  );
  const over = [settleCall("call_a.1"), settleCall("call_a.2"), settleTurn("turn_a.1")] as const;
  const clean: Readonly<Record<string, Given>> = {
    "processes of a call, one of them cancelled": calling.and(
      beginProcess("call_a.1"),
      noteProcess(first),
      beginProcess("call_a.1"),
      cancelProcess(second),
      settleProcess(first, { exit: { code: 1 } }),
      stopProcess(second),
      ...over,
    ),
    "processes that end with their call, whatever becomes of it": calling.and(
      beginProcess("call_a.1"),
      beginProcess("call_a.1"),
      beginProcess("call_a.2"),
      settleCall("call_a.1"),
      cancelCall("call_a.2"),
      settleCall("call_a.2", { outcome: stopped }),
      settleTurn("turn_a.1"),
      stopProcess(first),
      stopProcess(second),
      stopProcess("proc_1.3"),
    ),
    "one that could not be started": calling.and(
      beginProcess("call_a.1"),
      settleProcess(first, { failed: { code: "not_started", message: "No." } }),
      ...over,
    ),
    "stopped with its run, after its call was": calling.and(
      beginProcess("call_a.1"),
      beginProcess("call_a.2"),
      cancelCall("call_a.1", policy),
      cancelRun("run_a"),
      stopProcess(first),
      stopProcess(second),
      settleCall("call_a.1", { outcome: cancelledBy(policy) }),
      settleCall("call_a.2", { outcome: stopped }),
      settleTurn("turn_a.1"),
    ),
    "stopped with the last turn": calling.and(
      beginProcess("call_a.1"),
      beginProcess("call_a.2"),
      settleTurn("turn_a.1"),
      stopProcess(first),
      cancelProcess(second),
      settleCall("call_a.1"),
      settleCall("call_a.2"),
      stopProcess(second),
    ),
    "detached, and told at the next turn": calling.and(
      beginProcess("call_a.1", "silent"),
      detachProcess(first, "next-turn"),
      settleCall("call_a.1"),
      settleCall("call_a.2"),
      settleProcess(first),
      take("turn_a.1"),
      settleTurn("turn_a.1"),
    ),
    "two results, one run that nobody asked for": carriedOut(
      given(beginProcess(), beginProcess(), settleProcess(first), settleProcess(second)),
    ),
    "a result that waits for a run, for a queue and for a steer": given(
      ...running("run_a"),
      beginProcess(),
      accept("run_s", { delivery: "steer" }),
      settleProcess(first),
      settleTurn("turn_a.1"),
      start,
      settleTurn("turn_s.1"),
    ),
    "a result that wants a run, once what was queued is withdrawn": given(
      beginProcess(),
      accept("run_a"),
      settleProcess(first),
      cancelRun("run_a"),
      cancelSession(),
      accept("run_b"),
      start,
      settleTurn("turn_b.1"),
    ),
    "cancels of a session, with and without its background": carriedOut(
      calling.and(
        beginProcess("call_a.1"),
        beginProcess(),
        beginProcess(),
        settleProcess(second),
        cancelSessionOnly(),
        ...over,
        cancelSession(),
        settleProcess("proc_1.3"),
        stopProcess(first),
      ),
    ),
    "a cancel of a session whose run was being stopped": given(
      ...running("run_a"),
      beginProcess(),
      settleProcess(first),
      cancelRun("run_a"),
      cancelSession(),
      settleTurn("turn_a.1"),
    ),
    "the end of a session, and what was dropped with it": calling.and(
      beginProcess("call_a.1"),
      beginProcess(),
      beginProcess(),
      beginProcess("ses_1", "silent"),
      close(),
      ...over,
      settleProcess(second),
      stopProcess("proc_1.3"),
      settleProcess("proc_1.4"),
      stopProcess(first),
    ),
    "a result for a call that waits, told by it": calling.and(
      beginProcess(),
      settleFor("call_a.1", first),
      post("news"),
      take("turn_a.1"),
      settleCall("call_a.1", { heard: [first] }),
      settleCall("call_a.2"),
      settleTurn("turn_a.1"),
    ),
    "a result for a call that waited and said nothing": carriedOut(
      calling.and(beginProcess(), settleFor("call_a.1", first), ...over),
    ),
    "a crash, with processes of calls and of the session": byEnd.and(
      recover(),
      beginProcess("call_a.1"),
      recover(),
      settleCall("call_a.1"),
      settleTurn("turn_a.2"),
    ),
    "a crash of an idle session": carriedOut(given(beginProcess(), beginProcess(), recover())),
    "a crash while a call waited": calling.and(
      beginProcess(),
      settleFor("call_a.1", first),
      recover(),
      settleTurn("turn_a.2"),
    ),
    "a shutdown, then a crash, then a cancel": byEnd.and(park, recover(), park, cancelSession()),
  };
  test.each(Object.entries(clean))("%s", (_, { events }) => {
    expect(verifyAtRest(recorded(events))).toEqual([]);
  });

  test.each(Object.entries(clean))("nor if retention has shortened it: %s", (_, { events }) => {
    for (let from = 1; from < events.length; from += 1) {
      expect(names(verify(recorded(events.slice(from), 100)))).toEqual([]);
    }
  });
});

describe("a process that begins", () => {
  test("G3: in a session that is not open", () => {
    expect(broken(processRequested(first))).toEqual(["G3"]);
    expect(broken(created, closed, processRequested(first))).toEqual(["G3"]);
  });
  test("G11: after a cancel of its call or its run, or its last turn", () => {
    const begins = processRequested(first, "call_a.1");
    expect(broken(...busy, callCancelled("call_a.1"), begins)).toEqual(["G11"]);
    expect(broken(...busy, cancelRequested("run_a"), begins)).toEqual(["G11"]);
    expect(broken(...busy, sessionCancelled("run_a"), cancelRequested("run_a"), begins)).toEqual(["G11"]);
    expect(broken(...busy, turnSettled("turn_a.1", "end"), begins)).toEqual(["G11"]);
    expect(broken(...busy, callCancelled("call_a.2"), begins)).toEqual([]);
  });
  test("G19: of a call that is not live, or of another session: nothing would stop it", () => {
    expect(broken(created, processRequested(first, "call_a.1"))).toEqual(["G19"]);
    expect(broken(...busy, processRequested(first, "call_a.3"))).toEqual(["G19"]);
    expect(broken(...busy, processRequested(first, "call_b.1"))).toEqual(["G19"]);
    expect(broken(...busy, callSettled("call_a.1"), processRequested(first, "call_a.1"))).toEqual(["G19"]);
    expect(broken(created, processRequested(first, "ses_2"))).toEqual(["G19"]);
    const astray = [...busy, processRequested(first, "call_a.3")];
    expect(broken(...astray, processCancelled(first))).toEqual(["G19"]);
    expect(broken(...astray, processDetached(first))).toEqual(["G19"]);
  });
  test("G25: of a call whose run is parked", () => {
    const kept = callRequested(wanted("call_a.1", { idempotent: true }));
    const { events } = given(...running("run_a"));
    const down = [...events, turnSettled("turn_a.1", "turn"), kept, parked];
    expect(broken(...down, processRequested(first, "call_a.1"))).toEqual(["G25"]);
  });
  test("G10: with a number that was used already", () => {
    const silent = processRequested(first, "ses_1", "silent");
    expect(broken(created, silent, processSettled(first), silent)).toEqual(["G10"]);
    expect(broken(created, processRequested(second), processRequested(first))).toEqual(["G10"]);
  });
  test("G33: although too many are live", () => {
    const many = Array.from({ length: PROCESSES_LIVE_MAX }, (_, index) => processRequested(`proc_1.${index + 1}`));
    expect(broken(created, ...many)).toEqual([]);
    expect(broken(created, ...many, processRequested(`proc_1.${PROCESSES_LIVE_MAX + 1}`))).toEqual(["G33"]);
  });
  test("G16: and is recorded as started after it has ended, or without a request", () => {
    const started = processStarted(first);
    expect(broken(...idle, started)).toEqual([]);
    expect(broken(created, started)).toEqual(["G16"]);
    expect(broken(...owned, processSettled(first), started)).toEqual(["G16"]);
  });
});

describe("a process that is detached", () => {
  test("G16: after it has ended, or without a request", () => {
    expect(broken(...owned, processDetached(first))).toEqual([]);
    expect(broken(...busy, processDetached(first))).toEqual(["G16"]);
    expect(broken(...owned, processSettled(first), processDetached(first))).toEqual(["G16"]);
  });
  test("G9: although it was being stopped", () => {
    for (const cancel of [processCancelled(first), callCancelled("call_a.1"), cancelRequested("run_a")]) {
      expect(broken(...owned, cancel, processDetached(first))).toEqual(["G9"]);
    }
    expect(broken(...owned, turnSettled("turn_a.1", "end"), processDetached(first))).toEqual(["G9"]);
    expect(broken(...owned, callCancelled("call_a.2"), processDetached(first))).toEqual([]);
  });
  test("G19: to another session", () => {
    const detached: Event = { type: "process.detached", processId: first, owner: "ses_2", feedback: "wake" };
    expect(broken(...owned, detached)).toEqual(["G19"]);
  });
});

describe("a cancel of a process", () => {
  const cancel = processCancelled(first);
  test("G10: that was not live", () => {
    expect(broken(created, cancel)).toEqual(["G10"]);
    expect(broken(...owned, processSettled(first), cancel)).toEqual(["G10"]);
  });
  test("G10: a second time, or after one of its call or its run", () => {
    expect(broken(...idle, cancel, processCancelled(first, policy))).toEqual(["G10"]);
    expect(broken(...owned, callCancelled("call_a.1"), cancel)).toEqual(["G10"]);
    expect(broken(...owned, cancelRequested("run_a"), cancel)).toEqual(["G10"]);
    expect(broken(...owned, turnSettled("turn_a.1", "end"), cancel)).toEqual([]);
    expect(broken(...behind, cancelRequested("run_a"), cancel)).toEqual([]);
  });
  test("G9: that does not follow the end of its session at once", () => {
    const both: readonly Event[] = [...idle, processRequested(second), closed, sessionCancelled()];
    const cancels = [processCancelled(first, closing), processCancelled(second, closing)];
    const later = processStarted(first);
    expect(broken(...both, ...cancels, later)).toEqual([]);
    expect(broken(...both, processCancelled(first, closing), later)).toEqual(["G9"]);
    expect(broken(...idle, closed, later)).toEqual(["G9"]);
    expect(broken(...idle, closed, processSettled(first, completed, { dropped: true }))).toEqual(["G9"]);
    expect(broken(...idle, processCancelled(first), closed, later)).toEqual([]);
  });
});

describe("the end of a process", () => {
  test("G14: after it has ended, or without a request", () => {
    expect(broken(created, processSettled(first))).toEqual(["G14"]);
    expect(broken(...owned, processSettled(first), processSettled(first, lost))).toEqual(["G14"]);
  });
  test("G19: after that of its call", () => {
    expect(broken(...owned, callSettled("call_a.1"))).toEqual(["G19"]);
    expect(broken(...owned, processSettled(first), callSettled("call_a.1"))).toEqual([]);
    expect(broken(...owned, processDetached(first), callSettled("call_a.1"))).toEqual([]);
    expect(broken(...owned, callSettled("call_a.2"))).toEqual([]);
  });
  test("G20: after another worker has recovered its run", () => {
    const cut = [callSettled("call_a.1", lost), callSettled("call_a.2", lost), turnSettled("turn_a.1", "turn", lost)];
    expect(broken(...behind, ...cut, recovered("run_a", 2))).toEqual(["G20"]);
    expect(broken(...behind, processSettled(first, lost), told(first), ...cut, recovered("run_a", 2))).toEqual([]);
  });
  test("G24: that is missing", () => {
    expect(brokenAtRest(...idle)).toEqual(["G24"]);
    expect(brokenAtRest(...idle, processCancelled(first), processSettled(first, stopped))).toEqual([]);
  });
  test("G15: as cancelled, without a cancel", () => {
    expect(broken(...idle, processSettled(first, stopped))).toEqual(["G15"]);
    expect(broken(...behind, cancelRequested("run_a"), processSettled(first, stopped))).toEqual(["G15"]);
    expect(broken(...owned, processSettled(first, stopped), added(item("x")))).toEqual(["G15"]);
    expect(broken(...owned, processSettled(first, parent), added(item("x")))).toEqual(["G15"]);
    expect(broken(...owned, processSettled(first, parent), callSettled("call_a.2"))).toEqual(["G15"]);
    expect(broken(...owned, processSettled(first, parent), callCancelled("call_a.1"))).toEqual(["G15"]);
    expect(broken(...owned, processSettled(first, parent), processSettled(first))).toEqual(["G15", "G14"]);
    expect(broken(...pair("call_a.2"), processSettled(first, parent), processSettled(second))).toEqual(["G15"]);
    expect(broken(...pair("call_a.1"), processSettled(first, parent), processStarted(second))).toEqual(["G15"]);
    const shortened = recorded([...pair("call_a.1").slice(1), processSettled(first, parent), added(item("x"))], 100);
    expect(names(verify(shortened))).toEqual(["G15"]);
    expect(broken(...owned, callCancelled("call_a.2"), processSettled(first, parent), parked).at(0)).toBe("G15");
    expect(brokenAtRest(...owned, processSettled(first, parent))).toEqual(["G15", "G24"]);
  });
  test("G15: as cancelled, although neither it nor its call was stopped", () => {
    const shutdown = cancelledBy({ kind: "shutdown" });
    expect(broken(...owned, processSettled(first, shutdown), callSettled("call_a.1", shutdown))).toEqual(["G15"]);
    expect(broken(...owned, processSettled(first, parent), callSettled("call_a.1"))).toEqual(["G15"]);
  });
  test("G10: for another reason than the first", () => {
    const end = processSettled(first, cancelledBy(policy));
    expect(broken(...idle, processCancelled(first), end)).toEqual(["G10"]);
    expect(broken(...owned, callCancelled("call_a.1"), end)).toEqual(["G10"]);
    expect(broken(...owned, cancelRequested("run_a"), end)).toEqual(["G10"]);
    expect(broken(...owned, turnSettled("turn_a.1", "end"), end)).toEqual(["G10"]);
    expect(broken(...owned, callCancelled("call_a.1", policy), cancelRequested("run_a"), end)).toEqual([]);
    expect(broken(...owned, processCancelled(first, policy), callCancelled("call_a.1"), end)).toEqual([]);
  });
});

describe("the result of a process", () => {
  const ended: readonly Event[] = [...behind, processSettled(first)];

  test("G22: that is not reported at once", () => {
    for (const outcome of [completed, lost]) {
      expect(broken(...behind, processSettled(first, outcome), told(first))).toEqual([]);
      expect(broken(...behind, processSettled(first, outcome), added(item("x")))).toEqual(["G22"]);
    }
    expect(broken(...ended, callSettled("call_a.1"))).toEqual(["G22"]);
    expect(broken(...ended, processStarted(first))).toEqual(["G22", "G16"]);
    expect(brokenAtRest(...idle, processSettled(first))).toEqual(["G22"]);
  });
  test("G22: that is reported twice, or of a live process, or of another", () => {
    expect(broken(...ended, told(first), told(first))).toEqual(["G22"]);
    expect(broken(...behind, told(first))).toEqual(["G22"]);
    expect(broken(...behind, told(first, {}))).toEqual(["G22"]);
    expect(broken(...ended, told(second))).toEqual(["G22", "G22"]);
  });
  test("G22: of a process that was cancelled, could not be started, is silent, or belonged to a call", () => {
    expect(broken(...behind, processCancelled(first), processSettled(first, stopped), told(first))).toEqual(["G22"]);
    expect(broken(...behind, processSettled(first, failed), told(first))).toEqual(["G22"]);
    expect(broken(...owned, processSettled(first), told(first))).toEqual(["G22"]);
    const silent = processRequested(first, "ses_1", "silent");
    expect(broken(...busy, silent, processSettled(first), told(first))).toEqual(["G22"]);
  });
  test("G22: that begins a run or not, contrary to its feedback", () => {
    expect(broken(...ended, told(first, {}))).toEqual(["G22"]);
    const quiet = processRequested(first, "ses_1", "next-turn");
    expect(broken(...busy, quiet, processSettled(first), told(first))).toEqual(["G22"]);
    expect(broken(...busy, quiet, processSettled(first), told(first, {}))).toEqual([]);
    const detached = [...owned, processDetached(first, "next-turn"), processSettled(first)];
    expect(broken(...detached, told(first, {}))).toEqual([]);
    expect(broken(...busy, { type: "inbox.added", item: item("x"), wake: true })).toEqual(["G22"]);
  });
  test("G22: that is dropped without a reason, by a process without a result, or unrecorded", () => {
    const dropped = processSettled(first, completed, { dropped: true });
    const over: readonly Event[] = [...idle, closed, sessionCancelled(), processCancelled(first, closing)];
    expect(broken(...over, dropped)).toEqual([]);
    expect(broken(...over, processSettled(first))).toEqual(["G22"]);
    expect(broken(...over, processSettled(first, cancelledBy(closing), { dropped: true }))).toEqual(["G22"]);
    // Nor does it begin a run where none is begun any more.
    expect(broken(...over, processSettled(first), told(first), added(item("x")))).toEqual(["G22", "G22"]);
    expect(broken(...behind, dropped, told(first))).toEqual(["G22"]);
    const owns = [...busy, processRequested(first, "call_a.1")];
    expect(broken(...owns, dropped)).toEqual(["G22"]);
  });
});

test("G22: that was taken for the next turn of a run that ends instead", () => {
  const { events } = given(...running("run_a"));
  const taken = [...events, added(item("x")), turnSettled("turn_a.1", "turn"), itemsTaken("turn_a.2", item("x"))];
  expect(broken(...taken, turnRequested("run_a", "turn_a.2"))).toEqual([]);
  expect(broken(...taken, runSettled("run_a", completed))).toEqual(["G22", "G15"]);
});

describe("a result that is held", () => {
  const held: readonly Event[] = [...behind, processSettled(first), told(first, { heldBy: "call_a.1", wake: true })];
  const takes = itemsTaken("turn_a.1", item(first));

  test("G22: for a call that has stopped waiting", () => {
    expect(broken(...held)).toEqual([]);
    const late: Event = told(first, { heldBy: "call_a.9", wake: true });
    expect(broken(...behind, processSettled(first), late)).toEqual(["G22"]);
  });
  test("G22: and taken while that call is live", () => {
    expect(broken(...held, takes)).toEqual(["G22"]);
    expect(broken(...held, added(item("x")), itemsTaken("turn_a.1", item("x")))).toEqual([]);
    const later = [callSettled("call_a.1"), takes];
    expect(broken(...held, added(item("x")), itemsTaken("turn_a.1", item("x")), ...later)).toEqual([]);
  });
  test("G22: and not taken once that call has ended", () => {
    expect(broken(...held, callSettled("call_a.1"), takes)).toEqual([]);
    const next = [callSettled("call_a.2"), turnSettled("turn_a.1", "turn"), turnRequested("run_a", "turn_a.2")];
    expect(broken(...held, callSettled("call_a.1"), ...next)).toEqual(["G22"]);
    expect(broken(...held, heard(first), ...next)).toEqual([]);
    const quiet = [...busy, processRequested(first, "ses_1", "next-turn"), processSettled(first)];
    const over = [callSettled("call_a.1"), callSettled("call_a.2"), turnSettled("turn_a.1", "end")];
    const ended = [...quiet, told(first, { heldBy: "call_a.1" }), ...over, runSettled("run_a", completed)];
    expect(broken(...ended)).toEqual([]);
    expect(broken(...ended, takes)).toEqual(["G22"]);
  });
  test("G22: and reported again after the call has returned it", () => {
    expect(broken(...held, heard(first), takes)).toEqual(["G22"]);
    expect(broken(...held, heard(), takes)).toEqual([]);
  });
  test("G22: and returned by a call that did not complete", () => {
    for (const outcome of [failed, lost]) {
      expect(broken(...held, { ...heard(first), outcome } as Event)).toEqual(["G22"]);
    }
  });
  test("G22: and returned by a call before it exists, or of a process that never began", () => {
    expect(broken(...behind, heard(first))).toEqual(["G22"]);
    expect(broken(...behind, heard(second))).toEqual(["G22"]);
  });
});

describe("a run that a result begins", () => {
  const wakes: readonly Event[] = [...idle, processSettled(first), told(first)];
  const other: Event = { type: "run.accepted", runId: "run_b", prompt: { text: "b" }, delivery: "queue" };

  test("G22: that does not begin, or not at once", () => {
    expect(broken(...wakes, woken)).toEqual([]);
    expect(broken(...wakes, added(item("x")))).toEqual(["G22"]);
    expect(broken(...wakes, other)).toEqual(["G22"]);
    const beside = [...idle, processRequested(second), processSettled(first), told(first)];
    expect(broken(...beside, processStarted(second))).toEqual(["G22"]);
    expect(brokenAtRest(...wakes)).toEqual(["G22"]);
  });
  test("G22: that does not begin when the live run has ended, or the last waiting one", () => {
    const waiting = [...behind, processSettled(first), told(first)];
    const over = [callSettled("call_a.1"), callSettled("call_a.2"), turnSettled("turn_a.1", "end")];
    const ended = [...waiting, ...over, runSettled("run_a", completed)];
    expect(broken(...ended, woken)).toEqual([]);
    expect(broken(...ended, other)).toEqual(["G22"]);
    const queued = [created, processRequested(first), other, processSettled(first), told(first)];
    expect(broken(...queued, added(item("x")))).toEqual([]);
    expect(broken(...queued, runSettled("run_b", stopped), woken)).toEqual([]);
    const third: Event = { ...other, runId: "run_c" };
    const none = [runSettled("run_b", stopped), runSettled("run_c", stopped)];
    expect(broken(...queued, third, ...none, woken)).toEqual([]);
    expect(broken(...queued, runSettled("run_b", stopped), added(item("x")))).toEqual(["G22"]);
  });
  test("G22: that begins without a result, or while another run is waiting", () => {
    expect(broken(created, woken)).toEqual(["G22"]);
    expect(broken(created, added(item("x")), woken)).toEqual(["G22"]);
    expect(broken(...behind, processSettled(first), told(first), woken)).toEqual(["G22"]);
    expect(broken(created, processRequested(first), other, processSettled(first), told(first), woken)).toEqual(["G22"]);
  });
  test("G22: that begins a second time for the same result", () => {
    const again = [...wakes, woken, runSettled("run_1.w5", stopped)];
    expect(broken(...again)).toEqual([]);
    expect(broken(...again, wokenRun("run_1.w7"))).toEqual(["G22"]);
  });
  test("G22: that begins although the session was cancelled since", () => {
    const cut = [created, processRequested(first), other, processSettled(first), told(first)];
    const cancelled = [...cut, sessionCancelled("run_b"), runSettled("run_b", stopped)];
    expect(broken(...cancelled, added(item("x")))).toEqual([]);
    expect(broken(...cancelled, wokenRun("run_1.w8"))).toEqual(["G22"]);
  });
  test("may be missing in a session that was closed since", () => {
    const ended = [callSettled("call_a.1"), callSettled("call_a.2"), turnSettled("turn_a.1", "end")];
    const stop: Event = { type: "session.cancel_requested", covers: ["run_a"], reason: closing };
    const own: Event = { type: "run.cancel_requested", runId: "run_a", reason: closing };
    const cut = [closed, stop, own, ...ended, runSettled("run_a", cancelledBy(closing))];
    expect(brokenAtRest(...behind, processSettled(first), told(first), ...cut)).toEqual([]);
  });
  test("is one for all results of the same moment", () => {
    const two = [...idle, processRequested(second), processSettled(first, lost), told(first)];
    expect(broken(...two, processSettled(second, lost), told(second), wokenRun("run_1.w8"))).toEqual([]);
    expect(brokenAtRest(...two, processSettled(second, lost), told(second))).toEqual(["G22"]);
  });
});

test("a process whose request was removed is not reported", () => {
  const { events } = given(beginProcess("ses_1", "silent"), loseProcess(first));
  expect(verifyAtRest(recorded(events))).toEqual([]);
});
