// The model without a network, as the AI SDK and we take it: the same two objects for both.
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import type { Kind } from "./side.ts";
import { ANSWERS, quoting, TOOL_INPUT_JSON, TOOL_NAME } from "./work.ts";

const USAGE: LanguageModelV4Usage = {
  inputTokens: { total: 20, noCache: 20, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 15, text: 15, reasoning: undefined },
};

/** One delta, or one tool call and, once its result is in the prompt, one delta that quotes it. */
export const scriptedModels: Readonly<Record<Kind, LanguageModelV4>> = {
  text: scripted("scripted-text", () => answer(ANSWERS.text)),
  tool: scripted("scripted-tool", (prompt) => {
    const result = toolResultIn(prompt);
    return result === undefined ? toolCall() : answer(quoting(result));
  }),
};

function scripted(modelId: string, script: (prompt: LanguageModelV4Prompt) => LanguageModelV4StreamPart[]) {
  return {
    specificationVersion: "v4",
    provider: "scripted",
    modelId,
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("The scripted model only streams.")),
    doStream: ({ prompt }: LanguageModelV4CallOptions) => Promise.resolve({ stream: streamOf(script(prompt)) }),
  } satisfies LanguageModelV4;
}

/** A part per pull, as a provider's parser would hand them over. */
function streamOf(parts: readonly LanguageModelV4StreamPart[]): ReadableStream<LanguageModelV4StreamPart> {
  let at = 0;
  return new ReadableStream({
    pull: (controller) => {
      const part = parts[at++];
      if (part === undefined) controller.close();
      else controller.enqueue(part);
    },
  });
}

function answer(text: string): LanguageModelV4StreamPart[] {
  return [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "0" },
    { type: "text-delta", id: "0", delta: text },
    { type: "text-end", id: "0" },
    { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: USAGE },
  ];
}

let callsAsked = 0;

function toolCall(): LanguageModelV4StreamPart[] {
  const toolCallId = `call_${++callsAsked}`;
  return [
    { type: "stream-start", warnings: [] },
    { type: "tool-call", toolCallId, toolName: TOOL_NAME, input: TOOL_INPUT_JSON },
    { type: "finish", finishReason: { unified: "tool-calls", raw: "tool_calls" }, usage: USAGE },
  ];
}

function toolResultIn(prompt: LanguageModelV4Prompt): string | undefined {
  const last = prompt.at(-1);
  if (last?.role !== "tool") return undefined;
  const part = last.content.find((one) => one.type === "tool-result");
  if (part?.output.type === "text") return part.output.value;
  if (part?.output.type === "json" && typeof part.output.value === "string") return part.output.value;
  throw new Error(`The tool's result came back as ${JSON.stringify(part?.output)}.`);
}
