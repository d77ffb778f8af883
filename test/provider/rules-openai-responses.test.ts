import { describe, expect, test } from "vitest";
import { newMemory } from "./format.ts";
import { type ResponsesRule, responsesRules } from "./rules-openai-responses.ts";

const user = { role: "user", content: [{ type: "input_text", text: "go" }] };
const assistant = { role: "assistant", content: "hm" };
const call = (call_id: string, args: unknown = "{}", name = "read") => ({
  type: "function_call",
  call_id,
  name,
  arguments: args,
});
const output = (call_id: string) => ({ type: "function_call_output", call_id, output: "done" });
const reasoning = { type: "reasoning", id: "rs_1", summary: [] };
const reference = (id: string) => ({ type: "item_reference", id });
const long = "x".repeat(65);

/** For each rule what it lets pass and what it does not: inputs, one list per case. */
const cases: Readonly<Record<ResponsesRule, { readonly valid: unknown[][]; readonly invalid: unknown[][] }>> = {
  inputPresent: { valid: [[user]], invalid: [[]] },
  knownItems: {
    valid: [[{ type: "message", ...user }], [{ role: "developer", content: "be" }, user]],
    invalid: [[{ type: "tool_call" }], [{}], [{ role: "tool", content: "a" }]],
  },
  contentPresent: {
    valid: [
      [user, assistant],
      [user, call("a"), { ...output("a"), output: "" }],
    ],
    invalid: [
      [{ role: "user", content: [] }],
      [{ role: "user", content: [{ type: "input_text", text: "" }] }],
      [user, { role: "assistant", content: "" }],
      [user, call("a"), { type: "function_call_output", call_id: "a" }],
    ],
  },
  callsShaped: {
    valid: [[user, call("a.b"), output("a.b")]],
    invalid: [
      [user, call(""), output("")],
      [user, call(long), output(long)],
      [user, call("a", "{}", "read file"), output("a")],
    ],
  },
  argumentsAreJson: {
    valid: [[user, call("a", '{"path":"a"}'), output("a")]],
    invalid: [
      [user, call("a", '{"path"'), output("a")],
      [user, call("a", { path: "a" }), output("a")],
      [user, call("a", '"{}"'), output("a")],
    ],
  },
  callIdsUnique: {
    valid: [[user, call("a"), call("b"), output("a"), output("b")]],
    invalid: [
      [user, call("a"), call("a"), output("a")],
      [user, call("a"), output("a"), assistant, call("a"), output("a")],
    ],
  },
  callsAnswered: {
    valid: [[user, call("a"), output("a"), call("b"), output("b"), assistant]],
    invalid: [
      [user, call("a")],
      [user, call("a"), call("b"), output("b")],
      [user, call("a"), user, output("a")],
      [user, call("a"), assistant, output("a")],
    ],
  },
  answeredOnce: {
    valid: [[user, call("a"), output("a")]],
    invalid: [[user, call("a"), output("a"), output("a")]],
  },
  outputsCalled: {
    valid: [[user, call("a"), output("a")]],
    invalid: [
      [user, output("a")],
      [user, output("a"), call("a")],
      [user, call("a"), output("a"), output("b")],
    ],
  },
  reasoningFollowed: {
    valid: [
      [user, reasoning, assistant],
      [user, reasoning, { ...reasoning, id: "rs_2" }, call("a"), output("a")],
      [user, reference("rs_stored"), reference("msg_stored")],
    ],
    invalid: [
      [user, reasoning],
      [user, reasoning, user],
      [user, call("a"), reasoning, output("a")],
      [user, reference("rs_stored"), user],
    ],
  },
  referencesKnown: {
    valid: [[user, reference("msg_stored")]],
    invalid: [[user, reference("msg_of_a_cancelled_answer")]],
  },
};

describe.each(Object.entries(cases))("%s", (name, { valid, invalid }) => {
  test.each(valid.map((input) => [input]))("lets pass: %j", (input) => {
    expect(broken({ input })).toEqual([]);
  });
  test.each(invalid.map((input) => [input]))("catches: %j", (input) => {
    expect(broken({ input })).toContain(name);
  });
});

test("the input may be a text", () => {
  expect(broken({ input: "go" })).toEqual([]);
  expect(broken({ input: "" })).toEqual(["inputPresent"]);
});

test("a body that is no object breaks a rule and no program", () => {
  for (const body of [null, 1, "a", [], { input: 1 }, { input: [null, 1] }]) expect(broken(body)).not.toEqual([]);
});

/** The names of the rules this body breaks, with two items in store. */
function broken(body: unknown): readonly string[] {
  const memory = newMemory();
  memory.items.set("rs_stored", "reasoning").set("msg_stored", "message");
  return Object.entries(responsesRules).flatMap(([name, rule]) => (rule(body, memory).length > 0 ? [name] : []));
}
