// What an agent may return, what is recorded of it, and the errors of everything else.
import { describe, expect, test } from "vitest";
import { CALL_BYTES_MAX, CALLS_LIVE_MAX } from "../../core/limits.ts";
import type { CallRequest } from "../../ports/agent.ts";
import { askOf, checkCall, checkMeter, checkResult } from "./turn-result.ts";

const execute = (): number => 1;
const call = { name: "build", input: { fast: true }, execute };
const usage = { inputTokens: 3, outputTokens: 0.5, estimated: false };
const free = { inputTokens: 0, outputTokens: 0, estimated: false };

const NOT_A_RESULT =
  "The agent returned something that is neither text nor { text, next, usage, model, finish, parts, calls }.";

describe("a result", () => {
  const end = { text: undefined, next: "end", finish: undefined, requests: [] };
  const parts = [
    { kind: "text", text: "a" },
    { kind: "reasoning", text: "b", provider: { signature: "s" } },
    { kind: "call", index: 0 },
    { kind: "provider", provider: null },
  ];

  const taken: readonly (readonly [what: string, given: unknown, result: unknown])[] = [
    ["nothing", undefined, end],
    ["a text", "done", { ...end, text: "done" }],
    ["an empty text", "", { ...end, text: "" }],
    ["an empty object", {}, end],
    ["an object without a prototype", Object.create(null), end],
    [
      "an object of a class that has what a result has",
      new (class {
        text = "done";
      })(),
      { ...end, text: "done" },
    ],
    ["a text in an object", { text: "done" }, { ...end, text: "done" }],
    ["an end", { next: "end" }, end],
    ["a wish for another turn", { next: "turn" }, { ...end, next: "turn" }],
    ["no calls", { calls: [] }, end],
    ["calls, whose ends it wants to hear of", { calls: [call] }, { ...end, next: "turn", requests: [call] }],
    ["calls, even if it says that it ends", { next: "end", calls: [call] }, { ...end, next: "turn", requests: [call] }],
    ["what it cost", { usage }, { ...end, usage }],
    ["what it cost, about", { usage: { ...usage, estimated: true } }, { ...end, usage: { ...usage, estimated: true } }],
    ["what it cost, and more than is kept", { usage: { ...usage, estimated: "no", cached: 1n } }, { ...end, usage }],
    ["an answer for nothing", { usage: { inputTokens: 0, outputTokens: 0 } }, { ...end, usage: free }],
    ["parts of every kind", { parts }, { ...end, parts }],
    ["no parts", { parts: [] }, { ...end, parts: [] }],
    ...["stop", "calls", "length", "refusal", "other"].map(
      (finish) => [`a finish: ${finish}`, { finish }, { ...end, finish }] as const,
    ),
  ];
  test.each(taken)("may be %s", (_, given, result) => {
    expect(checkResult(given)).toStrictEqual(result);
  });

  const USAGE =
    "The agent returned a `usage` that is no object with `inputTokens` and `outputTokens`. " +
    "Correct it, or leave `usage` out where the cost is not known.";
  const uncounted = (field: string): string =>
    `The agent returned a \`usage\` whose \`${field}\` is no number of 0 or more. ` +
    "Correct it, or leave `usage` out where the cost is not known.";
  const UNCOUNTABLE = [1n, "1", null, undefined, -1, Number.NaN, Number.POSITIVE_INFINITY];
  const PARTS = "The parts of an answer are none.";
  const refused: readonly (readonly [what: string, given: readonly unknown[], said: string])[] = [
    ["something else", [null, 7, true, ["x"]], NOT_A_RESULT],
    ["an object that has nothing of one", [new Map([["text", "x"]]), new Date(0), new Error("x")], NOT_A_RESULT],
    ["an object with more", [{ text: "x", role: "assistant" }], NOT_A_RESULT],
    ["a text that is none", [{ text: 7 }, { text: null }], NOT_A_RESULT],
    ["a next that is none", [{ next: "stop" }, { next: null }, { next: true }], NOT_A_RESULT],
    ["a finish that is none", [{ finish: "done" }, { finish: null }], NOT_A_RESULT],
    ["calls that are no list", [{ calls: call }, { calls: null }], NOT_A_RESULT],
    ["a cost that is none", [{ usage: 7 }, { usage: null }, { usage: [] }], USAGE],
    ["a cost without its fields", [{ usage: {} }, { usage: { outputTokens: 1 } }], uncounted("inputTokens")],
    ["a cost without what was said", [{ usage: { inputTokens: 1 } }], uncounted("outputTokens")],
    ...(["inputTokens", "outputTokens"] as const).map(
      (field) =>
        [
          `a cost whose ${field} cannot be counted`,
          UNCOUNTABLE.map((many) => ({ usage: { ...usage, [field]: many } })),
          uncounted(field),
        ] as const,
    ),
    ["parts that are no list", [{ parts: { kind: "text", text: "x" } }, { parts: null }], PARTS],
    ["parts among which one is none", [{ parts: [...parts, null] }, { parts: [...parts, "x"] }], PARTS],
    ["a part of no kind", [{ parts: [{ text: "x" }] }, { parts: [{ kind: "image", provider: 1 }] }], PARTS],
    ["a part without its text", [{ parts: [{ kind: "text" }] }, { parts: [{ kind: "reasoning", text: 7 }] }], PARTS],
    ["a part without its call", [{ parts: [{ kind: "call" }] }, { parts: [{ kind: "call", index: 0.5 }] }], PARTS],
    ["a part with nothing for its provider", [{ parts: [{ kind: "provider" }] }], PARTS],
    [
      "parts that are no JSON",
      [{ parts: [{ kind: "text", text: "x", provider: 1n }] }],
      "The parts of an answer contains a bigint; only JSON can be stored.",
    ],
  ];
  test.each(refused)("must not be %s", (_, given, said) => {
    for (const one of given) expectRefused(() => checkResult(one), said);
  });

  test("may request as many calls as a run may have, and no more", () => {
    const calls = Array.from({ length: CALLS_LIVE_MAX }, () => call);
    expect(checkResult({ calls }).requests).toHaveLength(CALLS_LIVE_MAX);
    expectRefused(() => checkResult({ calls: [...calls, call] }), "A turn asks for at most 256 calls.");
  });
});

