// G17: a transcript has the order of events, for people and for models alike.
import { describe, expect, test } from "vitest";
import {
  accept,
  call,
  cancelledBy,
  cancelRun,
  compact,
  recover,
  running,
  settleAsking,
  settleCall,
  settleTurn,
  take,
  user,
  wanted,
} from "../../../test/fixtures/commands.ts";
import { transcriptErrors } from "../../../test/oracle/check-transcript.ts";
import { type Given, given } from "../../testing/given.ts";
import type { TurnPart } from "../model/event.ts";
import type { Message } from "./transcript.ts";
import { Book, transcript } from "./transcript-builder.ts";

const live = given(...running("run_a"));
const extend = (text: string) => ({ type: "extend", turnId: "turn_a.1", text }) as const;
const steer = accept("run_s", { delivery: "steer" });

function told(past: Given): readonly Message[] {
  const book = new Book("model");
  for (const event of past.events) book.note(event);
  return book.messages();
}

/** The conversation in short: roles, texts, calls and results. The same for people and for a model. */
function short(past: Given): readonly string[] {
  expect(transcriptErrors(past.events)).toEqual([]);
  const messages = transcript(past.events);
  expect(told(past)).toEqual(messages);
  return messages.map((message) => {
    switch (message.role) {
      case "assistant":
        return `assistant "${message.text}" ${message.calls.map((one) => one.callId).join(" ")} ${message.finish.kind}`;
      case "tool":
        return `tool ${message.results.map(({ callId, outcome }) => `${callId} ${outcome.kind}`).join(", ")}`;
      case "user":
        return `user "${message.text}"`;
      default:
        return message.role;
    }
  });
}

const asked = 'user "prompt of run_a"';

describe("text that a turn emits after a call comes after the call and its result", () => {
  const first = live.and(extend("I look. "), call("call_a.1"), settleCall("call_a.1"));

  test("while the turn is live", () => {
    expect(short(first.and(extend("I see. ")))).toEqual([
      ...[asked, 'assistant "I look. " call_a.1 calls', "tool call_a.1 completed", 'assistant "I see. "  live'],
    ]);
  });

  test("when it has ended, even if the text after the last call was not recorded before", () => {
    const past = first.and(
      extend("I see. "),
      call("call_a.2"),
      settleCall("call_a.2"),
      settleTurn("turn_a.1", { text: "I look. I see. Done." }),
    );
    expect(short(past)).toEqual([
      ...[asked, 'assistant "I look. " call_a.1 calls', "tool call_a.1 completed"],
      ...['assistant "I see. " call_a.2 calls', "tool call_a.2 completed", 'assistant "Done."  end'],
    ]);
  });

  test("when there is no text after the last call, there is no empty message", () => {
    expect(short(first.and(settleTurn("turn_a.1", { text: "" })))).toEqual([
      ...[asked, 'assistant "I look. " call_a.1 end', "tool call_a.1 completed"],
    ]);
    expect(short(first.and(settleTurn("turn_a.1", { text: "I look. " })))).toEqual([
      ...[asked, 'assistant "I look. " call_a.1 end', "tool call_a.1 completed"],
    ]);
  });

  test("when the turn returns another text than it has emitted, the returned text comes last", () => {
    expect(short(first.and(settleTurn("turn_a.1", { text: "42" })))).toEqual([
      ...[asked, 'assistant "I look. " call_a.1 calls', "tool call_a.1 completed", 'assistant "42"  end'],
    ]);
    expect(short(first.and(extend("Hm. "), settleTurn("turn_a.1", { text: "42" })))).toEqual([
      ...[asked, 'assistant "I look. " call_a.1 calls', "tool call_a.1 completed", 'assistant "42"  end'],
    ]);
  });

  test("when the call is still running", () => {
    const past = live.and(call("call_a.1"), extend("Meanwhile. "));
    expect(short(past)).toEqual([
      ...[asked, 'assistant "" call_a.1 calls', "tool call_a.1 running", 'assistant "Meanwhile. "  live'],
    ]);
    expect(short(past.and(settleCall("call_a.1")))[2]).toBe("tool call_a.1 completed");
  });

  test("when the run is stopped, or cut off and repeated", () => {
    const past = first.and(extend("I see. "));
    const stopped = past.and(
      cancelRun("run_a"),
      settleTurn("turn_a.1", { outcome: cancelledBy(user), text: "I look. I see. " }),
    );
    expect(short(stopped).slice(1)).toEqual([
      ...['assistant "I look. " call_a.1 calls', "tool call_a.1 completed", 'assistant "I see. "  cancelled'],
    ]);
    const again = past.and(recover());
    expect(transcript(again.events).map((message) => "again" in message)).toEqual([
      ...[false, true, false, true, false],
    ]);
  });
});

