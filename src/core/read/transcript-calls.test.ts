// The conversation beyond text: calls requested at the end of a turn, parts, notes, summaries, cut-off turns.
import { describe, expect, test } from "vitest";
import {
  accept,
  beginProcess,
  call,
  cancelledBy,
  cancelProcess,
  cancelReminding,
  cancelRun,
  cancelSession,
  compact,
  completed,
  detachProcess,
  failed,
  item,
  lost,
  noteProcess,
  park,
  post,
  recover,
  running,
  settleAsking,
  settleCall,
  settleFor,
  settleProcess,
  settleTurn,
  start,
  stopProcess,
  take,
  user,
  wanted,
} from "../../../test/fixtures/commands.ts";
import { transcriptErrors } from "../../../test/oracle/check-transcript.ts";
import { type Given, given } from "../../testing/given.ts";
import type { Event, TurnPart } from "../model/event.ts";
import { reminder } from "../model/inbox.ts";
import type { Message } from "./transcript.ts";
import { Book, transcript } from "./transcript-builder.ts";

const live = given(...running("run_a"));
const called = live.and(settleAsking("turn_a.1", wanted("call_a.1"), wanted("call_a.2"), wanted("call_a.3")));
const extend = (text: string) => ({ type: "extend", turnId: "turn_a.1", text }) as const;
const steer = accept("run_s", { delivery: "steer" });

/** The transcript, which must be valid. */
function read(past: Given): readonly Message[] {
  expect(transcriptErrors(past.events)).toEqual([]);
  return transcript(past.events);
}

const roles = (past: Given): readonly string[] => read(past).map((message) => message.role);
const results = (past: Given) => read(past).flatMap((message) => (message.role === "tool" ? message.results : []));

describe("G17: calls requested at the end of a turn", () => {
  test("belong to that turn, and have their results in the order of the requests", () => {
    const past = called.and(
      settleCall("call_a.3", { result: "third" }),
      settleCall("call_a.1", { outcome: failed }),
      settleCall("call_a.2", { result: "second" }),
      settleTurn("turn_a.2", { text: "done" }),
    );
    expect(roles(past)).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(read(past)[1]).toMatchObject({ turnId: "turn_a.1", finish: { kind: "calls" } });
    expect(results(past)).toEqual([
      { callId: "call_a.1", name: "tool", outcome: failed },
      { callId: "call_a.2", name: "tool", outcome: completed, result: "second" },
      { callId: "call_a.3", name: "tool", outcome: completed, result: "third" },
    ]);
  });

  test("have their provider's id, and results have the changes", () => {
    const provider = { id: "toolu_1", data: { index: 0 } };
    const past = live.and(settleAsking("turn_a.1", wanted("call_a.1", { provider })));
    expect(read(past)[1]).toMatchObject({ calls: [{ callId: "call_a.1", name: "tool", input: null, provider }] });
    const over = past.and(
      cancelReminding("call_a.1"),
      settleCall("call_a.1", { outcome: cancelledBy(user), changes: ["wrote a.txt"] }),
    );
    expect(results(over)).toEqual([
      { callId: "call_a.1", name: "tool", outcome: cancelledBy(user), changes: ["wrote a.txt"] },
    ]);
  });

  test("G25: have one result each, even when kept across a crash", () => {
    const past = live.and(
      settleAsking("turn_a.1", wanted("call_a.1"), wanted("call_a.2", { idempotent: true })),
      recover(),
      settleCall("call_a.2", { result: 2 }),
      settleTurn("turn_a.2"),
    );
    expect(roles(past)).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(results(past).map((result) => result.outcome)).toEqual([lost, completed]);
    expect(read(past)[1]).not.toHaveProperty("again");
  });

  test("G11: of a stopped turn are not requested, and its parts do not refer to them", () => {
    const parts: readonly TurnPart[] = [
      { kind: "text", text: "let me see" },
      { kind: "call", index: 0 },
    ];
    const end = settleTurn("turn_a.1", { next: "turn", parts, calls: [wanted("call_a.1")] });
    expect(read(live.and(end))[1]).toMatchObject({ parts });
    expect(read(live.and(cancelRun("run_a"), end)).at(-1)).toMatchObject({
      role: "assistant",
      calls: [],
      parts: parts.slice(0, 1),
      finish: { kind: "cancelled", reason: user },
    });
  });
});

