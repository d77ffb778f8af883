import { expect, test } from "vitest";
import { mergeCallChange, readCallChange, readSessionUpdate } from "./update.ts";

const told = (update: unknown) => readSessionUpdate({ sessionId: "s", update }).update;
const chunk = (content: unknown) => told({ sessionUpdate: "agent_message_chunk", content });

test("text and reasoning are distinguished", () => {
  expect(chunk({ type: "text", text: "hello" })).toEqual({ kind: "text", text: "hello" });
  const thought = { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "hm" } };
  expect(told(thought)).toEqual({ kind: "thought", text: "hm" });
});

test.each([
  [{ type: "image", data: "…" }, "[image]"],
  [{ type: "resource_link", name: "a.ts", uri: "file:///a.ts" }, "[a.ts](file:///a.ts)"],
  [{ type: "resource", resource: { uri: "file:///b", text: "in it" } }, "in it"],
  [{ type: "resource", resource: { uri: "file:///b", blob: "AA" } }, "[file:///b]"],
  [{ type: "text" }, ""],
  ["nothing", ""],
])("content becomes text or a placeholder: %j", (content, text) => {
  expect(chunk(content)).toEqual({ kind: "text", text });
});

test.each([undefined, null, 7, [], {}, { sessionUpdate: "of_tomorrow" }, { sessionUpdate: "tool_call" }])(
  "an unknown update is passed on unchanged: %j",
  (update) => {
    expect(told(update)).toEqual({ kind: "other", raw: update });
    expect(readSessionUpdate(update).sessionId).toBe("");
  },
);

test("an update of a call keeps valid fields, ignores malformed ones, and leaves missing ones unchanged", () => {
  const first = readCallChange({
    toolCallId: "t",
    title: "Run",
    status: "pending",
    rawInput: { a: 1 },
    kind: "execute",
  });
  const content = [
    { type: "content", content: { type: "text", text: "out" } },
    { type: "diff", path: "/a", newText: "new" },
    { type: "terminal", terminalId: "x" },
    "nothing",
  ];
  const locations = [{ path: "/a" }, { line: 3 }];
  const second = readCallChange({ toolCallId: "t", title: null, status: "cancelled", content, locations });
  if (first === undefined || second === undefined) throw new Error("It says which call it speaks of.");
  expect(mergeCallChange(first, second)).toEqual({
    ...{ id: "t", title: "Run", tool: undefined, sort: "execute", status: "pending", input: { a: 1 } },
    ...{ paths: ["/a"], locations: [{ path: "/a" }], output: undefined },
    content: [
      { kind: "text", text: "out", raw: content[0] },
      { kind: "diff", path: "/a", before: undefined, after: "new", raw: content[1] },
    ],
  });
  expect(readCallChange({ title: "of no call" })).toBeUndefined();
});
