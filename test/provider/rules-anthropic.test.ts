import { describe, expect, test } from "vitest";
import { type AnthropicRule, anthropicRules, signatureOf } from "./rules-anthropic.ts";

const text = (words: string) => ({ type: "text", text: words });
const user = (...content: readonly unknown[]) => ({ role: "user", content });
const assistant = (...content: readonly unknown[]) => ({ role: "assistant", content });
const go = user(text("go"));
const use = (id: string, input: unknown = {}, name = "read") => ({ type: "tool_use", id, name, input });
const result = (tool_use_id: string) => ({ type: "tool_result", tool_use_id, content: "done" });
const thinking = { type: "thinking", thinking: "hm", signature: signatureOf("hm") };
const said = (...messages: readonly unknown[]) => ({ messages });

type Body = Readonly<Record<string, unknown>>;

/** For each rule what it lets pass and what it does not. */
const cases: Readonly<Record<AnthropicRule, { readonly valid: readonly Body[]; readonly invalid: readonly Body[] }>> = {
  maxTokensPresent: {
    valid: [said(go)],
    invalid: [
      { ...said(go), max_tokens: undefined },
      { ...said(go), max_tokens: 0 },
    ],
  },
  messagesPresent: { valid: [said(go)], invalid: [said(), {}] },
  knownRoles: {
    valid: [said(go, assistant(text("hm")), go)],
    invalid: [
      said({ role: "system", content: "be" }, go),
      said(go, assistant(text("a")), { role: "tool", content: "a" }),
    ],
  },
  firstIsUser: { valid: [said(go)], invalid: [said(assistant(text("hm")), go)] },
  lastIsUser: { valid: [said(go, assistant(text("hm")), go)], invalid: [said(go, assistant(text("hm")))] },
  rolesAlternate: {
    valid: [said(go, assistant(text("hm")), go)],
    invalid: [said(go, go), said(go, assistant(text("a")), assistant(text("b")), go)],
  },
  contentPresent: {
    valid: [said({ role: "user", content: "go" })],
    invalid: [said(user()), said({ role: "user", content: "" }), said({ role: "user" })],
  },
  textNotBlank: {
    valid: [{ ...said(go), system: [text("be")] }],
    invalid: [
      said(user(text(""))),
      said(user(text(" \n"))),
      said({ role: "user", content: " " }),
      said(go, assistant(text("a"), text("")), go),
      { ...said(go), system: [text("")] },
      said(go, assistant(use("a")), user({ ...result("a"), content: [text("")] })),
    ],
  },
  noTrailingWhitespace: {
    valid: [said(go, assistant(text("hm ")), go)],
    invalid: [said(go, assistant(text("hm ")))],
  },
  thinkingSigned: {
    valid: [said(go, assistant(thinking, text("a")), go)],
    invalid: [
      said(go, assistant({ type: "thinking", thinking: "hm" }, text("a")), go),
      said(go, assistant({ ...thinking, signature: "" }, text("a")), go),
    ],
  },
  thinkingUntouched: {
    valid: [said(go, assistant({ type: "redacted_thinking", data: "x" }, thinking, text("a")), go)],
    invalid: [said(go, assistant({ ...thinking, thinking: "h" }, text("a")), go)],
  },
  thinkingFirst: {
    valid: [
      said(go, assistant(thinking, text("a"), use("t")), user(result("t"))),
      said(go, assistant(text("a"), thinking), go),
    ],
    invalid: [said(go, assistant(text("a"), thinking, use("t")), user(result("t")))],
  },
  thinkingKept: {
    valid: [
      { ...said(go, assistant(thinking, use("t")), user(result("t"))), thinking: { type: "enabled" } },
      { ...said(go, assistant(text("a")), go), thinking: { type: "enabled" } },
      { ...said(go, assistant(use("t")), user(result("t"))), thinking: { type: "disabled" } },
    ],
    invalid: [{ ...said(go, assistant(use("t")), user(result("t"))), thinking: { type: "enabled" } }],
  },
  toolUseShaped: {
    valid: [said(go, assistant(use("toolu_1-a")), user(result("toolu_1-a")))],
    invalid: [
      said(go, assistant(use("call.1")), user(result("call.1"))),
      said(go, assistant(use("")), user(result(""))),
      said(go, assistant(use("a", {}, "read file")), user(result("a"))),
      said(user(use("a"))),
    ],
  },
  toolInputIsObject: {
    valid: [said(go, assistant(use("a", { path: "a" })), user(result("a")))],
    invalid: [
      said(go, assistant(use("a", '{"path":"a"}')), user(result("a"))),
      said(go, assistant(use("a", [])), user(result("a"))),
      said(go, assistant(use("a", null)), user(result("a"))),
    ],
  },
  toolIdsUnique: {
    valid: [said(go, assistant(use("a"), use("b")), user(result("b"), result("a")))],
    invalid: [
      said(go, assistant(use("a"), use("a")), user(result("a"))),
      said(go, assistant(use("a")), user(result("a")), assistant(use("a")), user(result("a"))),
    ],
  },
  toolsAnswered: {
    valid: [said(go, assistant(use("a")), user(result("a"), text("and?")))],
    invalid: [
      said(go, assistant(use("a"))),
      said(go, assistant(use("a")), go),
      said(go, assistant(use("a"), use("b")), user(result("a"))),
      said(go, assistant(use("a")), assistant(text("hm")), user(result("a"))),
    ],
  },
  answeredOnce: {
    valid: [said(go, assistant(use("a")), user(result("a")))],
    invalid: [said(go, assistant(use("a")), user(result("a"), result("a")))],
  },
  resultsFirst: {
    valid: [said(go, assistant(use("a"), use("b")), user(result("a"), result("b"), text("and?")))],
    invalid: [
      said(go, assistant(use("a")), user(text("and?"), result("a"))),
      said(go, assistant(use("a"), use("b")), user(result("a"), text("and?"), result("b"))),
    ],
  },
  resultsCalled: {
    valid: [said(go, assistant(use("a")), user(result("a")))],
    invalid: [
      said(user(result("a"))),
      said(go, assistant(use("a")), user(result("a"), result("b"))),
      said(go, assistant(use("a")), user(result("a")), assistant(text("hm")), user(result("a"))),
      said(go, assistant(result("a")), go),
    ],
  },
  errorsSayWhy: {
    valid: [
      said(go, assistant(use("a")), user({ ...result("a"), is_error: true })),
      said(go, assistant(use("a")), user({ ...result("a"), content: "" })),
    ],
    invalid: [
      said(go, assistant(use("a")), user({ ...result("a"), content: "", is_error: true })),
      said(go, assistant(use("a")), user({ ...result("a"), content: [], is_error: true })),
    ],
  },
};

describe.each(Object.entries(cases))("%s", (name, { valid, invalid }) => {
  test.each(valid)("lets pass: %j", (body) => {
    expect(broken(body)).toEqual([]);
  });
  test.each(invalid)("catches: %j", (body) => {
    expect(broken(body)).toContain(name);
  });
});

test("a body that is no object breaks a rule and no program", () => {
  for (const body of [null, 1, "a", [], { messages: "a" }, { messages: [null, 1] }]) {
    expect(Object.values(anthropicRules).flatMap((rule) => rule(body))).not.toEqual([]);
  }
});

/** The names of the rules this body breaks. */
function broken(body: Body): readonly string[] {
  const whole = { max_tokens: 100, ...body };
  return Object.entries(anthropicRules).flatMap(([name, rule]) => (rule(whole).length > 0 ? [name] : []));
}
