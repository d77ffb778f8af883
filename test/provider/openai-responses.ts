// OpenAI Responses, streamed: typed events around items (reasoning, message, function call), each added and done.
import { type Format, type Memory, MODEL_TIME_S, type Rendering, sse } from "./format.ts";
import { field, type JsonObject, listIn, textIn } from "./json.ts";
import { openaiFailure } from "./openai-failure.ts";
import { responsesRules } from "./rules-openai-responses.ts";
import type { Finish, StreamError, Usage } from "./script.ts";

export const openaiResponses: Format = {
  name: "openai-responses",
  path: "/v1/responses",
  headers: ["authorization"],
  rules: responsesRules,
  failure: openaiFailure,
  open: (body, memory) => new ResponsesRendering(body, memory),
};

type Open =
  | { readonly kind: "reasoning"; readonly id: string; text: string }
  | { readonly kind: "text" | "refusal"; readonly id: string; text: string }
  | { readonly kind: "call"; readonly id: string; readonly callId: string; readonly name: string; text: string };

class ResponsesRendering implements Rendering {
  readonly #memory: Memory;
  readonly #id: string;
  readonly #model: string;
  readonly #stored: boolean;
  readonly #encrypted: boolean;
  readonly #output: object[] = [];
  readonly #items: (readonly [id: string, kind: "message" | "reasoning" | "function_call"])[] = [];
  #sequence = 0;
  #open: Open | undefined;
  #refused = false;

  constructor(body: unknown, memory: Memory) {
    this.#memory = memory;
    this.#id = `resp_${memory.nextNumber()}`;
    this.#model = textIn(body, "model") ?? "";
    this.#stored = field(body, "store") !== false;
    this.#encrypted = listIn(body, "include").includes("reasoning.encrypted_content");
  }

  begin(): string {
    const response = this.#response("in_progress");
    return this.#event("response.created", { response }) + this.#event("response.in_progress", { response });
  }

  reasoning(text: string): string {
    let events = "";
    if (this.#open?.kind !== "reasoning") {
      events += this.endBlock();
      const id = `rs_${this.#memory.nextNumber()}`;
      this.#open = { kind: "reasoning", id, text: "" };
      events += this.#added({ type: "reasoning", id, summary: [] });
      const part = { type: "summary_text", text: "" };
      events += this.#inItem("response.reasoning_summary_part.added", { summary_index: 0, part });
    }
    if (this.#open !== undefined) this.#open.text += text;
    return events + this.#inItem("response.reasoning_summary_text.delta", { summary_index: 0, delta: text });
  }

  text(text: string): string {
    return this.#message("text", text);
  }

  refusal(text: string): string {
    this.#refused = true;
    return this.#message("refusal", text);
  }

  callBegin(name: string, given: string | undefined): string {
    const before = this.endBlock();
    const id = `fc_${this.#memory.nextNumber()}`;
    const callId = given ?? `call_${this.#memory.nextNumber()}`;
    this.#open = { kind: "call", id, callId, name, text: "" };
    return before + this.#added({ type: "function_call", id, call_id: callId, name, arguments: "" });
  }

  callPiece(piece: string): string {
    if (this.#open !== undefined) this.#open.text += piece;
    return this.#inItem("response.function_call_arguments.delta", { delta: piece });
  }

  callEnd(): string {
    return this.endBlock();
  }

  endBlock(): string {
    const open = this.#open;
    if (open === undefined) return "";
    let events = "";
    if (open.kind === "reasoning") {
      const part = { type: "summary_text", text: open.text };
      events += this.#inItem("response.reasoning_summary_text.done", { summary_index: 0, text: open.text });
      events += this.#inItem("response.reasoning_summary_part.done", { summary_index: 0, part });
      const sealed = this.#encrypted ? { encrypted_content: `sealed:${open.text}` } : {};
      return events + this.#done("reasoning", { type: "reasoning", id: open.id, summary: [part], ...sealed });
    }
    if (open.kind === "call") {
      events += this.#inItem("response.function_call_arguments.done", { arguments: open.text });
      const { id, callId, name, text } = open;
      return (
        events + this.#done("function_call", { type: "function_call", id, call_id: callId, name, arguments: text })
      );
    }
    const part = partOf(open.kind, open.text);
    const [type, key] = open.kind === "text" ? ["output_text", "text"] : ["refusal", "refusal"];
    events += this.#inItem(`response.${type}.done`, { content_index: 0, [key]: open.text });
    events += this.#inItem("response.content_part.done", { content_index: 0, part });
    return events + this.#done("message", { type: "message", id: open.id, role: "assistant", content: [part] });
  }

  ping(): string {
    return ": keep-alive\n\n";
  }

  error(kind: StreamError, message: string): string {
    const code = { overloaded: "server_overloaded", "rate limit": "rate_limit_exceeded", server: "server_error" }[kind];
    return this.#event("error", { code, message, param: null });
  }

  finish(how: Finish, usage: Usage): string {
    const before = this.endBlock();
    // Only now: an answer that was broken off has left nothing that could be referred to.
    if (this.#stored) for (const [id, kind] of this.#items) this.#memory.items.set(id, kind);
    const why = how === "length" ? "max_output_tokens" : how === "refusal" && !this.#refused ? "content_filter" : null;
    const status = why === null ? "completed" : "incomplete";
    const response = {
      ...this.#response(status),
      incomplete_details: why === null ? null : { reason: why },
      usage: usageOf(usage),
    };
    return before + this.#event(`response.${status}`, { response });
  }

  #message(kind: "text" | "refusal", text: string): string {
    let events = "";
    if (this.#open?.kind !== kind) {
      events += this.endBlock();
      const id = `msg_${this.#memory.nextNumber()}`;
      this.#open = { kind, id, text: "" };
      events += this.#added({ type: "message", id, role: "assistant", content: [] });
      events += this.#inItem("response.content_part.added", { content_index: 0, part: partOf(kind, "") });
    }
    if (this.#open !== undefined) this.#open.text += text;
    const type = kind === "text" ? "response.output_text.delta" : "response.refusal.delta";
    return events + this.#inItem(type, { content_index: 0, delta: text });
  }

  #added(item: object): string {
    const output_index = this.#output.length;
    return this.#event("response.output_item.added", { output_index, item: { ...item, status: "in_progress" } });
  }

  #done(kind: "message" | "reasoning" | "function_call", item: JsonObject & { readonly id: string }): string {
    const done = { ...item, status: "completed" };
    const output_index = this.#output.length;
    this.#output.push(done);
    this.#items.push([item.id, kind]);
    this.#open = undefined;
    return this.#event("response.output_item.done", { output_index, item: done });
  }

  #inItem(type: string, rest: object): string {
    return this.#event(type, { item_id: this.#open?.id, output_index: this.#output.length, ...rest });
  }

  #event(type: string, rest: object): string {
    return sse({ type, sequence_number: this.#sequence++, ...rest }, type);
  }

  #response(status: string): object {
    const head = { id: this.#id, object: "response", created_at: MODEL_TIME_S, model: this.#model };
    return { ...head, status, error: null, output: [...this.#output], store: this.#stored };
  }
}

const partOf = (kind: "text" | "refusal", text: string): object =>
  kind === "text" ? { type: "output_text", text, annotations: [] } : { type: "refusal", refusal: text };

const usageOf = (usage: Usage): object => ({
  input_tokens: usage.input,
  input_tokens_details: { cached_tokens: usage.cached ?? 0 },
  output_tokens: usage.output,
  output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
  total_tokens: usage.input + usage.output,
});
