// Anthropic Messages, streamed: a message of content blocks, each started, filled and stopped.
import { type Format, type Memory, type Rendering, sse } from "./format.ts";
import { textIn } from "./json.ts";
import { anthropicRules, signatureOf } from "./rules-anthropic.ts";
import type { Finish, StreamError, Usage } from "./script.ts";

export const anthropic: Format = {
  name: "anthropic",
  path: "/v1/messages",
  headers: ["x-api-key", "anthropic-version"],
  rules: anthropicRules,
  failure: (status, message) => failure(ERROR_TYPES[status] ?? "api_error", message),
  open: (body, memory) => new AnthropicRendering(body, memory),
};

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};

const failure = (type: string, message: string): object => ({ type: "error", error: { type, message } });

const STOP_REASONS = { stop: "end_turn", calls: "tool_use", length: "max_tokens", refusal: "refusal" } as const;

type Open = { readonly kind: "text" | "tool_use" } | { readonly kind: "thinking"; text: string; signed: boolean };

class AnthropicRendering implements Rendering {
  readonly #memory: Memory;
  readonly #id: string;
  readonly #model: string;
  #index = 0;
  #open: Open | undefined;

  constructor(body: unknown, memory: Memory) {
    this.#memory = memory;
    this.#id = `msg_${memory.nextNumber()}`;
    this.#model = textIn(body, "model") ?? "";
  }

  begin(): string {
    const usage = { input_tokens: 1, output_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
    const head = { id: this.#id, type: "message", role: "assistant", model: this.#model, content: [] };
    return event("message_start", { message: { ...head, stop_reason: null, stop_sequence: null, usage } });
  }

  reasoning(text: string, signed: boolean): string {
    const before = this.#in("thinking") ? "" : this.#start({ type: "thinking", thinking: "", signature: "" });
    if (this.#open?.kind !== "thinking") this.#open = { kind: "thinking", text: "", signed: true };
    this.#open.text += text;
    this.#open.signed &&= signed;
    return before + this.#delta({ type: "thinking_delta", thinking: text });
  }

  text(text: string): string {
    const before = this.#in("text") ? "" : this.#start({ type: "text", text: "" });
    this.#open = { kind: "text" };
    return before + this.#delta({ type: "text_delta", text });
  }

  /** A refusal in words is a text; what tells it apart is the stop reason. */
  refusal(text: string): string {
    return this.text(text);
  }

  callBegin(name: string, given: string | undefined): string {
    const id = given ?? `toolu_${this.#memory.nextNumber()}`;
    const started = this.#start({ type: "tool_use", id, name, input: {} });
    this.#open = { kind: "tool_use" };
    // The real one sends an empty piece first.
    return started + this.callPiece("");
  }

  callPiece(piece: string): string {
    return this.#delta({ type: "input_json_delta", partial_json: piece });
  }

  callEnd(): string {
    return this.endBlock();
  }

  endBlock(): string {
    const open = this.#open;
    if (open === undefined) return "";
    const signed = open.kind === "thinking" && open.signed;
    const seal = signed ? this.#delta({ type: "signature_delta", signature: signatureOf(open.text) }) : "";
    this.#open = undefined;
    return seal + event("content_block_stop", { index: this.#index++ });
  }

  ping(): string {
    return event("ping", {});
  }

  error(kind: StreamError, message: string): string {
    const type = { overloaded: "overloaded_error", "rate limit": "rate_limit_error", server: "api_error" }[kind];
    return sse(failure(type, message), "error");
  }

  finish(how: Finish, usage: Usage): string {
    const counted = {
      // What was cached is counted apart here, and among the input by OpenAI. A script counts as OpenAI does.
      input_tokens: usage.input - (usage.cached ?? 0),
      output_tokens: usage.output,
      cache_read_input_tokens: usage.cached ?? 0,
      cache_creation_input_tokens: 0,
      ...(usage.reasoning === undefined ? {} : { output_tokens_details: { thinking_tokens: usage.reasoning } }),
    };
    const delta = { stop_reason: STOP_REASONS[how], stop_sequence: null };
    return this.endBlock() + event("message_delta", { delta, usage: counted }) + event("message_stop", {});
  }

  #in(kind: Open["kind"]): boolean {
    return this.#open?.kind === kind;
  }

  #start(content_block: object): string {
    return this.endBlock() + event("content_block_start", { index: this.#index, content_block });
  }

  #delta(delta: object): string {
    return event("content_block_delta", { index: this.#index, delta });
  }
}

const event = (type: string, rest: object): string => sse({ type, ...rest }, type);
