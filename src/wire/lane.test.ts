import { describe, expect, it } from "vitest";
import {
  answer,
  ask,
  beginProcess,
  cancelProcess,
  cancelReminding,
  cancelRun,
  compact,
  item,
  park,
  plainQuestion,
  post,
  recover,
  running,
  setMode,
  settleAsking,
  settleFor,
  settleProcess,
  settleTurn,
  wanted,
} from "../../test/fixtures/commands.ts";
import type { Event } from "../core/model/event.ts";
import { emptyLane, evolve } from "../core/model/lane.ts";
import { decide } from "../core/policy/decide.ts";
import { given, givenNoSession } from "../testing/given.ts";
import { decodeLane, encodeLane } from "./lane.ts";

describe("a snapshot", () => {
  it("returns the lane, undefined fields included", () => {
    const events: readonly Event[] = [
      { type: "session.created", sessionId: "ses_1" },
      { type: "run.accepted", runId: "run_1", prompt: { text: "one" }, delivery: "queue" },
      {
        type: "run.accepted",
        runId: "run_2",
        prompt: { text: "two", data: 2 },
        delivery: "queue",
        key: "k",
        content: "c",
      },
      { type: "run.accepted", runId: "run_3", prompt: { text: "three" }, delivery: "queue" },
      { type: "run.started", runId: "run_1" },
      { type: "run.steered", runId: "run_3" },
    ];
    const lane = events.reduce(evolve, emptyLane("ses_1"));
    expect(lane.live).toHaveProperty("turn", undefined);
    expect(decodeLane(encodeLane(lane, lane.head))).toStrictEqual(lane);
    expect(decodeLane(encodeLane(emptyLane("ses_1"), 0))).toStrictEqual(emptyLane("ses_1"));
  });

  it("returns where the context of a model begins; for an older snapshot, the beginning of the log", () => {
    const { lane } = given(...running("run_a"), settleTurn("turn_a.1"), ...running("run_b"), compact("turn_b.1"));
    expect(lane.contextFrom).toBeGreaterThan(1);
    expect(decodeLane(encodeLane(lane, lane.head))).toStrictEqual(lane);
    const old = encodeLane(lane, lane.head).replace(`,"contextFrom":${lane.contextFrom}`, "");
    expect(decodeLane(old)).toStrictEqual({ ...lane, contextFrom: 0 });
  });

  it("returns questions, calls, costs, the inbox and grants", () => {
    const usage = { inputTokens: 3, outputTokens: 1, estimated: true };
    const begun = given(
      ...running("run_a"),
      { type: "extend", turnId: "turn_a.1", text: "x", usage },
      settleAsking("turn_a.1", wanted("call_a.1"), wanted("call_a.2", { idempotent: true }), wanted("call_a.3")),
      ask("call_a.1"),
      { ...ask("call_a.2", plainQuestion), deadlineMs: 5 },
      ask("call_a.3"),
      answer("ask_a.3", { kind: "allowed", remember: "session" }),
      cancelReminding("call_a.3"),
      post("news"),
    );
    const metered = given(...running("run_a"), { type: "extend", turnId: "turn_a.1", text: "x", usage });
    for (const { lane } of [begun, begun.and(park), begun.and(cancelRun("run_a")), metered]) {
      expect(decodeLane(encodeLane(lane, lane.head))).toStrictEqual(lane);
    }
    expect(begun.lane).toMatchObject({
      inbox: [{ item: item("news") }],
      grants: ["tool"],
      live: { spent: usage, asked: 3 },
    });
    expect(metered.lane.live).toMatchObject({ meter: usage });
  });

  it("returns processes, and results with the calls that hold them", () => {
    const past = given(
      ...running("run_a"),
      settleAsking("turn_a.1", wanted("call_a.1", { idempotent: true })),
      beginProcess("call_a.1"),
      beginProcess(),
      beginProcess("ses_1", "next-turn"),
      beginProcess(),
      cancelProcess("proc_1.1"),
      settleFor("call_a.1", "proc_1.2"),
      settleProcess("proc_1.3"),
    );
    expect(past.lane).toMatchObject({
      inbox: [{ processId: "proc_1.2", heldBy: "call_a.1", wake: true }, { processId: "proc_1.3" }],
      processes: { live: [{ phase: "stopping", since: 11 }, { phase: "running" }], count: 4 },
    });
    for (const { lane } of [past, past.and(park), given(beginProcess(), settleProcess("proc_1.1"))]) {
      expect(decodeLane(encodeLane(lane, lane.head))).toStrictEqual(lane);
    }
  });

  it("from before processes existed is read, items in the inbox included", () => {
    const { lane } = given(post("one"), post("two"));
    const { processes: _, ...rest } = lane;
    const inbox = lane.inbox.map((one) => one.item);
    expect(decodeLane(JSON.stringify({ v: 1, lane: { ...rest, inbox } }))).toStrictEqual(lane);
  });

  it("G25: from before recoveries and text sizes were counted is read with both at 0", () => {
    const { lane } = given(...running("run_a"));
    const { recoveries: _, textChars: __, ...run } = lane.live ?? {};
    const older = decodeLane(JSON.stringify({ v: 1, lane: { ...lane, live: run } }));
    expect(older).toStrictEqual(lane);
    // A recovered run looks into the log before it repeats a call. NaN would mean "not recovered".
    const events = decide(older, recover()).events;
    expect(events.reduce(evolve, older).live).toMatchObject({ recoveries: 1 });
  });

  it("from before questions, costs and the inbox existed is read with none of them", () => {
    const { lane } = given(...running("run_a"));
    const { inbox: _, grants: __, ...rest } = lane;
    const { questions: ___, asked: ____, spent: _____, ...run } = lane.live ?? {};
    expect(decodeLane(JSON.stringify({ v: 1, lane: { ...rest, live: run } }))).toStrictEqual(lane);
  });

  it("returns the directory of a session, and none if it is from before directories existed", () => {
    const { lane } = givenNoSession().and({ type: "create", cwd: "/srv/shop" }, post("one"));
    expect(decodeLane(encodeLane(lane, lane.head))).toStrictEqual(lane);
    expect(lane.cwd).toBe("/srv/shop");
    const { cwd: _, ...older } = lane;
    expect(decodeLane(JSON.stringify({ v: 1, lane: older }))).toStrictEqual({ ...lane, cwd: undefined });
  });

  it("returns the mode of a session, and none if it is from before modes existed", () => {
    const { lane } = given(setMode("read-only"));
    expect(decodeLane(encodeLane(lane, lane.head))).toStrictEqual(lane);
    expect(lane.mode).toBe("read-only");
    const { mode: _, ...older } = lane;
    expect(decodeLane(JSON.stringify({ v: 1, lane: older }))).toStrictEqual({ ...lane, mode: undefined });
  });

  it("at another position than the log is a bug", () => {
    expect(() => encodeLane(emptyLane("ses_1"), 1)).toThrow("snapshot");
  });

  it("of a newer Belay is refused as newer", () => {
    expect(() => decodeLane('{"v":2,"lane":{}}')).toThrow(expect.objectContaining({ code: "store_newer" }));
  });

  it.each(["null", "[]", "{}", '{"v":1}', '{"v":1,"lane":{"queue":[]}}', "{"])(
    "is refused as corrupt if it is invalid: %s",
    (text) => {
      expect(() => decodeLane(text)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
    },
  );
});
