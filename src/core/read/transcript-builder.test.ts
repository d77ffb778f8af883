// The conversation as the log has it: one test for each invariant, and the common shapes.
import { describe, expect, test } from "vitest";
import { arrayWork } from "../../../test/fixtures/array-work.ts";
import {
  accept,
  call,
  cancelledBy,
  cancelRun,
  cancelSession,
  failed,
  lost,
  park,
  policy,
  recover,
  running,
  settleCall,
  settleTurn,
  start,
  user,
} from "../../../test/fixtures/commands.ts";
import { type Given, given } from "../../testing/given.ts";
import type { Event } from "../model/event.ts";
import type { RunId } from "../model/ids.ts";
import type { Message } from "./transcript.ts";
import { transcript } from "./transcript-builder.ts";

const live = given(...running("run_a"));
const calling = live.and(call("call_a.1", "build"), call("call_a.2", "test"));
const steer = (runId: RunId) => accept(runId, { delivery: "steer" });
const extend = (text: string) => ({ type: "extend", turnId: "turn_a.1", text }) as const;

const said = (runId: RunId) => ({ role: "user", runId, text: `prompt of ${runId}` }) as const;
const answered = (text: string, finish: object = { kind: "end" }) =>
  ({ role: "assistant", runId: "run_a", turnId: "turn_a.1", text, calls: [], finish }) as const;
const read = (past: Given): readonly Message[] => transcript(past.events);

describe("a run", () => {
  test("a prompt and its answer", () => {
    const past = live.and(settleTurn("turn_a.1", { text: "hello" }));
    // Nothing else, not even a key without a value: a message is handed on as it is.
    expect(read(past)).toStrictEqual([said("run_a"), answered("hello")]);
  });

  test("data is part of the message", () => {
    const prompt = { text: "look", data: { file: "a.png" } };
    const [first] = read(given(accept("run_a", { prompt }), start));
    expect(first).toEqual({ role: "user", runId: "run_a", ...prompt });
  });

  test("G18: the cost of a turn is part of its message", () => {
    const usage = { inputTokens: 1, outputTokens: 2, estimated: false };
    expect(read(live.and(settleTurn("turn_a.1", { text: "hi", usage })))[1]).toEqual({ ...answered("hi"), usage });
  });

  test("a waiting run is not in the conversation yet", () => {
    expect(read(given(accept("run_a")))).toEqual([]);
    expect(read(live.and(accept("run_b")))).toEqual([said("run_a"), answered("", { kind: "live" })]);
  });

  test("a run is where it started, not where it was accepted", () => {
    const past = given(
      accept("run_a"),
      accept("run_b"),
      { type: "move", runId: "run_b", to: "front" },
      start,
      settleTurn("turn_b.1"),
      start,
    );
    expect(read(past).map((message) => [message.role, message.runId])).toEqual([
      ["user", "run_b"],
      ["assistant", "run_b"],
      ["user", "run_a"],
      ["assistant", "run_a"],
    ]);
  });

  test("an edited prompt has the text it had when its run started", () => {
    const past = given(accept("run_a"), { type: "edit", runId: "run_a", prompt: { text: "better" } }, start);
    expect(read(past)[0]).toEqual({ role: "user", runId: "run_a", text: "better" });
  });

  test("a live turn is marked live", () => {
    expect(read(live.and(extend("hel"), extend("lo")))).toEqual([said("run_a"), answered("hello", { kind: "live" })]);
  });

  test("the whole text of a settled turn replaces its pieces", () => {
    expect(read(live.and(extend("hel"), settleTurn("turn_a.1", { text: "hello" })))[1]).toEqual(answered("hello"));
  });
});

