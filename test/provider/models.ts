// The models of the provider packages, all speaking with one server; and what they make of its streams.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";

export type ModelName = "chat" | "responses" | "compatible" | "anthropic";

export const MODEL_NAMES: readonly ModelName[] = ["chat", "responses", "compatible", "anthropic"];

export function modelsAt(baseURL: string): Readonly<Record<ModelName, LanguageModelV4>> {
  const apiKey = "a-key-for-nothing";
  const openai = createOpenAI({ baseURL, apiKey });
  return {
    chat: openai.chat("gpt-4.1"),
    responses: openai.responses("gpt-5"),
    compatible: createOpenAICompatible({ name: "compatible", baseURL, apiKey, includeUsage: true })("some-model"),
    anthropic: createAnthropic({ baseURL, apiKey })("claude-sonnet-4-5"),
  };
}

/** A prompt of one message by the user. */
export const asked = (text: string): LanguageModelV4Prompt => [{ role: "user", content: [{ type: "text", text }] }];

/** Everything that comes out, until the end; or until it breaks, with the error as the last part. */
export async function partsOf(
  stream: ReadableStream<LanguageModelV4StreamPart>,
): Promise<readonly LanguageModelV4StreamPart[]> {
  const parts: LanguageModelV4StreamPart[] = [];
  try {
    for await (const part of stream) parts.push(part);
  } catch (error) {
    parts.push({ type: "error", error });
  }
  return parts;
}

/** One whole answer. Never rejects: what is thrown before there is a stream is the last part too. */
export async function answerOf(
  model: LanguageModelV4,
  options: LanguageModelV4CallOptions,
): Promise<readonly LanguageModelV4StreamPart[]> {
  try {
    const { stream } = await model.doStream(options);
    return await partsOf(stream);
  } catch (error) {
    return [{ type: "error", error }];
  }
}

/** The parts of one type. */
export const ofType = <Type extends LanguageModelV4StreamPart["type"]>(
  parts: readonly LanguageModelV4StreamPart[],
  type: Type,
): readonly Extract<LanguageModelV4StreamPart, { readonly type: Type }>[] =>
  parts.filter((part): part is Extract<LanguageModelV4StreamPart, { readonly type: Type }> => part.type === type);