describe("a call", () => {
  test("requested after the results of others comes after them", () => {
    const past = live.and(call("call_a.1"), settleCall("call_a.1"), call("call_a.2"));
    expect(short(past)).toEqual([
      ...[asked, 'assistant "" call_a.1 calls', "tool call_a.1 completed"],
      ...['assistant "" call_a.2 live', "tool call_a.2 running"],
    ]);
  });

  test("that runs beside others is in the same message, with results in the order of the calls", () => {
    const past = live.and(call("call_a.1"), call("call_a.2"), settleCall("call_a.2"), call("call_a.3"));
    expect(short(past.and(settleCall("call_a.3"), settleCall("call_a.1"), settleTurn("turn_a.1")))).toEqual([
      ...[asked, 'assistant "" call_a.1 call_a.2 call_a.3 end'],
      "tool call_a.1 completed, call_a.2 completed, call_a.3 completed",
    ]);
  });

  test("requested at the end of a turn comes after the calls that the turn made before", () => {
    const past = live.and(call("call_a.1"), settleCall("call_a.1"), settleAsking("turn_a.1", wanted("call_a.2")));
    expect(short(past).slice(1, 5)).toEqual([
      ...['assistant "" call_a.1 calls', "tool call_a.1 completed", 'assistant "" call_a.2 calls'],
      "tool call_a.2 running",
    ]);
  });
});

describe("a steer that a turn takes in", () => {
  test("comes between the text before it and the text after it", () => {
    const past = live.and(extend("One. "), steer, take("turn_a.1"), extend("Two. "));
    const expected = [asked, 'assistant "One. "  end', 'user "prompt of run_s"'];
    expect(short(past)).toEqual([...expected, 'assistant "Two. "  live']);
    expect(short(past.and(settleTurn("turn_a.1", { text: "One. Two. Three." })))).toEqual([
      ...[...expected, 'assistant "Two. Three."  end'],
    ]);
  });

  test("comes before a later call, and after earlier calls", () => {
    const past = live.and(call("call_a.1"), steer, take("turn_a.1"), call("call_a.2"), settleCall("call_a.1"));
    expect(short(past)).toEqual([
      ...[asked, 'assistant "" call_a.1 calls', "tool call_a.1 completed", 'user "prompt of run_s"'],
      ...['assistant "" call_a.2 live', "tool call_a.2 running"],
    ]);
  });
});

test("G18: the cost of a turn is in its last message only", () => {
  const usage = { inputTokens: 1, outputTokens: 2, estimated: false };
  const past = live.and(
    extend("a"),
    call("call_a.1"),
    settleCall("call_a.1"),
    settleTurn("turn_a.1", { text: "ab", usage }),
  );
  expect(transcript(past.events).map((message) => "usage" in message)).toEqual([...[false, false, false, true]]);
});

test("an answer in parts stays one message: its parts have the places of its calls", () => {
  const parts: readonly TurnPart[] = [
    { kind: "text", text: "a" },
    { kind: "call", index: 0 },
    { kind: "text", text: "b" },
    { kind: "call", index: 1 },
  ];
  const past = live.and(
    extend("a"),
    call("call_a.1"),
    settleCall("call_a.1"),
    extend("b"),
    call("call_a.2"),
    settleTurn("turn_a.1", { text: "ab", parts }),
    settleCall("call_a.2"),
  );
  expect(transcript(past.events)).toMatchObject([
    { role: "user" },
    { role: "assistant", text: "ab", parts, calls: [{ callId: "call_a.1" }, { callId: "call_a.2" }] },
    { role: "tool", results: [{ outcome: { kind: "completed" } }, { outcome: { kind: "completed" } }] },
  ]);
});

describe("a summary, for a model", () => {
  const past = given(...running("run_y"), settleTurn("turn_y.1"), ...running("run_z"), settleTurn("turn_z.1")).and(
    ...running("run_a"),
    call("call_a.1"),
    settleCall("call_a.1"),
    settleTurn("turn_a.1", { next: "turn" }),
    compact("turn_a.2"),
  );

  test("replaces all runs before its own, which is kept whole", () => {
    expect(told(past)).toEqual(transcript(past.events).slice(4));
    expect(told(past).map(({ role, runId }) => `${role} ${runId}`)).toEqual([
      ...["user run_a", "assistant run_a", "tool run_a", "summary run_a", "assistant run_a"],
    ]);
  });

  test("is followed by everything later, until the next summary", () => {
    const later = past.and(settleTurn("turn_a.2", { text: "done" }), ...running("run_b"));
    expect(told(later)).toEqual(transcript(later.events).slice(4));
    const next = later.and(compact("turn_b.1"));
    expect(told(next).map(({ role, runId }) => `${role} ${runId}`)).toEqual([
      ...["user run_b", "summary run_b", "assistant run_b"],
    ]);
  });
});
