// Token counts and estimates, for budgets, for compaction and for figures that a provider does not report.
import type { LanguageModelV4CallOptions, LanguageModelV4Prompt, LanguageModelV4Usage } from "@ai-sdk/provider";
import type { Usage } from "../../core/model/event.ts";
import { CHARS_PER_TOKEN, FILE_CHARS } from "../limits.ts";

export const tokensOf = (chars: number): number => Math.ceil(chars / CHARS_PER_TOKEN);

/** The characters of a request: its prompt and its tools. */
export function requestChars({ prompt, tools }: Pick<LanguageModelV4CallOptions, "prompt" | "tools">): number {
  return promptChars(prompt) + (tools === undefined ? 0 : JSON.stringify(tools).length);
}

export function promptChars(prompt: LanguageModelV4Prompt): number {
  let chars = 0;
  for (const message of prompt) {
    if (message.role === "system") chars += message.content.length;
    else for (const part of message.content) chars += partChars(part);
  }
  return chars;
}

type Part = Exclude<LanguageModelV4Prompt[number], { role: "system" }>["content"][number];

function partChars(part: Part): number {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.text.length;
    case "file":
    case "reasoning-file":
      return FILE_CHARS;
    case "tool-call":
      return part.toolName.length + JSON.stringify(part.input).length;
    case "tool-result":
      return part.toolName.length + outputChars(part.output);
    default:
      return 0;
  }
}

function outputChars(output: Extract<Part, { type: "tool-result" }>["output"]): number {
  if (output.type === "text" || output.type === "error-text") return output.value.length;
  return output.type === "execution-denied" ? (output.reason?.length ?? 0) : JSON.stringify(output.value).length;
}

/** The provider's figures, or estimates where they are missing. */
export function usageOf(
  reported: LanguageModelV4Usage | undefined,
  inputChars: () => number,
  outputChars: number,
): Usage {
  const input = figure(reported?.inputTokens?.total);
  const output = figure(reported?.outputTokens?.total);
  return {
    inputTokens: input ?? tokensOf(inputChars()),
    outputTokens: output ?? tokensOf(outputChars),
    estimated: input === undefined || output === undefined,
  };
}

const figure = (tokens: number | undefined): number | undefined =>
  tokens !== undefined && Number.isFinite(tokens) && tokens >= 0 ? tokens : undefined;

export function sum(one: Usage | undefined, other: Usage): Usage {
  if (one === undefined) return other;
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    estimated: one.estimated || other.estimated,
  };
}
