// The policy of results of background processes: who receives them, once; and which begin a run.
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
  failed,
  item,
  itemsTaken,
  loseProcess,
  lost,
  park,
  policy,
  post,
  processRequested,
  processSettled,
  recover,
  recovered,
  requeued,
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
import { INBOX_ITEMS_MAX } from "../limits.ts";
import type { Event } from "../model/event.ts";
import type { ProcessId, Work } from "../model/ids.ts";
import type { InboxItem } from "../model/inbox.ts";
import { feedbackItem, titleOf } from "../model/process.ts";

const told = (id: ProcessId): InboxItem => ({
  kind: "result",
  text: `The background process ${id} (make) ended by itself with exit code 0.`,
  data: { processId: id, outcome: "completed", code: 0 },
});
const gone = (id: ProcessId): InboxItem => ({
  kind: "result",
  text: `The background process ${id} (make) ended with the server that ran it. How far it got is unknown.`,
  data: { processId: id, outcome: "lost" },
});
const over = (id: ProcessId) => processSettled(id, completed, { exit: { code: 0 } });
const fed = (id: ProcessId, more: { wake?: true; heldBy?: Work } = { wake: true }, result = told(id)): Event => ({
  type: "inbox.added",
  item: result,
  processId: id,
  ...more,
});
const [first, second] = ["proc_1.1", "proc_1.2"] as const;
const stopped = cancelledBy(user);
const turnSettled = { type: "turn.settled", runId: "run_a", turnId: "turn_a.1", outcome: completed, text: "" } as const;

const live = given(...running("run_a"));
/** A run with a live turn and a live call, and a background process. */
const busy = live.and(call("call_a.1"), beginProcess());
/** The call waits for the background process, which has ended now. */
const held = busy.and(settleFor("call_a.1", first));
const kept = live.and(settleAsking("turn_a.1", wanted("call_a.1", { idempotent: true })), beginProcess());
const idle = given(beginProcess());
const wakesIn = ({ events }: Given) => events.filter((event) => event.type === "run.accepted" && event.wake === true);
const takenIn = ({ events }: Given) => events.flatMap((event) => (event.type === "inbox.taken" ? event.items : []));

describe("G22: a background process reports its result once", () => {
  test.each([
    ["wake", { wake: true }],
    ["next-turn", {}],
  ] as const)("to the inbox, after its end: %s", (feedback, more) => {
    live
      .and(beginProcess("ses_1", feedback))
      .when(settleProcess(first))
      .then(over(first), fed(first, more))
      .answers("recorded");
    live
      .and(beginProcess("ses_1", feedback))
      .when(loseProcess(first))
      .then(processSettled(first, lost), fed(first, more, gone(first)));
  });

  test("even if it was begun in a call and detached", () => {
    const past = live.and(call("call_a.1"), beginProcess("call_a.1", "silent"), detachProcess(first, "next-turn"));
    past.when(settleProcess(first)).then(over(first), fed(first, {}));
  });

  test("not if it is silent, nor if it belongs to a call", () => {
    live.and(beginProcess("ses_1", "silent")).when(settleProcess(first)).then(over(first));
    live.and(call("call_a.1"), beginProcess("call_a.1")).when(settleProcess(first)).then(over(first));
  });

  test("not if it was cancelled, nor if it could not be started", () => {
    busy
      .and(cancelProcess(first))
      .when(stopProcess(first))
      .then(processSettled(first, stopped, { exit: { signal: "SIGTERM" } }));
    const failure = { code: "not_started", message: "There is no program make." };
    busy.when(settleProcess(first, { failed: failure })).then(processSettled(first, { kind: "failed", ...failure }));
  });

  test("if it had ended before the cancel reached it", () => {
    busy.and(cancelProcess(first)).when(settleProcess(first)).then(over(first), fed(first));
    busy.and(settleProcess(first)).when(cancelProcess(first)).then().answers({ kind: "unknown" });
  });

  test("not twice: a second end is late", () => {
    for (const again of [settleProcess(first), stopProcess(first), loseProcess(first)]) {
      busy.and(settleProcess(first)).when(again).then().answers("late");
    }
  });

  test("not to a closed session, whose log records the drop", () => {
    const closing = idle.and(close());
    const drop = { dropped: true } as const;
    closing.when(settleProcess(first)).then(processSettled(first, completed, { exit: { code: 0 }, ...drop }));
    closing.when(loseProcess(first)).then(processSettled(first, lost, drop));
    const why = { kind: "closed" } as const;
    closing.when(stopProcess(first)).then(processSettled(first, cancelledBy(why), { exit: { signal: "SIGTERM" } }));
    const silent = given(beginProcess("ses_1", "silent"), close());
    silent.when(settleProcess(first)).then(over(first));
  });

  test("after a crash, as unknown", () => {
    live
      .and(beginProcess("ses_1", "next-turn"))
      .when(recover())
      .then(
        processSettled(first, lost),
        fed(first, {}, gone(first)),
        { type: "turn.settled", runId: "run_a", turnId: "turn_a.1", outcome: lost, next: "turn" },
        recovered("run_a", 2),
        itemsTaken("turn_a.2", gone(first)),
        turnRequested("run_a", "turn_a.2"),
      );
    const closed = idle.and(close()).when(recover()).after;
    expect(closed.events.at(-1)).toEqual(processSettled(first, cancelledBy({ kind: "closed" })));
  });
});

