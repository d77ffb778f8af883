import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { arrayWork } from "../../../test/fixtures/array-work.ts";
import type { CancelReason, Outcome } from "../../core/model/cancel.ts";
import type { TurnPart } from "../../core/model/event.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { CallState, Finish, Message, TranscriptResult } from "../../core/read/transcript.ts";
import { providerPrompt } from "./provider-prompt.ts";
import { resultOutput } from "./provider-result.ts";

type Answered = Extract<Message, { role: "assistant" }>;
type Call = Answered["calls"][number];

const user = (text: string, data?: Json): Message => ({
  role: "user",
  runId: "run_1",
  text,
  ...(data === undefined ? {} : { data }),
});
const answer = (text: string, more: Partial<Answered> = {}): Answered => ({
  role: "assistant",
  runId: "run_1",
  turnId: "turn_1.1",
  text,
  calls: [],
  finish: { kind: "end" },
  ...more,
});
const call = (n: number, id = `id${n}`, input: Json = { n }): Call => ({
  callId: `call_1.${n}`,
  name: `tool${n}`,
  input,
  provider: { id },
});
const calling = (calls: readonly Call[], more: Partial<Answered> = {}): readonly Message[] => [
  answer("", { calls, finish: { kind: "calls" }, ...more }),
  {
    role: "tool",
    runId: "run_1",
    results: calls.map(({ callId, name }) => ({ callId, name, outcome: { kind: "completed" }, result: "ok" })),
  },
];
const by: CancelReason = { kind: "user", by: "alice", note: "wrong file" };
const cancelled: Finish = { kind: "cancelled", reason: by };
const lastUser: LanguageModelV4Message = { role: "user", content: [{ type: "text", text: "go" }] };
const go = user("go");

describe("roles", () => {
  test("system, user and assistant alternate", () => {
    expect(providerPrompt([user("a"), answer("b"), go], { system: "s" })).toEqual([
      { role: "system", content: "s" },
      { role: "user", content: [{ type: "text", text: "a" }] },
      { role: "assistant", content: [{ type: "text", text: "b" }] },
      lastUser,
    ]);
  });

  test("consecutive messages of one role are merged", () => {
    const prompt = providerPrompt([user("a"), user("b"), answer("c"), answer("d"), go], { system: " " });
    expect(prompt.map(({ content }) => content)).toMatchObject([
      [{ text: "a" }, { text: "b" }],
      [{ text: "c" }, { text: "d" }],
      [{ text: "go" }],
    ]);
  });

  test("a note is sent in a tag that it cannot close", () => {
    const item = { kind: "reminder", text: "x</note>y" } as const;
    expect(providerPrompt([go, { role: "note", runId: "run_1", item }])).toMatchObject([
      { content: [{ text: "go" }, { text: '<note kind="reminder">x&lt;/note>y</note>' }] },
    ]);
  });

  test("`toUser` converts a prompt", () => {
    const file = { type: "file", mediaType: "image/png", data: { type: "data", data: "" } } as const;
    const toUser = () => [{ type: "text", text: " " } as const, file];
    expect(providerPrompt([user("a", { file: 1 })], { toUser })).toEqual([{ role: "user", content: [file] }]);
  });

  test("a missing beginning and a prompt without text become notes", () => {
    expect(JSON.stringify(providerPrompt([answer("a"), user("")]))).toMatch(/not kept any more.*without text/);
  });

  test("after a completed answer the model is asked to continue", () => {
    expect(providerPrompt([user("a"), answer("b")]).at(-1)).toMatchObject({ role: "user", content: [{}] });
  });
});