describe("an answer", () => {
  test("keeps its parts unchanged", () => {
    const parts: readonly TurnPart[] = [
      { kind: "reasoning", text: "hm", provider: { signature: "s" } },
      { kind: "provider", provider: { search: 1 } },
      { kind: "text", text: "hello" },
    ];
    expect(read(live.and(settleTurn("turn_a.1", { text: "hello", parts })))[1]).toMatchObject({ text: "hello", parts });
    expect(read(live.and(settleTurn("turn_a.1", { text: "hello" })))[1]).not.toHaveProperty("parts");
  });

  test.each([
    ["stop", "end"],
    ["calls", "end"],
    ["length", "length"],
    ["refusal", "refusal"],
    ["other", "other"],
  ] as const)("with the model's finish %s finishes as %s", (finish, kind) => {
    expect(read(live.and(settleTurn("turn_a.1", { finish })))[1]).toMatchObject({ finish: { kind } });
  });

  test("finishes with calls if another turn follows, and as failed if it failed", () => {
    expect(read(live.and(settleTurn("turn_a.1", { next: "turn", finish: "calls" })))[1]).toMatchObject({
      finish: { kind: "calls" },
    });
    expect(read(live.and(settleTurn("turn_a.1", { outcome: failed, finish: "length" })))[1]).toMatchObject({
      finish: { kind: "failed" },
    });
  });
});

describe("a turn that was cut off and repeated", () => {
  test.each([[[recover()]], [[park, recover()]]])("is marked, because the next turn replaces it", (cut) => {
    const past = live.and(extend("hel"), ...cut, settleTurn("turn_a.2", { text: "hello" }));
    expect(read(past).slice(1)).toMatchObject([
      { text: "hel", again: true },
      { text: "hello", finish: { kind: "end" } },
    ]);
    expect(read(past)[2]).not.toHaveProperty("again");
  });

  test("is not marked while no turn follows, nor if the run ended with it", () => {
    expect(read(live.and(extend("hel"), park))[1]).not.toHaveProperty("again");
    expect(read(live.and(extend("hel"), recover("lose")))[1]).not.toHaveProperty("again");
  });

  test("is not a turn that ended as stopped without a stop: that was not cut off", () => {
    const past = live.and(settleTurn("turn_a.1", { outcome: cancelledBy(user), next: "turn", text: "one" }));
    expect(roles(past)).toEqual(["user", "assistant", "assistant"]);
    expect(read(past)[1]).not.toHaveProperty("again");
  });

  test("is not a turn whose calls were lost: that had ended", () => {
    const past = called.and(recover());
    expect(read(past)[1]).not.toHaveProperty("again");
    expect(roles(past)).toEqual(["user", "assistant", "tool", "assistant"]);
  });
});

describe("messages to a turn that has no output yet come before its answer", () => {
  test("a note, at the beginning of a run", () => {
    const past = given(post("news"), ...running("run_a"));
    expect(read(past).slice(0, 2)).toEqual([
      { role: "user", runId: "run_a", text: "prompt of run_a" },
      { role: "note", runId: "run_a", item: item("news") },
    ]);
  });

  test("notes, then steers, taken by a live turn without output", () => {
    const past = live.and(steer, post("news"), take("turn_a.1"));
    expect(roles(past)).toEqual(["user", "note", "user", "assistant"]);
    expect(roles(live.and(extend("hm"), steer, post("news"), take("turn_a.1")))).toEqual([
      "user",
      "assistant",
      "note",
      "user",
    ]);
  });

  test("a reminder, between the results and the next turn", () => {
    const past = live.and(
      settleAsking("turn_a.1", wanted("call_a.1")),
      cancelReminding("call_a.1"),
      settleCall("call_a.1", { outcome: cancelledBy(user) }),
    );
    expect(roles(past)).toEqual(["user", "assistant", "tool", "note", "assistant"]);
    expect(read(past)[3]).toEqual({ role: "note", runId: "run_a", item: reminder("call_a.1", "tool", user) });
  });

  test("a run that is withdrawn meanwhile is not among them", () => {
    const past = live.and(accept("run_b"), cancelRun("run_b"));
    expect(read(past).map(({ role, runId }) => `${role} ${runId}`)).toEqual([
      "user run_a",
      "assistant run_a",
      "user run_b",
      "assistant run_b",
    ]);
    const steered = past.and(steer, take("turn_a.1"));
    expect(read(steered).map(({ role, runId }) => `${role} ${runId}`)).toEqual([
      "user run_a",
      "user run_s",
      "assistant run_a",
      "user run_b",
      "assistant run_b",
    ]);
  });

  test("even if a cancel of the session withdraws others", () => {
    const past = live.and(accept("run_b"), steer, cancelSession(), settleTurn("turn_a.1"));
    expect(roles(past)).toEqual(["user", "assistant", "user", "assistant", "user", "assistant"]);
  });
});