describe("G17: every run has a user message and an assistant message with a finish", () => {
  test("a run that failed", () => {
    const past = live.and(settleTurn("turn_a.1", { outcome: failed, text: "par" }));
    expect(read(past)).toEqual([
      said("run_a"),
      answered("par", { kind: "failed", code: "model", message: "The model said no." }),
    ]);
  });

  test("a run that was stopped", () => {
    const past = live.and(cancelRun("run_a"), settleTurn("turn_a.1", { outcome: cancelledBy(user), text: "par" }));
    expect(read(past)).toEqual([said("run_a"), answered("par", { kind: "cancelled", reason: user })]);
  });

  test("a run that was stopped although its turn had completed", () => {
    const past = live.and(cancelRun("run_a"), settleTurn("turn_a.1", { text: "all" }));
    expect(read(past)).toEqual([said("run_a"), answered("all", { kind: "cancelled", reason: user })]);
  });

  test("runs that never began, in the order in which they were withdrawn", () => {
    const never = (runId: RunId) =>
      ({ role: "assistant", runId, text: "", calls: [], finish: { kind: "cancelled", reason: policy } }) as const;
    expect(read(given(accept("run_a"), accept("run_b"), cancelSession(policy)))).toStrictEqual([
      { ...said("run_a"), withdrawn: true },
      never("run_a"),
      { ...said("run_b"), withdrawn: true },
      never("run_b"),
    ]);
  });

  test("a run that was lost", () => {
    const past = live.and(extend("par"), recover("lose"));
    expect(read(past)).toEqual([said("run_a"), answered("par", { kind: "lost" })]);
  });

  test("a run that ended while it was parked", () => {
    const past = live.and(extend("par"), park, cancelRun("run_a"));
    expect(read(past)).toEqual([said("run_a"), answered("par", { kind: "cancelled", reason: user })]);
  });

  test("a run that crashed its worker too often", () => {
    const past = live.and(recover(), recover(), recover());
    expect(read(past).at(-1)).toMatchObject({ turnId: "turn_a.3", finish: { kind: "failed", code: "crash_loop" } });
  });
});

describe("G17: every call has exactly one result", { meta: { id: "G17/one-result-per-call" } }, () => {
  const results = (past: Given) => read(past).flatMap((message) => (message.role === "tool" ? message.results : []));

  test("results follow the message that requested them, in the order of the requests", () => {
    const past = live.and(
      extend("let me see"),
      call("call_a.1", "build"),
      call("call_a.2", "test"),
      settleCall("call_a.2", { result: "ok" }),
      settleTurn("turn_a.1", { next: "turn", text: "let me see" }),
      settleCall("call_a.1", { outcome: failed }),
      settleTurn("turn_a.2", { text: "done" }),
    );
    expect(read(past)).toStrictEqual([
      said("run_a"),
      {
        ...answered("let me see", { kind: "calls" }),
        calls: [
          { callId: "call_a.1", name: "build", input: null },
          { callId: "call_a.2", name: "test", input: null },
        ],
      },
      {
        role: "tool",
        runId: "run_a",
        results: [
          { callId: "call_a.1", name: "build", outcome: failed },
          { callId: "call_a.2", name: "test", outcome: { kind: "completed" }, result: "ok" },
        ],
      },
      { ...answered("done"), turnId: "turn_a.2" },
    ]);
  });

  test("a live call is running, and not lost", () => {
    expect(results(calling.and(settleCall("call_a.2")))).toEqual([
      { callId: "call_a.1", name: "build", outcome: { kind: "running" } },
      { callId: "call_a.2", name: "test", outcome: { kind: "completed" } },
    ]);
    expect(results(calling.and(cancelRun("run_a"))).map(({ outcome }) => outcome.kind)).toEqual(["running", "running"]);
  });

  test("a call whose end is missing in a slice of the log is lost once its run has ended", () => {
    const { events } = calling.and(settleCall("call_a.1"), settleCall("call_a.2"), settleTurn("turn_a.1"));
    const slice = transcript(events.filter((event) => event.type !== "call.settled" || event.callId !== "call_a.1"));
    expect(slice[2]).toMatchObject({ results: [{ outcome: lost }, { outcome: { kind: "completed" } }] });
  });

  test("the cost of forty thousand calls of one turn is linear in their number", () => {
    const events: Event[] = [...live.events];
    const count = 40_000;
    for (let n = 1; n <= count; n += 1) {
      events.push({ type: "call.requested", runId: "run_a", callId: `call_a.${n}`, name: "tool", input: null });
    }
    for (let n = 1; n <= count; n += 1) {
      events.push({ type: "call.settled", runId: "run_a", callId: `call_a.${n}`, outcome: { kind: "completed" } });
    }
    let messages: readonly Message[] = [];
    const work = arrayWork(() => {
      messages = transcript(events);
    });
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    expect(work).toBeLessThan(10 * count);
  });

  test("a call that was stopped keeps its partial result", () => {
    const end = settleCall("call_a.1", { outcome: cancelledBy(user), result: { lines: 3 } });
    expect(results(calling.and(end))[0]).toEqual({
      callId: "call_a.1",
      name: "build",
      outcome: cancelledBy(user),
      result: { lines: 3 },
    });
  });

  test("G25: calls cut off by a crash are lost, and the next turn is a separate message", {
    meta: { id: "G25/transcript-after-crash" },
  }, () => {
    const past = calling.and(settleCall("call_a.1"), recover(), settleTurn("turn_a.2", { text: "again" }));
    expect(results(past).map((result) => result.outcome.kind)).toEqual(["completed", "lost"]);
    expect(read(past).map((message) => message.role)).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(read(past)[1]).toMatchObject({ finish: { kind: "lost" } });
  });

  test("a null result is a result", () => {
    expect(results(calling.and(settleCall("call_a.1", { result: null })))[0]).toHaveProperty("result", null);
  });
});