describe("left out of the prompt", () => {
  test.each([
    ["an answer that says nothing", answer(" \n")],
    ["an answer that was asked again", answer("half", { again: true, finish: { kind: "lost" } })],
    ["unsigned reasoning", answer("", { parts: [{ kind: "reasoning", text: "hm" }] })],
    ["reasoning that nothing follows", answer("", { parts: [{ kind: "reasoning", text: "hm", provider: { a: {} } }] })],
  ])("%s", (_, one) => {
    expect(providerPrompt([user("a"), one, go])).toMatchObject([{ content: [{ text: "a" }, { text: "go" }] }]);
  });

  test("G6: a prompt that was withdrawn before it began", () => {
    const withdrawn: Message = { role: "user", runId: "run_2", text: "delete everything", withdrawn: true };
    const never: Message = { role: "assistant", runId: "run_2", text: "", calls: [], finish: cancelled };
    expect(providerPrompt([user("a"), answer("b"), withdrawn, never, go])).toEqual(
      providerPrompt([user("a"), answer("b"), go]),
    );
  });

  test("the current turn, and an answer that was cut off before it", () => {
    const messages = [
      go,
      answer("half", { again: true, finish: { kind: "lost" } }),
      answer("", { finish: { kind: "live" } }),
    ];
    expect(providerPrompt(messages)).toEqual([lastUser]);
    expect(providerPrompt([go, answer("half", { finish: { kind: "lost" } })])).toEqual([lastUser]);
  });

  test("everything before the last summary, except the current request", () => {
    const summary: Message = { role: "summary", runId: "run_1", text: "in short", request: "go" };
    expect(providerPrompt([user("go", { a: 1 }), ...calling([call(1)]), summary, answer("on"), user("and")])).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "<summary>\nin short\n</summary>" },
          { type: "text", text: expect.stringContaining("working on this request") },
          { type: "text", text: "go" },
        ],
      },
      { role: "assistant", content: [{ type: "text", text: "on" }] },
      { role: "user", content: [{ type: "text", text: "and" }] },
    ]);
  });
});

describe("an answer", () => {
  const provider = { anthropic: { signature: "s" } };
  const parts: readonly TurnPart[] = [
    { kind: "reasoning", text: "hm", provider },
    { kind: "text", text: "I look", provider: { openai: { itemId: "m" } } },
    { kind: "provider", provider: { type: "tool-call", toolCallId: "p", toolName: "search", input: "{}" } },
    { kind: "provider", provider: { type: "tool-result", toolCallId: "p", toolName: "search", result: 1 } },
    { kind: "call", index: 0 },
  ];

  test("is sent back in its parts, with the provider's metadata", () => {
    expect(providerPrompt([user("a"), ...calling([call(1)], { parts })])[1]).toEqual({
      role: "assistant",
      content: [
        { type: "reasoning", text: "hm", providerOptions: provider },
        { type: "text", text: "I look", providerOptions: { openai: { itemId: "m" } } },
        { type: "tool-call", toolCallId: "p", toolName: "search", input: {}, providerExecuted: true },
        { type: "tool-result", toolCallId: "p", toolName: "search", output: { type: "json", value: 1 } },
        { type: "tool-call", toolCallId: "id1", toolName: "tool1", input: { n: 1 } },
      ],
    });
  });

  test("that was cut off is sent as text only", () => {
    const cut = answer("I look", { parts: parts.slice(0, 3), finish: cancelled });
    expect(providerPrompt([user("a"), cut, go])[1]).toEqual({
      role: "assistant",
      content: [{ type: "text", text: "I look" }],
    });
  });

  test("whose calls were stopped with the run is complete", () => {
    const [, assistant] = providerPrompt([user("a"), ...calling([call(1)], { parts, finish: cancelled }), go]);
    expect(assistant?.content).toHaveLength(5);
  });

  test("that was requested again keeps the calls that were made", () => {
    const again = calling([call(1)], { text: "half", again: true, finish: { kind: "lost" } });
    expect(providerPrompt([user("a"), ...again, answer("b"), go]).map(({ role }) => role)).toEqual([
      ...["user", "assistant", "tool", "assistant", "user"],
    ]);
  });

  test.each([
    [cancelled, "Your previous answer was stopped by alice: wrong file. It is incomplete."],
    [
      { ...cancelled, error: { code: "error", message: "rollback failed" } },
      "Your previous answer was stopped by alice: wrong file. It is incomplete. " +
        "While it was being stopped it failed: rollback failed.",
    ],
    [
      { kind: "failed", code: "error", message: "It broke." },
      "Your previous answer failed: It broke. It is incomplete.",
    ],
    [{ kind: "lost" }, "Your previous answer was cut off when the server was. It is incomplete."],
  ] as readonly (readonly [Finish, string])[])("that ended with %o is followed by a note", (finish, words) => {
    for (const text of ["half", ""]) {
      const last = providerPrompt([user("a"), answer(text, { finish }), go]).at(-1);
      expect(last?.content.slice(-2)).toEqual([
        { type: "text", text: `<note>${words}</note>` },
        { type: "text", text: "go" },
      ]);
    }
  });

  test.each(["length", "refusal", "other"] as const)("that ended with %s needs no note", (kind) => {
    expect(providerPrompt([user("a"), answer("b", { finish: { kind } }), go]).at(-1)).toEqual(lastUser);
  });
});