describe("the text", () => {
  const one = { phase: "running", id: first, owner: "ses_1", feedback: "wake", title: "make -j 8" } as const;
  const output = { bytes: 12, stdoutBytes: 12, stderrBytes: 0, tail: "all built", dir: "out/1" };

  test("has the outcome, the duration, and the end of the output", () => {
    const end = { processId: first, exit: { code: 2 }, durationMs: 1_234, output };
    expect(feedbackItem(one, end, completed)).toEqual({
      kind: "result",
      text:
        "The background process proc_1.1 (make -j 8) ended by itself with exit code 2 after 1.2 s. " +
        "It wrote 12 bytes.\nThe end of its output:\nall built",
      data: { processId: first, outcome: "completed", code: 2, durationMs: 1_234, bytes: 12 },
    });
  });

  test("names a signal, and an empty output", () => {
    const silence = { bytes: 0, stdoutBytes: 0, stderrBytes: 0, tail: "" };
    const end = { processId: first, exit: { signal: "SIGSEGV" }, output: silence };
    expect(feedbackItem(one, end, completed)).toEqual({
      kind: "result",
      text: "The background process proc_1.1 (make -j 8) was ended by SIGSEGV. It wrote nothing.",
      data: { processId: first, outcome: "completed", signal: "SIGSEGV", bytes: 0 },
    });
  });

  test("reports an unknown exit code", () => {
    expect(feedbackItem(one, { processId: first }, completed)).toEqual({
      kind: "result",
      text: "The background process proc_1.1 (make -j 8) ended by itself with exit code unknown.",
      data: { processId: first, outcome: "completed" },
    });
  });

  test("names the command on one line, cut to a readable length", () => {
    expect(titleOf(["git", "commit", "-m", "one\ntwo"])).toBe("git commit -m one two");
    expect(titleOf("  ls\t-l \n")).toBe("ls -l");
    expect(titleOf("ls \t\n  -l")).toBe("ls -l");
    const long = titleOf(`echo ${"x".repeat(200)}`);
    expect(long).toHaveLength(120);
    expect(long.endsWith("x…")).toBe(true);
    expect(titleOf("y".repeat(120))).toBe("y".repeat(120));
    expect(titleOf(`${"x".repeat(118)}😀${"x".repeat(9)}`).isWellFormed()).toBe(true);
  });
});