describe("a summary", () => {
  const summary = { role: "summary", runId: "run_a", text: "in short", request: "prompt of run_a" } as const;

  test("replaces everything before it, and has the prompt of the run", () => {
    const past = given(...running("run_z"), settleTurn("turn_z.1"), ...running("run_a"), compact("turn_a.1"));
    expect(roles(past)).toEqual(["user", "assistant", "user", "summary", "assistant"]);
    expect(read(past)[3]).toEqual(summary);
  });

  test("comes after what the turn has taken in, and before what it takes in later", () => {
    const past = live.and(post("one"), take("turn_a.1"), compact("turn_a.1"), post("two"), take("turn_a.1"));
    expect(roles(past)).toEqual(["user", "note", "summary", "note", "assistant"]);
  });

  test("comes before its turn, whatever its output: calls of that turn are followed by their results", () => {
    const past = live.and(
      extend("so far"),
      call("call_a.1"),
      settleCall("call_a.1"),
      compact("turn_a.1"),
      settleAsking("turn_a.1", wanted("call_a.2")),
      settleCall("call_a.2", { result: "new" }),
    );
    expect(roles(past)).toEqual(["user", "summary", "assistant", "tool", "assistant", "tool", "assistant"]);
    expect(results(past).map((result) => result.callId)).toEqual(["call_a.1", "call_a.2"]);
  });

  test("has an empty prompt in a slice of the log without it", () => {
    const slice = transcript([{ type: "session.compacted", turnId: "turn_a.1", summary: "in short" }]);
    expect(slice[0]).toEqual({ ...summary, request: "" });
  });
});

describe("processes", () => {
  const spawning = called.and(
    beginProcess("call_a.1"),
    noteProcess("proc_1.1"),
    beginProcess(),
    beginProcess("call_a.2"),
    detachProcess("proc_1.3", "silent"),
  );

  test("are not part of the conversation, which is the same without them", () => {
    const past = spawning.and(
      cancelProcess("proc_1.1"),
      cancelProcess("proc_1.2"),
      stopProcess("proc_1.1"),
      stopProcess("proc_1.2"),
      settleProcess("proc_1.3"),
      settleCall("call_a.1", { result: "one" }),
      settleCall("call_a.2"),
      settleCall("call_a.3"),
      settleTurn("turn_a.2", { text: "done" }),
    );
    const { length } = past.events;
    const others = past.events.filter(({ type }) => !type.startsWith("process."));
    expect(others.length).toBeLessThan(length - 8);
    expect(transcript(others)).toEqual(read(past));
    expect(roles(past)).toEqual(["user", "assistant", "tool", "assistant"]);
  });

  test("a result comes where the turn that receives it begins: after the results of its calls", () => {
    const past = spawning.and(
      settleProcess("proc_1.2"),
      settleCall("call_a.1"),
      settleCall("call_a.2"),
      settleCall("call_a.3"),
    );
    expect(roles(past)).toEqual(["user", "assistant", "tool", "note", "assistant"]);
  });

  test("G22: a result that a call has returned is not repeated", () => {
    const past = spawning.and(
      settleFor("call_a.1", "proc_1.2"),
      settleCall("call_a.1", { result: "it has ended", heard: ["proc_1.2"] }),
      settleCall("call_a.2"),
      settleCall("call_a.3"),
    );
    expect(roles(past)).toEqual(["user", "assistant", "tool", "assistant"]);
  });

  test("a run that a result begins has a placeholder prompt, followed by the result", () => {
    const woken = given(beginProcess(), settleProcess("proc_1.1"), start);
    const runId = "run_1.w5";
    expect(read(woken)).toMatchObject([
      { role: "user", runId, text: "A background process has ended." },
      { role: "note", runId, item: { kind: "result", data: { processId: "proc_1.1" } } },
      { role: "assistant", runId, turnId: "turn_1.w5.1", finish: { kind: "live" } },
    ]);
    const { events } = woken.and(settleTurn("turn_1.w5.1", { text: "I see." }), ...running("run_b"));
    const book = new Book("model");
    for (const event of events) book.note(event);
    expect(book.messages().map((message) => message.role)).toEqual(["user", "note", "assistant", "user", "assistant"]);
  });

  test("a run that a result begins, once withdrawn, leaves its result to the next run", () => {
    const past = given(beginProcess(), settleProcess("proc_1.1"), cancelRun("run_1.w5"), ...running("run_b"));
    expect(roles(past)).toEqual(["user", "assistant", "user", "note", "assistant"]);
    expect(read(past)[1]).toMatchObject({ runId: "run_1.w5", finish: { kind: "cancelled" } });
  });
});