describe("calls", () => {
  const idsOf = (...ids: readonly string[]) => {
    const prompt = providerPrompt([go, ...ids.flatMap((id, n) => calling([call(n, id)]))]);
    return prompt.flatMap(({ role, content }) =>
      role === "tool" ? content.map((one) => (one.type === "tool-result" ? one.toolCallId : "")) : [],
    );
  };

  test("ids are the provider's, unless they are duplicate, empty, too long or invalid", () => {
    const long = "x".repeat(65);
    expect(idsOf("a", "a", "", "b c", long, "call_1")).toEqual(["a", "call_1", "call_2", "call_3", "call_4", "call_5"]);
  });

  test("an input that is not an object is wrapped", () => {
    expect(providerPrompt([go, ...calling([call(1, "a", [1])])])[1]).toMatchObject({
      content: [{ input: { input: [1] } }],
    });
  });
});

test("a thousand calls of one answer take linear time", () => {
  const calls = Array.from({ length: 1_000 }, (_, n) => call(n));
  const messages = [go, ...calling(calls)];
  let prompt: LanguageModelV4Prompt = [];
  const work = arrayWork(() => {
    prompt = providerPrompt(messages);
  });
  expect(prompt.at(-1)?.content).toHaveLength(1_000);
  expect(work).toBeLessThan(50 * 1_000);
});

describe("results", () => {
  const told = (outcome: CallState, more: Partial<TranscriptResult> = {}) => resultOutput({ outcome, ...more });
  const stopped: Outcome = { kind: "cancelled", reason: by };

  test("of a completed call", () => {
    expect(told({ kind: "completed" }, { result: "a" })).toEqual({ type: "text", value: "a" });
    expect(told({ kind: "completed" }, { result: { a: 1 } })).toEqual({ type: "json", value: { a: 1 } });
    expect(told({ kind: "completed" })).toEqual({ type: "text", value: "(no output)" });
  });

  test("of a failed and of a denied call", () => {
    expect(told({ kind: "failed", code: "error", message: "no" })).toEqual({ type: "error-text", value: "no" });
    expect(told({ kind: "failed", code: "denied", message: "no" })).toEqual({
      type: "execution-denied",
      reason: "DENIED. no",
    });
  });

  test("of a running call", () => {
    expect(told({ kind: "running" })).toEqual({ type: "text", value: expect.stringMatching(/^RUNNING/) });
  });

  test.each([
    [stopped, {}, /^STOPPED by alice: wrong file\..*not known whether/s],
    [stopped, { begun: false }, /^STOPPED by alice: wrong file\.\nIt had not begun\. Nothing was done\.$/],
    [{ kind: "lost" }, { begun: false }, /^LOST.*\nIt had not begun\. Nothing was done\.$/],
    [stopped, { changes: ["wrote a"], result: "half" }, /known to have changed:\n- wrote a\n.*half/s],
    [{ ...stopped, abandoned: ["x"] }, {}, /may still be going on/],
    [
      { ...stopped, error: { code: "error", message: "rollback failed." } },
      {},
      /^STOPPED by alice: wrong file\. While it was being stopped it failed: rollback failed\.\n/,
    ],
    [{ kind: "lost" }, {}, /^LOST.*not known whether/],
  ] as readonly (readonly [Outcome, Partial<TranscriptResult>, RegExp])[])(
    "of a call that ended with %o",
    (outcome, more, words) => {
      expect(told(outcome, more)).toEqual({ type: "error-text", value: expect.stringMatching(words) });
    },
  );
});

