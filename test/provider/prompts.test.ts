// How the packages turn a prompt into a request, where it matters after a cancel: each row is something Belay must not
// hand them, or may. If an update of a package changes a row, whoever writes transcripts should know.
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { field, listIn, textIn } from "./json.ts";
import { answerOf, asked, MODEL_NAMES, type ModelName, modelsAt, ofType } from "./models.ts";
import { signatureOf } from "./rules-anthropic.ts";
import { type ProviderServer, startProvider } from "./server.ts";

type Message = LanguageModelV4Prompt[number];
type Part = Extract<Message, { role: "assistant" }>["content"][number];

const assistant = (...content: Part[]): Message => ({ role: "assistant", content });
const text = (words: string): Part => ({ type: "text", text: words });
const call = (toolCallId: string, input: unknown = {}): Part => ({
  type: "tool-call",
  toolCallId,
  toolName: "read",
  input,
});
const result = (toolCallId: string): Message => ({
  role: "tool",
  content: [{ type: "tool-result", toolCallId, toolName: "read", output: { type: "text", value: "done" } }],
});
const go = asked("go");
const more = asked("and then?");

async function broken(name: ModelName, prompt: LanguageModelV4Prompt): Promise<readonly string[]> {
  await using server = await startProvider([[{ text: "ok" }]]);
  await answerOf(modelsAt(server.baseURL)[name], { prompt });
  return server.violations.map((one) => one.rule);
}

interface Row {
  readonly prompt: LanguageModelV4Prompt;
  readonly breaks: Readonly<Record<ModelName, readonly string[]>>;
}

const fine = { chat: [], responses: [], compatible: [], anthropic: [] };
const rows: Readonly<Record<string, Row>> = {
  "two prompts of the user in a row": { prompt: [...go, ...more], breaks: fine },
  "two messages of the assistant in a row": {
    prompt: [...go, assistant(text("a")), assistant(text("b")), ...more],
    breaks: fine,
  },
  "results in messages of their own": {
    prompt: [...go, assistant(call("a"), call("b")), result("a"), result("b"), ...more],
    breaks: fine,
  },
  "an assistant that said nothing": {
    prompt: [...go, assistant(), ...more],
    // Anthropic's package leaves the message out, and does not put its neighbours together.
    breaks: { chat: ["contentPresent"], responses: [], compatible: ["contentPresent"], anthropic: ["rolesAlternate"] },
  },
  "an empty text before a call": {
    prompt: [...go, assistant(text(""), call("a")), result("a"), ...more],
    breaks: { ...fine, responses: ["contentPresent"] },
  },
  "a blank text": {
    prompt: [...go, assistant(text(" \n")), ...more],
    breaks: { ...fine, anthropic: ["textNotBlank"] },
  },
  "a text behind a call": {
    prompt: [...go, assistant(call("a"), text("hm")), result("a"), ...more],
    // The others put the call last.
    breaks: { ...fine, responses: ["callsAnswered"] },
  },
  "a steer between call and result": {
    prompt: [...go, assistant(call("a")), ...more, result("a")],
    breaks: {
      chat: ["callsAnswered", "resultsCalled"],
      responses: ["callsAnswered"],
      compatible: ["callsAnswered", "resultsCalled"],
      anthropic: ["resultsFirst"],
    },
  },
  "a call without a result": {
    prompt: [...go, assistant(call("a")), ...more],
    breaks: {
      chat: ["callsAnswered"],
      responses: ["callsAnswered"],
      compatible: ["callsAnswered"],
      anthropic: ["toolsAnswered"],
    },
  },
  "an id with a dot": {
    prompt: [...go, assistant(call("call.1")), result("call.1"), ...more],
    breaks: { ...fine, anthropic: ["toolUseShaped"] },
  },
  "arguments that were cut off": {
    prompt: [...go, assistant(call("a", '{"path":')), result("a"), ...more],
    // OpenAI's package for Chat Completions sends {} instead, Anthropic's wraps them; the others make a text of them.
    breaks: { ...fine, responses: ["argumentsAreJson"], compatible: ["argumentsAreJson"] },
  },
  "reasoning alone, without a signature": {
    prompt: [...go, assistant({ type: "reasoning", text: "hm" }), ...more],
    breaks: { chat: ["contentPresent"], responses: [], compatible: ["contentPresent"], anthropic: ["rolesAlternate"] },
  },
  "reasoning without a signature, and a text": {
    prompt: [...go, assistant({ type: "reasoning", text: "hm" }, text("a")), ...more],
    breaks: fine,
  },
  "reasoning that was shortened": {
    prompt: [
      ...go,
      assistant(
        { type: "reasoning", text: "h", providerOptions: { anthropic: { signature: signatureOf("hm") } } },
        text("a"),
      ),
      ...more,
    ],
    breaks: { ...fine, anthropic: ["thinkingUntouched"] },
  },
};

