import { expect, test } from "vitest";
import type { Message } from "../../../core/read/transcript.ts";
import { historyText } from "./history-text.ts";
import { TRANSCRIPT_CHARS_MAX } from "./limits.ts";
import { earlierSession, SESSION_CALL } from "./session-call.ts";

const made = (agent: string, sessionId: string): Message => {
  const result = { agent, sessionId };
  const one = { callId: "call_a.1", name: SESSION_CALL, outcome: { kind: "completed" }, result } as const;
  return { role: "tool", runId: "run_a", results: [one] };
};
const assistant = (text: string, finish: Extract<Message, { role: "assistant" }>["finish"]): Message => ({
  ...{ role: "assistant", runId: "run_a", text, calls: [], finish },
});

test("the conversation is rendered in order, with each outcome, and without the current prompt", () => {
  const messages: readonly Message[] = [
    { role: "user", runId: "run_a", text: "do it" },
    made("x", "s-1"),
    assistant("I did", { kind: "cancelled", reason: { kind: "user" } }),
    {
      role: "tool",
      runId: "run_a",
      results: [{ callId: "call_a.2", name: "Edit", outcome: { kind: "completed" }, result: "ok", changes: ["/a"] }],
    },
    { role: "note", runId: "run_a", item: { kind: "reminder", text: "It was stopped." } },
    assistant("", { kind: "lost" }),
    assistant("", { kind: "end" }),
    { role: "user", runId: "run_b", text: "and now" },
  ];
  expect(historyText(messages, "run_b")).toBe(
    [
      "USER: do it",
      "YOU: I did [stopped by the user]",
      'YOU DID: Edit: completed "ok" (changed: /a)',
      "NOTE: It was stopped.",
      "YOU:  [cut off; how far it got is not known]",
    ].join("\n\n"),
  );
  expect(historyText(messages.slice(-1), "run_b")).toBe("");
});

test("G33: of a long conversation the end is kept, with the number of omitted characters", () => {
  const text = historyText([{ role: "user", runId: "run_a", text: "x".repeat(TRANSCRIPT_CHARS_MAX) }], "run_b");
  expect(text).toMatch(/^\[6 characters before this are left out\.\]\nx/);
});

test("the agent's last session is found, unless a later one is another agent's", () => {
  expect(earlierSession([made("x", "s-1"), made("x", "s-2")], "x")).toBe("s-2");
  expect(earlierSession([made("x", "s-1"), made("y", "s-2")], "x")).toBeUndefined();
  expect(earlierSession([made("x", "")], "x")).toBeUndefined();
  expect(earlierSession([], "x")).toBeUndefined();
});