describe("random conversations", () => {
  const words = fc.constantFrom("", " ", "\n", "a", "</note>", "Hello.");
  const reason = fc.constantFrom<CancelReason>(by, { kind: "shutdown" }, { kind: "superseded", by: "run_2" });
  const json = fc.constantFrom<Json>(null, "", "x", 1, [], { a: 1 });
  const outcome = fc.oneof(
    fc.constantFrom<Outcome>({ kind: "completed" }, { kind: "lost" }, { kind: "failed", code: "denied", message: "" }),
    reason.map((one): Outcome => ({ kind: "cancelled", reason: one })),
  );
  const finish = fc.oneof(
    fc.constantFrom<Finish["kind"]>("end", "calls", "length", "lost", "live").map((kind) => ({ kind }) as Finish),
    reason.map((one): Finish => ({ kind: "cancelled", reason: one })),
  );
  const part = fc.oneof(
    fc.record({ kind: fc.constantFrom("text", "reasoning"), text: words, provider: json }),
    fc.record({ kind: fc.constant("call"), index: fc.nat(3) }),
    fc.record({ kind: fc.constant("provider"), provider: json }),
  ) as fc.Arbitrary<TurnPart>;
  const round = fc
    .record({
      text: words,
      finish,
      again: fc.boolean(),
      parts: fc.option(fc.array(part, { maxLength: 4 }), { nil: undefined }),
      calls: fc.array(fc.record({ id: fc.constantFrom("", "a", "b", "call_1", "ö"), input: json, outcome }), {
        maxLength: 3,
      }),
    })
    .map(({ text, finish: end, again, parts, calls }): readonly Message[] => {
      const made = calls.map(({ id, input }, n) => call(n, id, input));
      const results = calls.map((one, n) => ({ callId: call(n).callId, name: `tool${n}`, outcome: one.outcome }));
      const told = { ...(again ? { again } : {}), ...(parts === undefined ? {} : { parts }) };
      const assistant = answer(text, { finish: end, calls: made, ...told });
      return made.length === 0 ? [assistant] : [assistant, { role: "tool", runId: "run_1", results }];
    });
  const said = fc.oneof(
    words.map((text): Message => user(text)),
    words.map((text): Message => ({ role: "note", runId: "run_1", item: { kind: "result", text } })),
    words.map((text): Message => ({ role: "summary", runId: "run_1", text, request: text })),
  );
  const conversation = fc
    .array(
      fc.oneof(
        round,
        said.map((one): readonly Message[] => [one]),
      ),
      { maxLength: 12 },
    )
    .map((all) => all.flat());

  test("G17: the request is valid", { meta: { id: "G17/model-request-always-valid" } }, () => {
    fc.assert(
      fc.property(conversation, (messages) => {
        expect(faults(providerPrompt(messages, { system: "s" }))).toEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });

  test("the same conversation makes the same request", () => {
    fc.assert(
      fc.property(conversation, (messages) => {
        expect(providerPrompt(messages)).toEqual(providerPrompt(structuredClone(messages)));
      }),
    );
  });
});

/** The rules of the strictest providers. Independent of how a prompt is built. */
function faults(prompt: LanguageModelV4Prompt): readonly string[] {
  const found: string[] = [];
  const used = new Set<string>();
  const talk = prompt.filter(({ role }) => role !== "system");
  if (talk[0]?.role !== "user") found.push("does not begin with a user");
  if (talk.at(-1)?.role === "assistant") found.push("ends with an assistant");
  talk.forEach((message, at) => {
    const next = talk[at + 1];
    if (message.content.length === 0) found.push("empty message");
    if (next?.role === message.role) found.push(`two in a row: ${message.role}`);
    if (message.role === "tool" && talk[at - 1]?.role !== "assistant") found.push("results of nothing");
    const parts = typeof message.content === "string" ? [] : message.content;
    if (parts.some((part) => part.type === "text" && part.text.trim() === "")) found.push("empty text");
    if (message.role !== "assistant") return;
    if (parts.at(-1)?.type === "reasoning") found.push("ends in a thought");
    const asked = parts.flatMap((part) => (part.type === "tool-call" ? [part] : []));
    for (const { toolCallId, input } of asked) {
      if (used.has(toolCallId) || !/^[A-Za-z0-9_-]{1,64}$/.test(toolCallId)) found.push(`id ${toolCallId}`);
      used.add(toolCallId);
      if (typeof input !== "object" || input === null || Array.isArray(input)) found.push("input is no object");
    }
    const results = next?.role === "tool" ? next.content : [];
    const answered = results.map((one) => (one.type === "tool-result" ? one.toolCallId : ""));
    if (answered.join() !== asked.map(({ toolCallId }) => toolCallId).join()) found.push("calls and results differ");
  });
  return found;
}
