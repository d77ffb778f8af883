// What the provider packages make of what the server sends: that it is what they make of the real thing.
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { asked, MODEL_NAMES, type ModelName, modelsAt, ofType, partsOf } from "./models.ts";
import { type Script, script } from "./script.ts";
import { startProvider } from "./server.ts";

async function parts(name: ModelName, steps: Script): Promise<readonly LanguageModelV4StreamPart[]> {
  await using server = await startProvider([steps]);
  const { stream } = await modelsAt(server.baseURL)[name].doStream({ prompt: asked("go") });
  const seen = await partsOf(stream);
  expect(server.violations).toEqual([]);
  return seen;
}

const said = (seen: readonly LanguageModelV4StreamPart[], type: "text-delta" | "reasoning-delta"): string =>
  ofType(seen, type)
    .map((part) => part.delta)
    .join("");

const finishOf = (seen: readonly LanguageModelV4StreamPart[]) => ofType(seen, "finish").at(-1)?.finishReason.unified;

const everything = script([
  { reasoning: "hm" },
  { reasoning: "m" },
  { text: "Hel" },
  { ping: true },
  { text: "lo é😀" },
  { call: { name: "read", input: { path: "a" } }, inPieces: true },
  { call: { name: "read", input: { path: "b" } } },
  { finish: "calls", usage: { input: 7, output: 3, reasoning: 1, cached: 2 } },
]);

