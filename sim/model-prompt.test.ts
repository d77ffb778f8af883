// The tester, tested: requests that no provider takes are told from those that it takes.
import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { expect, test } from "vitest";
import { toldCalls, wrongWith } from "./model-prompt.ts";

const user = (text: string): LanguageModelV4Message => ({ role: "user", content: [{ type: "text", text }] });
const says = (text: string): LanguageModelV4Message => ({ role: "assistant", content: [{ type: "text", text }] });
const calls = (...ids: readonly string[]): LanguageModelV4Message => ({
  role: "assistant",
  content: ids.map((toolCallId) => ({ type: "tool-call", toolCallId, toolName: "read", input: {} })),
});
const results = (...ids: readonly string[]): LanguageModelV4Message => ({
  role: "tool",
  content: ids.map((toolCallId) => ({
    ...{ type: "tool-result", toolCallId, toolName: "read" },
    output: { type: "text", value: "done" },
  })),
});

test.each<[string, LanguageModelV4Prompt]>([
  ["a question", [user("a")]],
  ["calls with their results", [{ role: "system", content: "s" }, user("a"), calls("1", "2"), results("1", "2")]],
  ["an answer and another question", [user("a"), says("b"), user("c")]],
])("%s is taken", (_, prompt) => {
  expect(wrongWith(prompt)).toEqual([]);
});

test.each<[string, LanguageModelV4Prompt, string]>([
  ["nothing at all", [], "it begins with nothing"],
  ["an answer that comes first", [says("a"), user("b")], "it begins with assistant"],
  ["an answer that comes last", [user("a"), says("b")], "it ends with assistant"],
  ["two of the same in a row", [user("a"), user("b")], "0 and 1 are both said by user"],
  ["a call without a result", [user("a"), calls("1", "2"), results("1")], "the calls 1,2 have the results 1"],
  ["a call with two", [user("a"), calls("1"), results("1", "1")], "the calls 1 have the results 1,1"],
  ["results of nobody", [user("a"), says("b"), results("1")], "2 has results of no calls"],
  ["a name that is used twice", [user("a"), calls("1"), results("1"), calls("1"), results("1")], "the name 1 is used"],
  ["an empty text", [user(" ")], "0 says nothing"],
  ["a late instruction", [user("a"), { role: "system", content: "s" }, user("b")], "a system message in the middle"],
])("%s is not", (_, prompt, why) => {
  expect(wrongWith(prompt).join("; ")).toContain(why);
});

test("what a model receives about a call is read off its result", () => {
  const told = (output: Extract<(typeof PARTS)[number], { type: string }>): string | undefined =>
    toldCalls([user("a"), calls("1"), { role: "tool", content: [{ ...PART, output }] }])[0]?.how;
  expect(PARTS.map(told)).toEqual(["done", "denied", "stopped", "lost", "failed"]);
});

const PART = { type: "tool-result", toolCallId: "1", toolName: "read" } as const;
const PARTS = [
  { type: "text", value: "STOPPED is what it printed" },
  { type: "execution-denied", reason: "no" },
  { type: "error-text", value: "STOPPED by the user." },
  { type: "error-text", value: "LOST: nobody knows." },
  { type: "error-text", value: "no such file" },
] as const;
