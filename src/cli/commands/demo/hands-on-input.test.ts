import { expect, test } from "vitest";
import { commandOf } from "./hands-on-input.ts";

test.each([
  ["count to 3", { kind: "prompt", text: "count to 3", delivery: "queue" }],
  ["  !be quick ", { kind: "prompt", text: "be quick", delivery: "interrupt" }],
  ["> and list", { kind: "prompt", text: "and list", delivery: "steer" }],
  ["say stop", { kind: "prompt", text: "stop", delivery: "queue" }],
  ["", { kind: "nothing" }],
  ["!", { kind: "nothing" }],
  ["stop", { kind: "stop-session" }],
  ["STOP", { kind: "stop-session" }],
  ["stop session enough", { kind: "stop-session", note: "enough" }],
  ["stop run", { kind: "stop-run" }],
  ["stop run wrong way", { kind: "stop-run", note: "wrong way" }],
  ["stop 2", { kind: "stop-call", call: 2 }],
  ["stop #12 too slow", { kind: "stop-call", call: 12, note: "too slow" }],
  ["yes", { kind: "allow", remember: false }],
  ["yes please!", { kind: "allow", remember: false }],
  ["yes 3", { kind: "allow", remember: false, question: 3 }],
  ["always", { kind: "allow", remember: true }],
  ["always be kind", { kind: "prompt", text: "always be kind", delivery: "queue" }],
  ["no", { kind: "deny" }],
  ["no 3 not today", { kind: "deny", question: 3, note: "not today" }],
  ["no not today", { kind: "deny", note: "not today" }],
  ["answer deep blue", { kind: "answer", text: "deep blue" }],
  ["queue", { kind: "queue" }],
  ["queue the parcels", { kind: "prompt", text: "queue the parcels", delivery: "queue" }],
  ["drop 1", { kind: "drop", place: 1 }],
  ["why", { kind: "why" }],
  ["log", { kind: "log" }],
  ["?", { kind: "help" }],
  ["exit", { kind: "quit" }],
  ["constructor", { kind: "prompt", text: "constructor", delivery: "queue" }],
])("%j", (typed, command) => {
  expect(commandOf(typed)).toEqual(command);
});

test.each(["stop it now", "drop", "drop it", "answer"])(
  "%j is a malformed command, and is not sent to the agent",
  (typed) => {
    expect(commandOf(typed)).toMatchObject({ kind: "unclear" });
  },
);