describe.each(MODEL_NAMES)("%s", (name) => {
  test.each([
    ["in whole events", everything],
    ["byte by byte", [{ bytewise: true } as const, ...everything]],
  ])("reasoning, text, calls and usage arrive %s", async (_, steps) => {
    const seen = await parts(name, steps);
    expect(ofType(seen, "error")).toEqual([]);
    // OpenAI does not tell its reasoning in this format, and its package does not listen to those who do.
    expect(said(seen, "reasoning-delta")).toBe(name === "chat" ? "" : "hmm");
    expect(said(seen, "text-delta")).toBe("Hello é😀");
    const calls = ofType(seen, "tool-call");
    expect(calls.map((call) => [call.toolName, call.input])).toEqual([
      ["read", '{"path":"a"}'],
      ["read", '{"path":"b"}'],
    ]);
    expect(new Set(calls.map((call) => call.toolCallId)).size).toBe(2);
    const first = ofType(seen, "tool-input-delta").filter((part) => part.id === calls[0]?.toolCallId);
    expect(first.map((part) => part.delta)).toEqual(['{"p', "ath", '":"', 'a"}']);
    const [finish] = ofType(seen, "finish");
    expect(finish).toMatchObject({
      finishReason: { unified: "tool-calls" },
      usage: { inputTokens: { total: 7, cacheRead: 2 }, outputTokens: { total: 3, reasoning: 1 } },
    });
  });

  test.each([
    [{ finish: "stop" }, "stop"],
    [{ finish: "length" }, "length"],
    [{ finish: "refusal" }, "content-filter"],
  ] as const)("%j is told as %s", async (end, unified) => {
    expect(finishOf(await parts(name, [{ text: "a" }, end]))).toBe(unified);
  });

  test("a refusal in words is a text, and told as what it is", async () => {
    const seen = await parts(name, [{ refusal: "I will not." }, { finish: "refusal" }]);
    expect(said(seen, "text-delta")).toBe("I will not.");
    expect(finishOf(seen)).toBe("content-filter");
  });

  test("a script without an end finishes by itself", async () => {
    expect(finishOf(await parts(name, []))).toBe("stop");
    expect(finishOf(await parts(name, [{ text: "a" }]))).toBe("stop");
    expect(finishOf(await parts(name, [{ call: { name: "read" } }]))).toBe("tool-calls");
  });

  test("malformed arguments arrive as they are", async () => {
    const seen = await parts(name, [{ call: { name: "read", arguments: '{"path":' } }]);
    expect(ofType(seen, "tool-call")).toMatchObject([{ toolName: "read", input: '{"path":' }]);
  });

  test("an id may be given, and given twice", async () => {
    const seen = await parts(name, [
      { call: { name: "read", id: "dup", input: { n: 1 } } },
      { call: { name: "read", id: "dup", input: { n: 2 } } },
    ]);
    const ids = ofType(seen, "tool-call").map((call) => call.toolCallId);
    expect(ids[0]).toBe("dup");
    // Only the packages for Chat Completions give the second one an id of their own.
    expect(ids[1] === "dup").toBe(name === "responses" || name === "anthropic");
  });

  test.each([
    [429, "2"],
    [500, undefined],
    [529, undefined],
  ])("a status %i is thrown, and may be tried again", async (status, retryAfter) => {
    const end = retryAfter === undefined ? { status } : { status, retryAfter };
    await expect(parts(name, [end])).rejects.toMatchObject({
      name: "AI_APICallError",
      statusCode: status,
      isRetryable: true,
      message: `The provider says: ${status}.`,
      responseHeaders: expect.objectContaining(retryAfter === undefined ? {} : { "retry-after": retryAfter }),
    });
  });

  test("an error in the middle of a stream comes after what was said", async () => {
    const seen = await parts(name, [{ text: "a" }, { error: "overloaded", message: "Busy." }]);
    expect(said(seen, "text-delta")).toBe("a");
    expect(ofType(seen, "error")).toMatchObject([{ error: { message: "Busy." } }]);
    // Anthropic's package leaves it at the error.
    expect(finishOf(seen)).toBe(name === "anthropic" ? undefined : "error");
  });

  test("a connection that is reset breaks the stream", async () => {
    const seen = await parts(name, [{ text: "a" }, { reset: true }]);
    expect(said(seen, "text-delta")).toBe("a");
    expect(seen.at(-1)).toMatchObject({ type: "error", error: { isRetryable: true, statusCode: 200 } });
    await expect(parts(name, [{ reset: true }])).rejects.toThrow("ECONNRESET");
  });

  test("a stream that ends without saying so is not taken for a whole one", async () => {
    const seen = await parts(name, [{ text: "a" }, { cut: true }]);
    expect(finishOf(seen)).toBe(name === "compatible" ? "error" : "interrupted");
  });

  test("a stream that ends inside a call", async () => {
    const seen = await parts(name, [{ call: { name: "read", input: { path: "a" } }, unfinished: true }, { cut: true }]);
    // Chat Completions has no end of a call. So its packages give half of one for a whole one, before they say that
    // something was wrong.
    const half = name === "chat" || name === "compatible";
    expect(ofType(seen, "tool-call").map((call) => call.input)).toEqual(half ? ['{"p'] : []);
  });

  test("what is no JSON is told as an error, and the rest is heard", async () => {
    const seen = await parts(name, [{ text: "a" }, { data: "{nope" }, { text: "b" }]);
    expect(ofType(seen, "error")).toMatchObject([{ error: { name: "AI_JSONParseError" } }]);
    expect(said(seen, "text-delta")).toBe("ab");
  });
});

test("a thinking block is signed when it ends, unless it should not be", async () => {
  const signatures = async (steps: Script) =>
    ofType(await parts("anthropic", steps), "reasoning-delta").flatMap(
      (part) => part.providerMetadata?.anthropic?.signature ?? [],
    );
  expect(await signatures([{ reasoning: "hm" }, { reasoning: "m" }, { text: "a" }])).toEqual([
    expect.stringMatching(/^signed-/),
  ]);
  expect(await signatures([{ reasoning: "hm", signed: false }, { text: "a" }])).toEqual([]);
  expect(await signatures([{ reasoning: "hm" }, { cut: true }])).toEqual([]);
  expect(await signatures([{ reasoning: "hm" }, { endBlock: true }, { cut: true }])).toHaveLength(1);
});
