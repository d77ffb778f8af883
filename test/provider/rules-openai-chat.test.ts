import { describe, expect, test } from "vitest";
import { type ChatRule, chatRules } from "./rules-openai-chat.ts";

const user = { role: "user", content: "go" };
const call = (id: unknown, args: unknown = "{}", name = "read") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const calls = (...tool_calls: readonly unknown[]) => ({ role: "assistant", content: null, tool_calls });
const result = (tool_call_id: string) => ({ role: "tool", tool_call_id, content: "done" });
const long = "x".repeat(41);

/** For each rule what it lets pass and what it does not: messages, one list per case. */
const cases: Readonly<Record<ChatRule, { readonly valid: unknown[][]; readonly invalid: unknown[][] }>> = {
  messagesPresent: { valid: [[user]], invalid: [[]] },
  knownRoles: {
    valid: [[{ role: "system", content: "a" }, { role: "developer", content: "b" }, user]],
    invalid: [[{ role: "function", content: "a" }], [{ content: "a" }]],
  },
  contentPresent: {
    valid: [
      [{ role: "user", content: [{ type: "text", text: "go" }] }],
      [user, calls(call("a")), { ...result("a"), content: "" }],
      [user, { role: "assistant", content: "", tool_calls: [call("a")] }, result("a")],
    ],
    invalid: [
      [{ role: "user", content: "" }],
      [{ role: "user", content: [] }],
      [{ role: "user", content: null }],
      [{ role: "user", content: [{ type: "text", text: "" }] }],
      [user, { role: "assistant", content: "" }],
      [user, { role: "assistant", content: null }],
      [user, calls(call("a")), { role: "tool", tool_call_id: "a" }],
      [{ role: "system", content: "" }, user],
    ],
  },
  callsShaped: {
    valid: [[user, calls(call("call_1.a")), result("call_1.a")]],
    invalid: [
      [user, calls()],
      [user, calls(call(undefined))],
      [user, calls(call(""))],
      [user, calls(call(long)), result(long)],
      [user, calls({ ...call("a"), type: "custom" }), result("a")],
      [user, calls(call("a", "{}", "read file")), result("a")],
      [{ ...user, tool_calls: [call("a")] }, result("a")],
    ],
  },
  argumentsAreJson: {
    valid: [[user, calls(call("a", '{"path":"a"}')), result("a")]],
    invalid: [
      [user, calls(call("a", { path: "a" })), result("a")],
      [user, calls(call("a", '{"path"')), result("a")],
      [user, calls(call("a", '"text"')), result("a")],
      [user, calls(call("a", "")), result("a")],
    ],
  },
  callIdsUnique: {
    valid: [[user, calls(call("a"), call("b")), result("b"), result("a")]],
    invalid: [[user, calls(call("a"), call("a")), result("a")]],
  },
  callsAnswered: {
    valid: [[user, calls(call("a")), result("a"), calls(call("b")), result("b"), user]],
    invalid: [
      [user, calls(call("a"))],
      [user, calls(call("a"), call("b")), result("a")],
      [user, calls(call("a")), user, result("a")],
      [user, calls(call("a")), { role: "assistant", content: "hm" }],
    ],
  },
  answeredOnce: {
    valid: [[user, calls(call("a")), result("a"), calls(call("a")), result("a")]],
    invalid: [[user, calls(call("a")), result("a"), result("a")]],
  },
  resultsCalled: {
    valid: [[user, calls(call("a")), result("a")]],
    invalid: [
      [user, result("a")],
      [user, calls(call("a")), result("a"), result("b")],
      [user, calls(call("a")), result("a"), user, result("a")],
    ],
  },
};

describe.each(Object.entries(cases))("%s", (name, { valid, invalid }) => {
  test.each(valid)("lets pass: %j", (...messages) => {
    expect(broken(messages)).toEqual([]);
  });
  test.each(invalid.map((messages) => [messages]))("catches: %j", (messages) => {
    expect(broken(messages)).toContain(name);
  });
});

/** The names of the rules these messages break. */
function broken(messages: readonly unknown[]): readonly string[] {
  return Object.entries(chatRules).flatMap(([name, rule]) =>
    rule({ model: "m", stream: true, messages }).length > 0 ? [name] : [],
  );
}

test("a body that is no object breaks a rule and no program", () => {
  for (const body of [null, 1, "a", [], { messages: "a" }, { messages: [null, 1] }]) {
    expect(Object.values(chatRules).flatMap((rule) => rule(body))).not.toEqual([]);
  }
});