describe.each(MODEL_NAMES)("%s", (name) => {
  test.each(Object.entries(rows))("%s", async (_, { prompt, breaks }) => {
    expect(await broken(name, prompt)).toEqual(breaks[name]);
  });

  test("what the model said can be handed back to it", async () => {
    await using server = await startProvider([
      [{ reasoning: "hm" }, { text: "Let me see." }, { call: { name: "read", input: { path: "a" } } }],
      [{ text: "Done." }],
    ]);
    const model = modelsAt(server.baseURL)[name];
    const said = await sayAll(server, name, go);
    const [toolCall] = said.filter((part) => part.type === "tool-call");
    const prompt = [...go, assistant(...said), result(toolCall?.toolCallId ?? "")];
    const answer = await answerOf(model, { prompt });
    expect(ofType(answer, "error")).toEqual([]);
    expect(server.violations).toEqual([]);
  });
});

test("responses: what was said before a cancel is referred to, though the provider has not kept it", async () => {
  await using server = await startProvider([[{ reasoning: "hm" }, { text: "Hel" }, { cut: true }], [{ text: "ok" }]]);
  const said = await sayAll(server, "responses", go);
  const prompt = [...go, assistant(...said), ...more];
  await expect(modelsAt(server.baseURL).responses.doStream({ prompt })).rejects.toThrow("not found");
  expect(listIn(server.requests[1]?.body, "input").map((item) => textIn(item, "type"))).toContain("item_reference");
  expect(server.violations.map((one) => one.rule)).toEqual(["referencesKnown", "referencesKnown"]);
});

test("responses: without a store, texts are sent as they are and reasoning without its seal is left out", async () => {
  await using server = await startProvider([[{ reasoning: "hm" }, { text: "Hel" }, { cut: true }], [{ text: "ok" }]]);
  const said = await sayAll(server, "responses", go);
  const providerOptions = { openai: { store: false } };
  const prompt = [...go, assistant(...said), ...more];
  await answerOf(modelsAt(server.baseURL).responses, { prompt, providerOptions });
  expect(field(server.requests[1]?.body, "store")).toBe(false);
  expect(server.violations).toEqual([]);
});

/** One answer, as the parts a transcript would keep of it: metadata becomes options, as the packages ask for. */
async function sayAll(server: ProviderServer, name: ModelName, prompt: LanguageModelV4Prompt): Promise<Part[]> {
  const seen = await answerOf(modelsAt(server.baseURL)[name], { prompt });
  const kept: Part[] = [];
  for (const kind of ["reasoning", "text"] as const) {
    const pieces = [...ofType(seen, `${kind}-start`), ...ofType(seen, `${kind}-delta`), ...ofType(seen, `${kind}-end`)];
    const words = ofType(seen, `${kind}-delta`).map((piece) => piece.delta);
    const options = Object.assign({}, ...pieces.map((piece) => piece.providerMetadata ?? {}));
    if (words.length > 0) kept.push({ type: kind, text: words.join(""), providerOptions: options });
  }
  for (const { toolCallId, toolName, input, providerMetadata } of ofType(seen, "tool-call")) {
    const options = providerMetadata === undefined ? {} : { providerOptions: providerMetadata };
    kept.push({ type: "tool-call", toolCallId, toolName, input: JSON.parse(input) as unknown, ...options });
  }
  return kept;
}