describe("G22: a waiter that received a result does not receive it again", () => {
  test("the result is held for the call that waits", () => {
    busy.when(settleFor("call_a.1", first)).then(over(first), fed(first, { heldBy: "call_a.1", wake: true }));
  });

  test("not for a call that has ended by now, or never existed", () => {
    busy.and(settleCall("call_a.1")).when(settleFor("call_a.1", first)).then(over(first), fed(first));
    const other = busy.and(call("call_a.2"), settleCall("call_a.1"));
    other.when(settleFor("call_a.1", first)).then(over(first), fed(first));
    idle.when(settleFor("call_a.1", first)).then(over(first), fed(first), wokenRun("run_1.w5"));
  });

  test("while it is held no turn takes it; other items are taken", () => {
    held.when(take("turn_a.1")).then().answers([]);
    const more = held.and(post("news"));
    more.when(take("turn_a.1")).then(itemsTaken("turn_a.1", item("news")));
    expect(more.and(take("turn_a.1")).lane.inbox).toMatchObject([{ processId: first, heldBy: "call_a.1" }]);
    // Another turn cannot begin while the call is live, so no other receiver exists.
    held.when(settleTurn("turn_a.1", { next: "turn" })).then({ ...turnSettled, next: "turn" });
  });

  test("once the call has returned it, it is removed", () => {
    const past = held.and(settleTurn("turn_a.1", { next: "turn" }));
    past
      .when(settleCall("call_a.1", { heard: [first] }))
      .then({ ...callSettled("call_a.1"), heard: [first] } as Event, turnRequested("run_a", "turn_a.2"));
    expect(past.and(settleCall("call_a.1", { heard: [first] })).lane.inbox).toEqual([]);
  });

  test.each([
    ["failed", failed],
    ["was stopped", stopped],
    ["is lost", lost],
  ] as const)("a call that %s has not received it, whatever it reports", (_, outcome) => {
    held
      .and(cancelCall("call_a.1"))
      .when(settleCall("call_a.1", { outcome, heard: [first] }))
      .then(callSettled("call_a.1", outcome));
    const past = held.and(cancelCall("call_a.1"), settleCall("call_a.1", { outcome, heard: [first] }));
    past.when(take("turn_a.1")).then(itemsTaken("turn_a.1", told(first)));
  });

  test("a call that ends without having received it leaves it to the next turn", () => {
    held
      .and(settleTurn("turn_a.1", { next: "turn" }))
      .when(settleCall("call_a.1"))
      .then(callSettled("call_a.1"), itemsTaken("turn_a.2", told(first)), turnRequested("run_a", "turn_a.2"));
  });

  test("a call may receive what was in the inbox before", () => {
    const past = busy.and(settleProcess(first), settleCall("call_a.1", { heard: [first] }));
    expect(past.lane.inbox).toEqual([]);
  });

  test("it receives only what it names", () => {
    const two = busy.and(beginProcess(), post("news"), settleFor("call_a.1", first), settleFor("call_a.1", second));
    expect(two.and(settleCall("call_a.1", { heard: [second] })).lane.inbox).toMatchObject([
      { item: item("news") },
      { processId: first },
    ]);
  });

  test("if the worker vanishes before the call returns it, the next turn takes it", () => {
    expect(takenIn(held.and(recover()))).toEqual([told(first)]);
  });

  test("a call that is begun again after the crash can still return it", () => {
    const waiting = kept.and(settleFor("call_a.1", first));
    for (const cut of [[recover()], [park, recover()]]) {
      const past = waiting.and(...cut);
      expect(takenIn(past)).toEqual([]);
      past
        .when(settleCall("call_a.1", { heard: [first] }))
        .then({ ...callSettled("call_a.1"), heard: [first] } as Event, turnRequested("run_a", "turn_a.2"));
      expect(takenIn(past.and(settleCall("call_a.1")))).toEqual([told(first)]);
    }
  });
});

