// An earlier answer of the model, as it is handed back to it.
import type { LanguageModelV4Message, SharedV4ProviderOptions } from "@ai-sdk/provider";
import type { TurnPart } from "../../core/model/event.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { Finish, Message, TranscriptCall } from "../../core/read/transcript.ts";
import { isJsonObject, parseJson } from "../plain-json.ts";

export type Answered = Extract<Message, { role: "assistant" }>;
export type AnswerPart = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number];

/** The end of an answer that the model did not reach by itself. */
export const isCutOff = ({ kind }: Finish): boolean =>
  kind === "live" || kind === "lost" || kind === "cancelled" || kind === "failed";

/**
 * What of it goes into a request. Empty: it had nothing to say. `ids` are the wire ids of its calls, by their index.
 *
 * Reasoning, metadata and what the provider ran itself refer to an answer the provider has as a whole. Of one that was
 * cut off it may have nothing, and refuse what refers to it: then only the text is handed back, and the calls.
 */
export function answerParts(answer: Answered, ids: readonly string[]): AnswerPart[] {
  const whole = isWhole(answer);
  const told = answer.parts ?? [{ kind: "text", text: answer.text } as const];
  const seen = new Set<number>();
  const parts = told.flatMap((part): readonly AnswerPart[] => {
    if (part.kind === "call") {
      if (seen.has(part.index) || answer.calls[part.index] === undefined) return [];
      seen.add(part.index);
    }
    return answerPart(part, answer.calls, ids, whole);
  });
  const rest = answer.calls.flatMap((call, at) => (seen.has(at) ? [] : [callPart(call, ids[at] ?? "")]));
  return withoutTrailingReasoning(callsLast([...parts, ...rest]));
}

/** Some providers take what is said after a call for something said between the call and its result, and refuse it. */
function callsLast(parts: AnswerPart[]): AnswerPart[] {
  const isOurs = (part: AnswerPart): boolean => part.type === "tool-call" && part.providerExecuted !== true;
  const first = parts.findIndex(isOurs);
  const behind = first === -1 ? [] : parts.slice(first).filter((part) => part.type === "text");
  if (behind.length === 0) return parts;
  return [...parts.slice(0, first), ...behind, ...parts.slice(first).filter((part) => part.type !== "text")];
}

/** A run that was stopped while its calls went on had a whole answer before: calls are recorded with its end. */
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
      // Without what it is signed with no provider takes it back, and with none it would pass for something said.
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
  // Metadata under another name would point to a call of that other name.
  const options = provider?.id === toolCallId ? optionsOf(provider.data) : {};
  return { type: "tool-call", toolCallId, toolName: name, input: asObject(input), ...options };
}

const asObject = (input: Json): Json => (isJsonObject(input) ? input : { input });

/** Reasoning that nothing follows: providers refuse an answer that ends in a thought. */
function withoutTrailingReasoning(parts: AnswerPart[]): AnswerPart[] {
  const last = parts.findLastIndex((part) => part.type !== "reasoning");
  return parts.slice(0, last + 1);
}

/** What `answer.ts` has kept of a part that only the provider understands, as a part of a prompt. */
function providerPart(kept: Json): readonly AnswerPart[] {
  if (!isJsonObject(kept)) return [];
  const options = optionsOf(kept.providerMetadata);
  const { toolCallId, toolName } = kept;
  if (typeof toolCallId === "string" && typeof toolName === "string") {
    return executedPart(kept, toolCallId, toolName, options);
  }
  if (kept.type === "custom" && typeof kept.kind === "string" && /\./.test(kept.kind)) {
    // Checked in the line above; a pattern is beyond what the compiler follows.
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

/** Names of calls that the provider has made itself. */
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
