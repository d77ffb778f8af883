// Converts an earlier answer of the model into parts of a prompt.
import type { LanguageModelV4Message, SharedV4ProviderOptions } from "@ai-sdk/provider";
import type { TurnPart } from "../../core/model/event.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { Finish, Message, TranscriptCall } from "../../core/read/transcript.ts";
import { isJsonObject, parseJson } from "../plain-json.ts";

export type Answered = Extract<Message, { role: "assistant" }>;
export type AnswerPart = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number];

/** Whether an answer ended before the model finished it. */
export const isCutOff = ({ kind }: Finish): boolean =>
  kind === "live" || kind === "lost" || kind === "cancelled" || kind === "failed";

/**
 * The parts of an answer that go into a request; empty if there are none. `ids` are the wire ids of its calls, by
 * index.
 *
 * Reasoning, metadata and provider-executed calls refer to an answer that the provider has stored completely. The
 * provider may have stored nothing of an answer that was cut off and reject a reference to it, so only its text and
 * calls are sent.
 */
export function answerParts(answer: Answered, ids: readonly string[]): AnswerPart[] {
  const whole = isWhole(answer);
  const recorded = answer.parts ?? [{ kind: "text", text: answer.text } as const];
  const seen = new Set<number>();
  const parts = recorded.flatMap((part): readonly AnswerPart[] => {
    if (part.kind === "call") {
      if (seen.has(part.index) || answer.calls[part.index] === undefined) return [];
      seen.add(part.index);
    }
    return answerPart(part, answer.calls, ids, whole);
  });
  const rest = answer.calls.flatMap((call, at) => (seen.has(at) ? [] : [callPart(call, ids[at] ?? "")]));
  return withoutTrailingReasoning(callsLast([...parts, ...rest]));
}

/** Moves text before the calls: some providers reject text between a call and its result. */
function callsLast(parts: AnswerPart[]): AnswerPart[] {
  const isOurs = (part: AnswerPart): boolean => part.type === "tool-call" && part.providerExecuted !== true;
  const first = parts.findIndex(isOurs);
  const behind = first === -1 ? [] : parts.slice(first).filter((part) => part.type === "text");
  if (behind.length === 0) return parts;
  return [...parts.slice(0, first), ...behind, ...parts.slice(first).filter((part) => part.type !== "text")];
}

/** Calls are recorded when an answer ends, so an answer with recorded calls is complete even if the run was stopped. */
function isWhole({ finish, parts }: Answered): boolean {
  return !isCutOff(finish) || (parts?.some((part) => part.kind === "call") ?? false);
}

function answerPart(
  part: TurnPart,
  calls: readonly TranscriptCall[],
  ids: readonly string[],
  whole: boolean,
): readonly AnswerPart[] {
  switch (part.kind) {
    case "text":
      return isBlank(part.text) ? [] : [{ type: "text", text: part.text, ...(whole ? optionsOf(part.provider) : {}) }];
    case "reasoning":
      // No provider accepts reasoning without its signature, and as text it would look like part of the answer.
      return whole && part.provider !== undefined
        ? [{ type: "reasoning", text: part.text, ...optionsOf(part.provider) }]
        : [];
    case "call": {
      const call = calls[part.index];
      return call === undefined ? [] : [callPart(call, ids[part.index] ?? "")];
    }
    case "provider":
      return whole ? providerPart(part.provider) : [];
  }
}

function callPart({ name, input, provider }: TranscriptCall, toolCallId: string): AnswerPart {
  // Metadata refers to the provider's own call id.
  const options = provider?.id === toolCallId ? optionsOf(provider.data) : {};
  return { type: "tool-call", toolCallId, toolName: name, input: asObject(input), ...options };
}

const asObject = (input: Json): Json => (isJsonObject(input) ? input : { input });

/** Drops reasoning at the end: providers reject an answer that ends with it. */
function withoutTrailingReasoning(parts: AnswerPart[]): AnswerPart[] {
  const last = parts.findLastIndex((part) => part.type !== "reasoning");
  return parts.slice(0, last + 1);
}

/** A provider's part that `model-answer.ts` has kept, as a part of a prompt. */
function providerPart(kept: Json): readonly AnswerPart[] {
  if (!isJsonObject(kept)) return [];
  const options = optionsOf(kept.providerMetadata);
  const { toolCallId, toolName } = kept;
  if (typeof toolCallId === "string" && typeof toolName === "string") {
    return executedPart(kept, toolCallId, toolName, options);
  }
  if (kept.type === "custom" && typeof kept.kind === "string" && /\./.test(kept.kind)) {
    // Checked in the line above; the compiler cannot derive it from a pattern.
    return [{ type: "custom", kind: kept.kind as `${string}.${string}`, ...options }];
  }
  if (kept.type !== "file" && kept.type !== "reasoning-file") return [];
  const data = isJsonObject(kept.data) ? kept.data : {};
  if (typeof data.data !== "string" || typeof kept.mediaType !== "string") return [];
  return [{ type: kept.type, mediaType: kept.mediaType, data: { type: "data", data: data.data }, ...options }];
}

function executedPart(
  kept: { readonly [key: string]: Json },
  toolCallId: string,
  toolName: string,
  options: Options,
): readonly AnswerPart[] {
  if (kept.type === "tool-call") {
    const input = typeof kept.input === "string" ? (parseJson(kept.input) ?? {}) : {};
    return [{ type: "tool-call", toolCallId, toolName, input: asObject(input), providerExecuted: true, ...options }];
  }
  const type = kept.isError === true ? "error-json" : "json";
  return [{ type: "tool-result", toolCallId, toolName, output: { type, value: kept.result ?? null }, ...options }];
}

/** Ids of calls that the provider executed itself. */
export function executedIds({ parts = [] }: Answered): readonly string[] {
  return parts.flatMap((part) =>
    part.kind === "provider" && isJsonObject(part.provider) && typeof part.provider.toolCallId === "string"
      ? [part.provider.toolCallId]
      : [],
  );
}

type Options = { providerOptions?: SharedV4ProviderOptions };

function optionsOf(provider: Json | undefined): Options {
  return isOptions(provider) ? { providerOptions: provider } : {};
}

const isOptions = (value: unknown): value is SharedV4ProviderOptions =>
  isJsonObject(value) && Object.values(value).every(isJsonObject);

export const isBlank = (text: string): boolean => text.trim() === "";