describe("G22: a turn that waited for a result does not receive it again", () => {
  const alone = live.and(beginProcess());
  /** The turn waits for the background process, which has ended now. */
  const awaited = alone.and(settleFor("turn_a.1", first));

  test("the result is held for the turn that waits, even beside a call", () => {
    alone.when(settleFor("turn_a.1", first)).then(over(first), fed(first, { heldBy: "turn_a.1", wake: true }));
    busy.when({ ...settleFor("turn_a.1", first), waiters: ["turn_a.1", "call_a.1"] }).then(over(first), {
      ...fed(first, { heldBy: "turn_a.1", wake: true }),
      alsoHeldBy: ["call_a.1"],
    } as Event);
  });

  test("not for a turn that is over, or never existed", () => {
    const next = alone.and(settleTurn("turn_a.1", { next: "turn" }));
    next.when(settleFor("turn_a.1", first)).then(over(first), fed(first));
    idle.when(settleFor("turn_a.1", first)).then(over(first), fed(first), wokenRun("run_1.w5"));
  });

  test("while it is live it does not take the result in; it takes other items", () => {
    awaited.when(take("turn_a.1")).then().answers([]);
    const more = awaited.and(post("news"));
    more.when(take("turn_a.1")).then(itemsTaken("turn_a.1", item("news")));
    expect(more.and(take("turn_a.1")).lane.inbox).toMatchObject([{ processId: first, heldBy: "turn_a.1" }]);
  });

  test("once it has completed, neither its next turn nor the next run receives it, and no run is begun for it", () => {
    awaited
      .when(settleTurn("turn_a.1", { next: "turn", heard: [first] }))
      .then({ ...turnSettled, next: "turn", heard: [first] }, turnRequested("run_a", "turn_a.2"));
    const past = awaited.and(settleTurn("turn_a.1", { heard: [first] }));
    expect([past.lane.inbox, wakesIn(past)]).toEqual([[], []]);
  });

  test("a turn that completes without having received it leaves it to the next turn", () => {
    awaited
      .when(settleTurn("turn_a.1", { next: "turn" }))
      .then({ ...turnSettled, next: "turn" }, itemsTaken("turn_a.2", told(first)), turnRequested("run_a", "turn_a.2"));
  });

  test.each([
    ["failed", failed],
    ["was stopped", stopped],
    ["is lost", lost],
  ] as const)("a turn that %s leaves it to the next turn, whatever it reports", (_, outcome) => {
    const past = awaited.and(cancelRun("run_a"), settleTurn("turn_a.1", { outcome, heard: [first] }));
    expect(past.events.find(({ type }) => type === "turn.settled")).not.toHaveProperty("heard");
    expect(takenIn(past.and(...running("run_b")))).toEqual([told(first)]);
  });

  test("if the worker vanishes or parks the run, the turn that continues it takes it", () => {
    for (const cut of [[recover()], [park, recover()]]) expect(takenIn(awaited.and(...cut))).toEqual([told(first)]);
  });

  test("a call that waited too still holds it, if the turn has not received it", () => {
    const both = { ...settleFor("turn_a.1", first), waiters: ["turn_a.1", "call_a.1"] } as const;
    const past = busy.and(both, settleTurn("turn_a.1", { next: "turn" }));
    expect(takenIn(past)).toEqual([]);
    expect(past.and(settleCall("call_a.1", { heard: [first] })).lane.inbox).toEqual([]);
  });
});