describe("the result of a meter", () => {
  test("may be empty, a cost, or the parts so far", () => {
    const parts = [{ kind: "text", text: "a" }];
    expect(checkMeter(undefined)).toStrictEqual({});
    expect(checkMeter({})).toStrictEqual({});
    expect(checkMeter({ usage, parts })).toStrictEqual({ usage, parts });
  });

  test("must not be anything else", () => {
    for (const given of [null, 7, "x", [usage]]) expectRefused(() => checkMeter(given), NOT_A_RESULT);
  });
});

describe("a call", () => {
  const checked = (given: object): CallRequest => checkCall({ ...call, ...given } as CallRequest);

  test("is accepted with its own fields", () => {
    const options = { idempotent: true, interruptible: false, timeoutMs: 0 };
    expect(checked(options)).toStrictEqual({ ...call, ...options });
    expect(checked({ timeoutMs: 2 ** 40 }).timeoutMs).toBe(2 ** 40);
    expect(checked({ name: "n".repeat(256) }).name).toHaveLength(256);
  });

  test("without an input has the input null", () => {
    expect(checked({ input: undefined }).input).toBeNull();
    expect(checked({ input: 0 }).input).toBe(0);
  });

  test("has the provider's id and data, and no other fields of the provider", () => {
    expect(checked({ provider: { id: "toolu_1" } }).provider).toStrictEqual({ id: "toolu_1" });
    const given = { id: "", data: { at: new Date(0) }, model: "x" };
    expect(checked({ provider: given }).provider).toStrictEqual({ id: "", data: { at: "1970-01-01T00:00:00.000Z" } });
  });

  test("G33: has a bounded provider id, and no lone surrogate in a name", () => {
    const long = "x".repeat(CALL_BYTES_MAX);
    expect(() => checked({ provider: { id: long } })).toThrow(`the limit is ${CALL_BYTES_MAX}`);
    const named = checked({ name: "a\ud83d", provider: { id: "b\ude00" } });
    expect([named.name, named.provider?.id]).toEqual(["a\ufffd", "b\ufffd"]);
  });

  const PROVIDER = "`provider.id` is the call's name on the provider's side: a string.";
  const NAME = "A call's name is a short string.";
  const TIMEOUT = `timeoutMs is a whole number of milliseconds from 0 to ${2 ** 40}.`;
  test.each<readonly [what: string, given: readonly object[], said: string]>([
    ["a name", [{ name: "" }, { name: 7 }, { name: undefined }, { name: "n".repeat(257) }], NAME],
    ["something to execute", [{ execute: "rm" }, { execute: undefined }], "A call needs a function to execute."],
    ["a time that can be counted", [{ timeoutMs: -1 }, { timeoutMs: "1" }, { timeoutMs: 2 ** 40 + 1 }], TIMEOUT],
    ["an input of JSON", [{ input: [1n] }], "The input of build contains a bigint; only JSON can be stored."],
    ["a provider's name", [{ provider: {} }, { provider: { id: 7 } }, { provider: null }, { provider: "x" }], PROVIDER],
    [
      "provider's data of JSON",
      [{ provider: { id: "x", data: [1n] } }],
      "`provider.data` contains a bigint; only JSON can be stored.",
    ],
  ])("needs %s", (_, given, said) => {
    for (const one of given) expectRefused(() => checked(one), said);
  });

  test("that is invalid fails its turn with an error for the author of the agent", () => {
    for (const none of [null, undefined, 7, "build", [call]]) {
      expectRefused(() => checkResult({ calls: [none] }), "A call is an object with `name`, `input` and `execute`.");
    }
  });

  test("is recorded with the fields that a restart and the next turn need", () => {
    const callId = "call_1.1";
    const plain = { callId, name: "build", input: { fast: true } };
    expect(askOf(callId, call)).toStrictEqual(plain);
    expect(askOf(callId, { ...call, idempotent: false, interruptible: true, timeoutMs: 5 })).toStrictEqual(plain);
    const provider = { id: "toolu_1" };
    expect(askOf(callId, { ...call, idempotent: true, interruptible: false, provider })).toStrictEqual({
      ...{ ...plain, idempotent: true, interruptible: false, provider },
    });
  });
});

function expectRefused(act: () => unknown, message: string): void {
  expect(act).toThrow(expect.objectContaining({ name: "ControlError", code: "invalid", message }));
}
