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
  it("gives back the lane, fields that are undefined included", () => {
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

  it("gives back where the context of a model begins; of an older snapshot, the beginning of the log", () => {
    const { lane } = given(...running("run_a"), settleTurn("turn_a.1"), ...running("run_b"), compact("turn_b.1"));
    expect(lane.contextFrom).toBeGreaterThan(1);
    expect(decodeLane(encodeLane(lane, lane.head))).toStrictEqual(lane);
    const old = encodeLane(lane, lane.head).replace(`,"contextFrom":${lane.contextFrom}`, "");
    expect(decodeLane(old)).toStrictEqual({ ...lane, contextFrom: 0 });
  });

  it("gives back questions, calls, costs, the inbox and what was granted", () => {
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

  it("gives back processes, and results with whoever holds them", () => {
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

  it("is read also if it was written before there were processes, with things in the inbox", () => {
    const { lane } = given(post("one"), post("two"));
    const { processes: _, ...rest } = lane;
    const inbox = lane.inbox.map((one) => one.item);
    expect(decodeLane(JSON.stringify({ v: 1, lane: { ...rest, inbox } }))).toStrictEqual(lane);
  });

  it("G25: is read also if it was written before recoveries and texts were counted", () => {
    const { lane } = given(...running("run_a"));
    const { recoveries: _, textChars: __, ...run } = lane.live ?? {};
    const older = decodeLane(JSON.stringify({ v: 1, lane: { ...lane, live: run } }));
    expect(older).toStrictEqual(lane);
    // A run that was recovered looks into the log before it repeats a call: NaN would say that it was not.
    const events = decide(older, recover()).events;
    expect(events.reduce(evolve, older).live).toMatchObject({ recoveries: 1 });
  });

  it("is read also if it was written before there were questions, costs and an inbox", () => {
    const { lane } = given(...running("run_a"));
    const { inbox: _, grants: __, ...rest } = lane;
    const { questions: ___, asked: ____, spent: _____, ...run } = lane.live ?? {};
    expect(decodeLane(JSON.stringify({ v: 1, lane: { ...rest, live: run } }))).toStrictEqual(lane);
  });

  it("gives back the directory of a session, and none where it was written before there were any", () => {
    const { lane } = givenNoSession().and({ type: "create", cwd: "/srv/shop" }, post("one"));
    expect(decodeLane(encodeLane(lane, lane.head))).toStrictEqual(lane);
    expect(lane.cwd).toBe("/srv/shop");
    const { cwd: _, ...older } = lane;
    expect(decodeLane(JSON.stringify({ v: 1, lane: older }))).toStrictEqual({ ...lane, cwd: undefined });
  });

  it("gives back the mode of a session, and none where it was written before there were any", () => {
    const { lane } = given(setMode("read-only"));
    expect(decodeLane(encodeLane(lane, lane.head))).toStrictEqual(lane);
    expect(lane.mode).toBe("read-only");
    const { mode: _, ...older } = lane;
    expect(decodeLane(JSON.stringify({ v: 1, lane: older }))).toStrictEqual({ ...lane, mode: undefined });
  });

  it("is a bug if it is of another position", () => {
    expect(() => encodeLane(emptyLane("ses_1"), 1)).toThrow("snapshot");
  });

  it("is refused as newer if a newer Belay wrote it", () => {
    expect(() => decodeLane('{"v":2,"lane":{}}')).toThrow(expect.objectContaining({ code: "store_newer" }));
  });

  it.each(["null", "[]", "{}", '{"v":1}', '{"v":1,"lane":{"queue":[]}}', "{"])(
    "is refused as corrupt if it is none: %s",
    (text) => {
      expect(() => decodeLane(text)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
    },
  );
});