describe("a result with `wake` begins a run", () => {
  test("if no run is live or waiting, in the same decision", () => {
    idle.when(settleProcess(first)).then(over(first), fed(first), wokenRun("run_1.w5")).answers("recorded");
    const woken = idle.and(settleProcess(first));
    woken
      .when(start)
      .then(
        { type: "run.started", runId: "run_1.w5" },
        itemsTaken("turn_1.w5.1", told(first)),
        turnRequested("run_1.w5", "turn_1.w5.1"),
      );
  });

  test("not if its feedback is `next-turn`", () => {
    given(beginProcess("ses_1", "next-turn")).when(settleProcess(first)).then(over(first), fed(first, {}));
  });

  test("one run for all: a second result waits for the first one's run", () => {
    const two = given(beginProcess(), beginProcess(), settleProcess(first));
    two.when(settleProcess(second)).then(over(second), fed(second));
    const begun = two.and(settleProcess(second), start);
    expect(wakesIn(begun)).toHaveLength(1);
    expect(takenIn(begun)).toEqual([told(first), told(second)]);
    expect(wakesIn(begun.and(settleTurn("turn_1.w6.1")))).toHaveLength(1);
  });

  test("one run for all results of a crash", () => {
    given(beginProcess(), beginProcess())
      .when(recover())
      .then(
        processSettled(first, lost),
        fed(first, { wake: true }, gone(first)),
        processSettled(second, lost),
        fed(second, { wake: true }, gone(second)),
        wokenRun("run_1.w8"),
      );
  });

  test("not while a run is live: its next turn takes it, and no other", () => {
    const past = busy.and(settleProcess(first), settleCall("call_a.1"));
    past
      .when(settleTurn("turn_a.1", { next: "turn" }))
      .then({ ...turnSettled, next: "turn" }, itemsTaken("turn_a.2", told(first)), turnRequested("run_a", "turn_a.2"));
    expect(wakesIn(past.and(settleTurn("turn_a.1", { next: "turn" }), settleTurn("turn_a.2")))).toEqual([]);
  });

  test("as soon as that run ends without another turn, however it ends", () => {
    const waiting = live.and(beginProcess(), settleProcess(first));
    waiting
      .when(settleTurn("turn_a.1"))
      .then(
        { ...turnSettled, next: "end" },
        runSettled("run_a", completed, { turnId: "turn_a.1", text: "" }),
        wokenRun("run_1.w10"),
      );
    expect(wakesIn(waiting.and(cancelRun("run_a"), settleTurn("turn_a.1")))).toHaveLength(1);
    expect(wakesIn(waiting.and(recover("lose")))).toHaveLength(1);
    expect(wakesIn(waiting.and(park, cancelRun("run_a")))).toHaveLength(1);
    expect(wakesIn(waiting.and(post("news"), settleTurn("turn_a.1")))).toHaveLength(1);
  });

  test("not while other runs wait: the next of them takes it", () => {
    const queued = given(beginProcess(), accept("run_b"), settleProcess(first));
    expect(wakesIn(queued)).toEqual([]);
    expect(takenIn(queued.and(start))).toEqual([told(first)]);
    expect(wakesIn(queued.and(start, settleTurn("turn_b.1")))).toEqual([]);
  });

  test("if the last waiting run is withdrawn", () => {
    given(beginProcess(), accept("run_b"), accept("run_c"), settleProcess(first), cancelRun("run_c"))
      .when(cancelRun("run_b"))
      .then(runSettled("run_b", stopped), wokenRun("run_1.w9"))
      .answers({ kind: "withdrawn" });
  });

  test("not if a steer is requeued: that run takes it", () => {
    live
      .and(beginProcess(), accept("run_s", { delivery: "steer" }), settleProcess(first))
      .when(settleTurn("turn_a.1"))
      .then(
        { ...turnSettled, next: "end" },
        runSettled("run_a", completed, { turnId: "turn_a.1", text: "" }),
        requeued("run_s"),
      );
  });

  test("not while a run is parked: the turn that continues it takes it", () => {
    const parked = live.and(beginProcess(), park, settleProcess(first));
    expect(wakesIn(parked)).toEqual([]);
    expect(takenIn(parked.and(recover()))).toEqual([told(first)]);
  });

  test("not in a closed session", () => {
    const waiting = live.and(beginProcess(), settleProcess(first));
    expect(wakesIn(waiting.and(close(), settleTurn("turn_a.1")))).toEqual([]);
    expect(wakesIn(waiting.and(cancelRun("run_a"), close(), settleTurn("turn_a.1")))).toEqual([]);
  });

  test("not if the waiter has returned it", () => {
    const past = held.and(settleCall("call_a.1", { heard: [first] }), settleTurn("turn_a.1"));
    expect(wakesIn(past)).toEqual([]);
    expect(wakesIn(held.and(settleCall("call_a.1"), settleTurn("turn_a.1")))).toHaveLength(1);
  });

  test("G2: once, even after a request with a key", () => {
    const once = { key: "k", content: "c" };
    const past = given(beginProcess(), accept("run_b"), settleProcess(first));
    past.when({ ...cancelRun("run_b"), once }).then(runSettled("run_b", stopped), wokenRun("run_1.w7"), {
      type: "request.answered",
      ...once,
      answer: { kind: "withdrawn" },
    });
    past
      .and({ ...cancelRun("run_b"), once })
      .when({ ...cancelRun("run_b"), once })
      .then();
  });
});