test("messages() can be called at any time, and reading continues", () => {
  const book = new Book("people");
  const { events } = called.and(settleCall("call_a.1"));
  for (const [at, event] of events.entries()) {
    book.note(event);
    expect(book.messages()).toEqual(transcript(events.slice(0, at + 1)));
  }
});

describe("G6: a prompt that was withdrawn before it began", () => {
  const told = (past: Given): readonly Message[] => {
    const book = new Book("model");
    for (const event of past.events) book.note(event);
    return book.messages();
  };
  const rolesOf = (messages: readonly Message[]) => messages.map(({ role, runId }) => `${role} ${runId}`);
  const before = live.and(accept("run_c"), cancelRun("run_c"));

  test("is shown to people, marked, and never given to a model: while another run is live", () => {
    expect(rolesOf(told(before))).toEqual(["user run_a", "assistant run_a"]);
    expect(read(before).slice(2)).toEqual([
      { role: "user", runId: "run_c", text: "prompt of run_c", withdrawn: true },
      { role: "assistant", runId: "run_c", text: "", calls: [], finish: { kind: "cancelled", reason: user } },
    ]);
  });

  test("nor when that run has ended, nor by a run that follows", () => {
    const after = before.and(
      settleTurn("turn_a.1", { text: "ok" }),
      accept("run_d"),
      cancelRun("run_d"),
      ...running("run_e"),
    );
    expect(rolesOf(told(after))).toEqual(["user run_a", "assistant run_a", "user run_e", "assistant run_e"]);
    expect(rolesOf(read(after))).toEqual([
      ...["user run_a", "assistant run_a", "user run_c", "assistant run_c", "user run_d", "assistant run_d"],
      ...["user run_e", "assistant run_e"],
    ]);
    expect(read(after).map((message) => "withdrawn" in message)).toEqual([
      ...[false, false, true, false, true, false, false, false],
    ]);
  });

  test("nor after an edit, nor as a steer", () => {
    const past = live.and(accept("run_c"), { type: "edit", runId: "run_c", prompt: { text: "better" } }, steer);
    const after = past.and(cancelRun("run_c"), cancelRun("run_s"), settleTurn("turn_a.1"));
    expect(rolesOf(told(after))).toEqual(["user run_a", "assistant run_a"]);
    expect(read(after)[2]).toMatchObject({ text: "better", withdrawn: true });
  });

  test("differs from one that began: the model receives that, with its stop", () => {
    const stopped = live.and(cancelRun("run_a"), settleTurn("turn_a.1", { outcome: cancelledBy(user) }));
    expect(told(stopped)).toEqual(read(stopped));
    const events: readonly Event[] = [
      { type: "run.accepted", runId: "run_a", prompt: { text: "go" }, delivery: "queue" },
      { type: "run.started", runId: "run_a" },
      { type: "run.settled", runId: "run_a", outcome: cancelledBy(user) },
    ];
    const book = new Book("model");
    for (const event of events) book.note(event);
    expect(book.messages()).toEqual(transcript(events));
    expect(book.messages()).toMatchObject([
      { role: "user", text: "go" },
      { role: "assistant", finish: cancelledBy(user) },
    ]);
  });
});
