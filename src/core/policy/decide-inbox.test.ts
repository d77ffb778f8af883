// The policy of the inbox: an item is received once, at the next turn. Also the cost of turns.
import { describe, expect, test } from "vitest";
import {
  accept,
  added,
  call,
  callSettled,
  cancelCall,
  cancelledBy,
  cancelReminding,
  cancelRequested,
  cancelRun,
  close,
  compact,
  completed,
  failed,
  item,
  itemsTaken,
  lost,
  park,
  policy,
  post,
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
import { type Given, given, givenNoSession } from "../../testing/given.ts";
import { INBOX_ITEMS_MAX } from "../limits.ts";
import { who } from "../model/cancel.ts";
import { reminder } from "../model/inbox.ts";

const live = given(...running("run_a"));
const called = live.and(settleAsking("turn_a.1", wanted("call_a.1"), wanted("call_a.2")));
const steer = accept("run_s", { delivery: "steer" });
const stopped = cancelledBy(user);
const reminded = reminder("call_a.1", "tool", user);
const turnSettled = { type: "turn.settled", runId: "run_a", turnId: "turn_a.1", outcome: completed, text: "" } as const;

const remindersIn = ({ events }: Given) => events.filter((event) => event.type === "inbox.added");
const takenIn = ({ events }: Given) => events.flatMap((event) => (event.type === "inbox.taken" ? event.items : []));

describe("an item is posted", () => {
  test("it is recorded, and the receipt has its position", () => {
    given()
      .when(post("news"))
      .then(added(item("news")))
      .answers({ kind: "posted", seq: 2 });
    expect(given(post("one"), post("two")).lane.inbox).toEqual([{ item: item("one") }, { item: item("two") }]);
  });

  test("G3: not to a session that was never created, nor to a closed one", () => {
    givenNoSession()
      .when(post("news"))
      .then()
      .answers({ kind: "refused", code: "not_found", message: "There is no session ses_1." });
    given(close())
      .when(post("news"))
      .then()
      .answers({ kind: "refused", code: "closed", message: "Session ses_1 is closed." });
  });

  test("G33: the inbox is bounded, and a turn makes room", () => {
    const full = live.and(...Array.from({ length: INBOX_ITEMS_MAX }, (_, index) => post(`${index}`)));
    full.when(post("more")).then().answers({
      kind: "refused",
      code: "queue_full",
      message: "100 items wait in the inbox of ses_1; it has no room for more.",
    });
    full
      .and(take("turn_a.1"))
      .when(post("more"))
      .then(added(item("more")));
  });

  test("G2: the same request under the same key is one item", () => {
    const once = { ...post("news"), once: { key: "k", content: "c" } };
    const after = given(once);
    after.when(once).then().answers({ kind: "posted", seq: 2 });
    expect(after.lane.inbox).toEqual([{ item: item("news") }]);
  });
});

describe("G22: an item in the inbox is received once", () => {
  test("by the first turn of the next run", () => {
    given(post("one"), post("two"), accept("run_a"))
      .when(start)
      .then(
        { type: "run.started", runId: "run_a" },
        itemsTaken("turn_a.1", item("one"), item("two")),
        turnRequested("run_a", "turn_a.1"),
      );
  });

  test("by the next turn of the live run, and by no other", () => {
    const posted = live.and(post("one"));
    const end = settleTurn("turn_a.1", { next: "turn" });
    posted
      .when(end)
      .then({ ...turnSettled, next: "turn" }, itemsTaken("turn_a.2", item("one")), turnRequested("run_a", "turn_a.2"));
    const third = posted.and(end, settleTurn("turn_a.2", { next: "turn" }));
    expect(takenIn(third)).toEqual([item("one")]);
  });

  test("by a live turn that takes the inbox; users' messages come after the items", () => {
    const both = live.and(steer, post("one"));
    both
      .when(take("turn_a.1"))
      .then(itemsTaken("turn_a.1", item("one")), ...taken("run_s", "run_a", "turn_a.1"))
      .answers([{ runId: "run_s", prompt: { text: "prompt of run_s" } }]);
    both.and(take("turn_a.1")).when(take("turn_a.1")).then().answers([]);
  });

  test("with steers, in the same order when a turn begins", () => {
    live
      .and(steer, post("one"))
      .when(settleTurn("turn_a.1", { next: "turn" }))
      .then(
        { ...turnSettled, next: "turn" },
        itemsTaken("turn_a.2", item("one")),
        ...taken("run_s", "run_a", "turn_a.2"),
        turnRequested("run_a", "turn_a.2"),
      );
  });

  test.each([
    ["of a run that is being stopped", live.and(post("one"), cancelRun("run_a")), "turn_a.1"],
    ["of another turn", live.and(post("one")), "turn_a.2"],
    ["of a parked run", live.and(post("one"), park), "turn_a.1"],
  ] as const)("a take %s takes nothing", (_, past, turnId) => {
    past.when(take(turnId)).then().answers([]);
  });

  test("it waits while calls are live, and survives the end of the run, a crash and a shutdown", () => {
    expect(called.and(post("one"), settleCall("call_a.1")).lane.inbox).toEqual([{ item: item("one") }]);
    const over = live.and(post("one"), settleTurn("turn_a.1"));
    expect(over.lane.inbox).toEqual([{ item: item("one") }]);
    expect(takenIn(over.and(...running("run_b")))).toEqual([item("one")]);
    for (const cut of [[recover()], [park, recover()]]) {
      expect(takenIn(live.and(post("one"), ...cut, recover()))).toEqual([item("one")]);
    }
  });
});

describe("G9: the model is reminded of a call that was stopped", () => {
  const stopping = called.and(cancelReminding("call_a.1"));

  test("once, when it has ended", () => {
    called
      .when(cancelReminding("call_a.1"))
      .then({ type: "call.cancel_requested", runId: "run_a", callId: "call_a.1", reason: user, remind: true });
    stopping.when(settleCall("call_a.1", { outcome: stopped })).then(callSettled("call_a.1", stopped), added(reminded));
    const over = stopping.and(settleCall("call_a.1", { outcome: stopped }));
    over
      .when(settleCall("call_a.1", { outcome: stopped }))
      .then()
      .answers("late");
    over.when(cancelReminding("call_a.1")).then().answers({ kind: "unknown" });
  });

  test("at the next turn, which is requested in the same decision if it was the last call", () => {
    stopping
      .and(settleCall("call_a.2"))
      .when(settleCall("call_a.1", { outcome: stopped }))
      .then(
        callSettled("call_a.1", stopped),
        added(reminded),
        itemsTaken("turn_a.2", reminded),
        turnRequested("run_a", "turn_a.2"),
      );
  });

  test("after earlier items of the inbox", () => {
    const past = live.and(
      settleAsking("turn_a.1", wanted("call_a.1")),
      post("one"),
      cancelReminding("call_a.1"),
      settleCall("call_a.1", { outcome: stopped }),
    );
    expect(takenIn(past)).toEqual([item("one"), reminded]);
  });

  test.each([
    ["nobody asked for it", called.and(cancelCall("call_a.1")), stopped],
    ["it had finished", stopping, completed],
    ["it had failed", stopping, failed],
  ])("not if %s", (_, past, outcome) => {
    expect(remindersIn(past.and(settleCall("call_a.1", { outcome })))).toEqual([]);
  });

  test("not if only a second cancel wanted a reminder: the first one counts", () => {
    called
      .and(cancelCall("call_a.1"))
      .when(cancelReminding("call_a.1"))
      .then()
      .answers({ kind: "stopping", since: 8, first: false });
  });

  test("even if its worker vanished or was shut down before it had ended", () => {
    stopping
      .when(recover())
      .then(
        callSettled("call_a.1", lost),
        added(reminded),
        callSettled("call_a.2", lost),
        recovered("run_a", 2),
        itemsTaken("turn_a.2", reminded),
        turnRequested("run_a", "turn_a.2"),
      );
    expect(remindersIn(stopping.and(park))).toHaveLength(1);
  });

  test("even if its run was cancelled after it: the next run is reminded, once", () => {
    const past = stopping.and(
      cancelRun("run_a", policy),
      settleCall("call_a.2"),
      settleCall("call_a.1", { outcome: stopped }),
    );
    expect(past.events.slice(-3)).toEqual([
      callSettled("call_a.1", stopped),
      added(reminded),
      runSettled("run_a", cancelledBy(policy), { turnId: "turn_a.1", text: "" }),
    ]);
    const next = past.and(accept("run_b"), start, settleTurn("turn_b.1", { next: "turn" }));
    expect(takenIn(next)).toEqual([reminded]);
  });

  test("at once if a parked run had kept the call", () => {
    const parked = live.and(settleAsking("turn_a.1", wanted("call_a.1", { idempotent: true })), park);
    parked
      .when(cancelReminding("call_a.1"))
      .then(
        { type: "call.cancel_requested", runId: "run_a", callId: "call_a.1", reason: user, remind: true },
        callSettled("call_a.1", stopped),
        added(reminded),
      );
    expect(takenIn(parked.and(cancelReminding("call_a.1"), recover()))).toEqual([reminded]);
  });

  test("a cancel of the run alone adds no reminder: the model receives the ends of its calls", () => {
    const past = live.and(call("call_a.1"), cancelRun("run_a"), settleCall("call_a.1", { outcome: stopped }));
    expect(remindersIn(past)).toEqual([]);
    expect(past.events).toContainEqual(cancelRequested("run_a"));
  });

  test("with a text that names the requester", () => {
    expect(reminded.text).toBe("The call of tool was stopped by the user. Do not repeat it unless you are asked to.");
    expect(reminded.data).toEqual({ callId: "call_a.1", name: "tool" });
    expect([
      who({ kind: "user", by: "ann", note: "too slow" }),
      who(policy),
      who({ kind: "timeout", limitMs: 5 }),
      who({ kind: "superseded", by: "run_b" }),
      who({ kind: "parent", id: "run_a" }),
      who({ kind: "closed" }),
      who({ kind: "shutdown" }),
    ]).toEqual([
      "ann: too slow",
      "a rule of the host: too expensive",
      "its time limit of 5 ms",
      "the user, who sent something more urgent",
      "the end of what it belonged to",
      "the user, who closed the session",
      "a shutdown of the server",
    ]);
  });
});

describe("a summary", () => {
  test("is recorded for the live turn, and for no other", () => {
    live.when(compact("turn_a.1")).then({ type: "session.compacted", turnId: "turn_a.1", summary: "in short" });
    for (const past of [given(), called, live.and(cancelRun("run_a")), live.and(park)]) {
      past.when(compact("turn_a.1")).then();
    }
  });
});

describe("G18: the cost of turns", () => {
  const usage = { inputTokens: 10, outputTokens: 2, estimated: false };
  const guess = { inputTokens: 5, outputTokens: 1, estimated: true };
  const metered = live.and({ type: "extend", turnId: "turn_a.1", text: "hel", usage: guess });

  test("is summed up, and is an estimate if any part of it is", () => {
    const two = live.and(
      settleTurn("turn_a.1", { next: "turn", usage }),
      settleTurn("turn_a.2", { next: "turn", usage }),
    );
    expect(two.lane.live?.spent).toEqual({ inputTokens: 20, outputTokens: 4, estimated: false });
    const four = two.and(
      settleTurn("turn_a.3", { next: "turn", usage: guess }),
      settleTurn("turn_a.4", { next: "turn" }),
      settleTurn("turn_a.5", { next: "turn", usage }),
    );
    expect(four.lane.live?.spent).toEqual({ inputTokens: 35, outputTokens: 7, estimated: true });
  });

  test("is the last known cost if the turn is cut off", () => {
    const cut = { type: "turn.settled", runId: "run_a", turnId: "turn_a.1", next: "turn", usage: guess } as const;
    expect(metered.and(recover()).events).toContainEqual({ ...cut, outcome: lost });
    expect(metered.and(recover("lose")).events).toContainEqual({ ...cut, outcome: lost });
    expect(metered.and(park).events).toContainEqual({ ...cut, outcome: cancelledBy({ kind: "shutdown" }) });
    expect(metered.and(recover()).lane.live).toMatchObject({ spent: guess, meter: undefined });
  });

  test("is the last known cost if the turn does not report it, even when it was stopped", () => {
    const end = settleTurn("turn_a.1", { outcome: stopped, text: "hel" });
    metered
      .and(cancelRun("run_a"))
      .when(end)
      .then(
        { ...turnSettled, outcome: stopped, next: "end", text: "hel", usage: guess },
        runSettled("run_a", stopped, { turnId: "turn_a.1", text: "hel" }),
      );
  });

  test("is what the turn reports, if it does; it is not counted twice", () => {
    const after = metered.and(settleTurn("turn_a.1", { next: "turn", usage }));
    expect(after.lane.live).toMatchObject({ spent: usage, meter: undefined });
  });

  test("belongs to one turn: the next one begins at zero", () => {
    const after = metered.and(settleTurn("turn_a.1", { next: "turn" }), recover());
    expect(after.lane.live?.spent).toEqual(guess);
  });
});
