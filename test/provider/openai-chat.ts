// OpenAI Chat Completions, streamed: one kind of event for everything, and `[DONE]`.
// Reasoning is told in `reasoning_content`, as servers compatible with OpenAI do; OpenAI itself does not tell it.
import { type Format, type Memory, MODEL_TIME_S, type Rendering, sse } from "./format.ts";
import { field, textIn } from "./json.ts";
import { openaiFailure } from "./openai-failure.ts";
import { chatRules } from "./rules-openai-chat.ts";
import type { Finish, StreamError, Usage } from "./script.ts";

export const openaiChat: Format = {
  name: "openai-chat",
  path: "/v1/chat/completions",
  headers: ["authorization"],
  rules: chatRules,
  failure: openaiFailure,
  open: (body, memory) => new ChatRendering(body, memory),
};

const FINISH_REASONS = { stop: "stop", calls: "tool_calls", length: "length", refusal: "content_filter" } as const;

class ChatRendering implements Rendering {
  readonly #memory: Memory;
  readonly #id: string;
  readonly #model: string;
  readonly #withUsage: boolean;
  #calls = 0;
  #refused = false;

  constructor(body: unknown, memory: Memory) {
    this.#memory = memory;
    this.#id = `chatcmpl-${memory.nextNumber()}`;
    this.#model = textIn(body, "model") ?? "";
    this.#withUsage = field(field(body, "stream_options"), "include_usage") === true;
  }

  begin(withText: boolean): string {
    return this.#delta({ role: "assistant", content: withText ? "" : null, refusal: null });
  }

  reasoning(text: string): string {
    return this.#delta({ reasoning_content: text });
  }

  text(text: string): string {
    return this.#delta({ content: text });
  }

  refusal(text: string): string {
    this.#refused = true;
    return this.#delta({ refusal: text });
  }

  callBegin(name: string, id: string | undefined): string {
    const index = this.#calls++;
    const given = id ?? `call_${this.#memory.nextNumber()}`;
    return this.#delta({ tool_calls: [{ index, id: given, type: "function", function: { name, arguments: "" } }] });
  }

  callPiece(piece: string): string {
    return this.#delta({ tool_calls: [{ index: this.#calls - 1, function: { arguments: piece } }] });
  }

  /** Blocks have no end here: a call is complete when the answer is. */
  callEnd(): string {
    return "";
  }

  endBlock(): string {
    return "";
  }

  ping(): string {
    return ": keep-alive\n\n";
  }

  error(kind: StreamError, message: string): string {
    const status = { overloaded: 503, "rate limit": 429, server: 500 }[kind];
    return sse(openaiFailure(status, message));
  }

  finish(how: Finish, usage: Usage): string {
    // A refusal in words is an answer like any other.
    const reason = how === "refusal" && this.#refused ? "stop" : FINISH_REASONS[how];
    const counted = this.#withUsage ? sse({ ...this.#head(), choices: [], usage: usageOf(usage) }) : "";
    return `${this.#delta({}, reason)}${counted}${sse("[DONE]")}`;
  }

  #delta(delta: unknown, finishReason: string | null = null): string {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finishReason }];
    return sse({ ...this.#head(), choices, ...(this.#withUsage ? { usage: null } : {}) });
  }

  #head(): object {
    return { id: this.#id, object: "chat.completion.chunk", created: MODEL_TIME_S, model: this.#model };
  }
}

const usageOf = (usage: Usage): object => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.output,
  prompt_tokens_details: { cached_tokens: usage.cached ?? 0 },
  completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
});