describe("a cancel prevents results from beginning a run", () => {
  const waiting = live.and(beginProcess(), settleProcess(first));
  const quiet = (past: Given, before = 0): void => {
    expect(wakesIn(past)).toHaveLength(before);
    expect(past.lane.inbox.map((one) => one.item)).toEqual([told(first)]);
    expect(takenIn(past.and(...running("run_b")))).toEqual([told(first)]);
  };

  test("of the session: items wait for the next turn that a client requests", () => {
    quiet(waiting.and(cancelSession(), settleTurn("turn_a.1")));
    quiet(waiting.and(cancelSessionOnly(), settleTurn("turn_a.1")));
    quiet(given(beginProcess(), accept("run_a"), settleProcess(first), cancelSession()));
    quiet(waiting.and(park, cancelSession()));
  });

  test("of the session, although its run was being stopped already", () => {
    const stopping = waiting.and(cancelRun("run_a", policy));
    stopping
      .when(cancelSession())
      .then({ type: "session.cancel_requested", reason: user, covers: [] })
      .answers({
        kind: "stopping",
        runs: [{ runId: "run_a", receipt: { kind: "stopping", since: 8, first: false } }],
      });
    quiet(stopping.and(cancelSession(), settleTurn("turn_a.1")));
    stopping.and(cancelSession()).when(cancelSession()).then();
  });

  test("of the run that was begun for them: no other is begun", () => {
    const woken = idle.and(settleProcess(first));
    woken.when(cancelRun("run_1.w5")).then(runSettled("run_1.w5", stopped)).answers({ kind: "withdrawn" });
    quiet(woken.and(cancelRun("run_1.w5")), 1);
    quiet(woken.and(cancelSession()), 1);
  });

  test("not for results that come after it", () => {
    const two = live.and(beginProcess(), beginProcess(), settleProcess(first), cancelSessionOnly());
    const over = two.and(settleTurn("turn_a.1"));
    expect(wakesIn(over)).toEqual([]);
    expect(wakesIn(over.and(settleProcess(second)))).toHaveLength(1);
    expect(takenIn(over.and(settleProcess(second), start))).toEqual([told(first), told(second)]);
  });

  test("not if it cancels a run only", () => {
    const past = waiting.and(cancelRun("run_a"));
    past
      .when(settleTurn("turn_a.1", { outcome: stopped }))
      .then(
        { ...turnSettled, outcome: stopped, next: "end" },
        runSettled("run_a", stopped, { turnId: "turn_a.1", text: "" }),
        wokenRun("run_1.w11"),
      );
    expect(past.events).toContainEqual(cancelRequested("run_a"));
  });
});

describe("G22: the end of a background process that no component reports otherwise is reported", () => {
  const limit = { kind: "timeout", limitMs: 1_500 } as const;
  const limited = given(beginProcess(), cancelProcess(first, limit));

  test("an end by its time limit, with the limit, which begins a run", () => {
    const { inbox, queue } = limited.and(stopProcess(first)).lane;
    expect(inbox).toMatchObject([{ processId: first, item: { kind: "result", data: { outcome: "cancelled" } } }]);
    expect(inbox[0]?.item.text).toContain("was stopped by its time limit of 1500 ms");
    expect(queue).toHaveLength(1);
  });

  test("an end by a rule of the host, which begins no run", () => {
    const { inbox, queue } = given(beginProcess(), cancelProcess(first, policy), stopProcess(first)).lane;
    expect(inbox[0]?.item.text).toContain("was stopped by a rule of the host: too expensive");
    expect(queue).toEqual([]);
  });

  test("G11: an end by its limit before the session was cancelled begins no run", () => {
    const { inbox, queue } = limited.and(accept("run_a"), cancelSession(), stopProcess(first)).lane;
    expect(inbox).toHaveLength(1);
    expect(queue).toEqual([]);
  });

  test("not an end by a user's stop", () => {
    expect(given(beginProcess(), cancelProcess(first), stopProcess(first)).lane.inbox).toEqual([]);
  });
});

test("a full inbox refuses neither a command of a call nor a process that does not report", () => {
  const posts = Array.from({ length: INBOX_ITEMS_MAX }, (_, index) => post(`${index}`));
  const full = given(...posts);
  const silent = beginProcess("ses_1", "silent");
  full.when(silent).then(processRequested(first, "ses_1", "silent"));
  const busy = given(...running("run_a"), call("call_a.1")).and(...posts);
  const foreground = busy.when(beginProcess("call_a.1", "silent"));
  foreground.then(processRequested(first, "call_a.1", "silent"));
  // Nor is it moved to where its result would have no room: its call keeps waiting.
  foreground.after.when({ type: "detach-process", processId: first, feedback: "wake" }).then().answers("late");
});