describe("text produced before a cut is kept, and marked", () => {
  test("of a turn that crashed", () => {
    const past = live.and(extend("hel"), extend("lo"), recover(), settleTurn("turn_a.2", { text: "hello again" }));
    expect(read(past)).toEqual([
      said("run_a"),
      { ...answered("hello", { kind: "lost" }), again: true },
      { ...answered("hello again"), turnId: "turn_a.2" },
    ]);
  });

  test("of a turn that was parked", () => {
    const past = live.and(extend("hel"), park, recover());
    expect(read(past)).toEqual([
      said("run_a"),
      { ...answered("hel", { kind: "cancelled", reason: { kind: "shutdown" } }), again: true },
      { ...answered("", { kind: "live" }), turnId: "turn_a.2" },
    ]);
  });
});

describe("steers", () => {
  const speakers = (past: Given) => read(past).map(({ role, runId }) => `${role} ${runId}`);

  test("G5: a steer taken into a live turn comes after its text so far", () => {
    const past = live.and(extend("hm"), steer("run_s"), { type: "take", turnId: "turn_a.1" });
    expect(speakers(past)).toEqual(["user run_a", "assistant run_a", "user run_s"]);
  });

  test("G5: a steer taken in when a turn begins comes before that turn's answer", () => {
    const past = live.and(
      steer("run_s"),
      settleTurn("turn_a.1", { next: "turn", text: "first" }),
      settleTurn("turn_a.2", { text: "second" }),
    );
    expect(speakers(past)).toEqual(["user run_a", "assistant run_a", "user run_s", "assistant run_a"]);
    expect(read(past).at(-1)).toMatchObject({ role: "assistant", text: "second", turnId: "turn_a.2" });
  });

  test("G5: a steer taken into a turn that has only calls comes after them", () => {
    const past = live.and(call("call_a.1"), steer("run_s"), { type: "take", turnId: "turn_a.1" });
    expect(speakers(past)).toEqual(["user run_a", "assistant run_a", "tool run_a", "user run_s"]);
  });

  test("a steer is one message, and its outcome adds none", () => {
    const past = live.and(steer("run_s"), { type: "take", turnId: "turn_a.1" }, settleTurn("turn_a.1"));
    expect(speakers(past).filter((one) => one.endsWith("run_s"))).toEqual(["user run_s"]);
  });

  test("a steer that became a queued run is like any other run", () => {
    const past = live.and(steer("run_s"), settleTurn("turn_a.1"), start, settleTurn("turn_s.1"));
    expect(speakers(past)).toEqual(["user run_a", "assistant run_a", "user run_s", "assistant run_s"]);
  });
});

describe("a slice of a log", () => {
  const { events } = calling.and(settleCall("call_a.1", { result: 1 }), settleTurn("turn_a.1", { text: "hi" }));
  const from = (type: string) => transcript(events.slice(events.findIndex((event) => event.type === type)));

  test("a run whose beginning is missing is included as far as it is there", () => {
    expect(from("turn.requested").map((message) => message.role)).toEqual(["assistant", "tool", "assistant"]);
    expect(from("turn.settled")).toEqual([
      { role: "assistant", runId: "run_a", text: "hi", calls: [], finish: { kind: "end" } },
    ]);
  });

  test("a run whose prompt event is missing lacks only its prompt", () => {
    expect(from("run.started").map((message) => message.role)).toEqual(["assistant", "tool", "assistant"]);
    const begun = live.and(accept("run_b"), cancelRun("run_b")).events;
    const slice = transcript(begun.filter((event) => event.type !== "run.accepted"));
    expect(slice.map(({ role, runId }) => `${role} ${runId}`)).toEqual(["assistant run_a", "assistant run_b"]);
  });

  test("a result whose call is missing is omitted: providers would refuse it", () => {
    expect(from("call.settled")).toEqual([
      { role: "assistant", runId: "run_a", text: "hi", calls: [], finish: { kind: "end" } },
    ]);
  });

  test("text whose beginning is missing is a separate message", () => {
    const slice = transcript([{ type: "turn.extended", runId: "run_a", turnId: "turn_a.1", text: "lo" }]);
    expect(slice).toEqual([{ role: "assistant", runId: "run_a", text: "lo", calls: [], finish: { kind: "live" } }]);
  });
});
