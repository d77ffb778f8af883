// A model's answer while it streams: emits its text and collects its parts.
//
// Invariants
// 1. The parts are in the order in which the model began them.
// 2. `hasOutput` is true as soon as any output was emitted or the provider executed anything. From then on the request
//    cannot be retried unnoticed.
import type {
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { CALL_BYTES_MAX } from "../../core/limits.ts";
import type { TurnPart } from "../../core/model/event.ts";
import type { Json } from "../../core/model/prompt.ts";
import type { Turn } from "../../ports/agent.ts";
import { ANSWER_CHARS_MAX, FILE_CHARS_MAX } from "../limits.ts";
import { plainJson, plainMetadata } from "../plain-json.ts";
import { ModelError } from "./model-error.ts";

export interface Finished {
  readonly reason: LanguageModelV4FinishReason;
  readonly usage: LanguageModelV4Usage;
}

/** Text or reasoning that may still be extended. */
interface Block {
  readonly kind: "text" | "reasoning";
  readonly id: string;
  text: string;
  metadata: object | undefined;
}

type Piece = Block | Extract<TurnPart, { kind: "call" | "provider" }>;
type Metadata = { readonly providerMetadata?: object };

export class ModelAnswer {
  /** Requested calls that Belay executes, in the order of their parts. */
  readonly calls: LanguageModelV4ToolCall[] = [];
  readonly #emit: Turn["emit"];
  readonly #pieces: Piece[] = [];
  readonly #open = new Map<string, Block>();
  #last: Block | undefined = undefined;
  #chars = 0;
  #hasOutput = false;
  #finished: Finished | undefined = undefined;
  #modelId: string | undefined = undefined;

  constructor(emit: Turn["emit"]) {
    this.#emit = emit;
  }

  get hasOutput(): boolean {
    return this.#hasOutput;
  }

  /** Its length in characters, for an estimate. */
  get chars(): number {
    return this.#chars;
  }

  get finished(): Finished | undefined {
    return this.#finished;
  }

  /** The model's id as the provider reports it. */
  get modelId(): string | undefined {
    return this.#modelId;
  }

  get text(): string {
    return this.#pieces.map((piece) => (piece.kind === "text" && "id" in piece ? piece.text : "")).join("");
  }

  /** Adds the next part of the stream. Throws if the part reports an error. */
  note(part: LanguageModelV4StreamPart): void {
    switch (part.type) {
      case "text-delta":
        this.#extend("text", part.id, part.delta, part);
        return;
      case "reasoning-delta":
        this.#extend("reasoning", part.id, part.delta, part);
        return;
      case "text-start":
      case "reasoning-start":
        this.#begin(part.type === "text-start" ? "text" : "reasoning", part.id, part);
        return;
      case "text-end":
      case "reasoning-end":
        this.#end(part.type === "text-end" ? "text" : "reasoning", part.id, part);
        return;
      case "tool-input-delta":
        this.#count(part.delta.length);
        return;
      case "tool-call":
        if (part.providerExecuted === true) this.#keep(part);
        else this.#call(part);
        return;
      case "tool-result":
        if (part.preliminary !== true) this.#keep(part);
        return;
      case "file":
      case "reasoning-file":
      case "custom":
        this.#keep(part);
        return;
      case "tool-approval-request":
        // A retry would ask for the same approval.
        this.#hasOutput = true;
        throw new ModelError("model_error", APPROVAL_UNSUPPORTED);
      case "error":
        throw part.error ?? new ModelError("model_error", "The provider reported an error without a reason.");
      case "response-metadata":
        this.#modelId = part.modelId ?? this.#modelId;
        return;
      case "finish":
        this.#finish({ reason: part.finishReason, usage: part.usage });
        return;
      default:
        // Warnings, sources, pings and unknown parts show that the connection is alive, but are not part of the answer.
        return;
    }
  }

  /**
   * The parts of the answer; `kept` are the calls that are made. Undefined if text followed by calls expresses all of
   * it, or if the parts exceed the log's limit: then only the text and the calls are kept.
   */
  parts(kept: readonly LanguageModelV4ToolCall[] = []): readonly TurnPart[] | undefined {
    const parts = this.#pieces.flatMap((piece): readonly TurnPart[] => {
      if (piece.kind === "call") {
        const call = this.calls[piece.index];
        const index = call === undefined ? -1 : kept.indexOf(call);
        return index === -1 ? [] : [{ kind: "call", index }];
      }
      return "id" in piece ? blockPart(piece) : [piece];
    });
    return isPlain(parts) || Buffer.byteLength(JSON.stringify(parts)) > CALL_BYTES_MAX ? undefined : parts;
  }

  /** Appends a remark by Belay to the text. */
  remark(words: string): void {
    this.#last = undefined;
    this.#extend("text", "remark", this.text === "" ? words : `\n${words}`, {});
  }

  #begin(kind: Block["kind"], id: string, { providerMetadata }: Metadata): Block {
    const block: Block = { kind, id, text: "", metadata: providerMetadata };
    this.#pieces.push(block);
    this.#open.set(`${kind} ${id}`, block);
    this.#last = block;
    return block;
  }

  #extend(kind: Block["kind"], id: string, delta: string, { providerMetadata }: Metadata): void {
    const last = this.#last;
    const block =
      last?.id === id && last.kind === kind ? last : (this.#open.get(`${kind} ${id}`) ?? this.#begin(kind, id, {}));
    if (providerMetadata !== undefined) block.metadata = providerMetadata;
    if (delta === "") return;
    block.text += delta;
    this.#hasOutput = true;
    if (kind === "text") this.#emit(delta);
    else this.#emit(delta, "reasoning");
    this.#count(delta.length);
  }

  #end(kind: Block["kind"], id: string, { providerMetadata }: Metadata): void {
    const block = this.#open.get(`${kind} ${id}`);
    if (block === undefined) return;
    if (providerMetadata !== undefined) block.metadata = providerMetadata;
    // Providers reuse ids: a later part with this id starts a new block.
    this.#open.delete(`${kind} ${id}`);
    if (this.#last === block) this.#last = undefined;
  }

  #call(call: LanguageModelV4ToolCall): void {
    this.#hasOutput = true;
    this.#pieces.push({ kind: "call", index: this.calls.length });
    this.calls.push(call);
    this.#last = undefined;
    this.#count(call.input.length);
  }

  /** Keeps the usage even if the answer failed. */
  #finish(finished: Finished): void {
    this.#finished = finished;
    const { unified, raw } = finished.reason;
    if (unified !== "error" && unified !== "interrupted") return;
    const how = unified === "error" ? "with an error" : "before it was complete";
    throw new ModelError("model_error", `The provider ended its answer ${how}${raw === undefined ? "" : ` (${raw})`}.`);
  }

  /** A part that the provider executed or made itself. */
  #keep(part: LanguageModelV4StreamPart): void {
    const provider: Json | undefined = plainJson(part);
    if (provider === undefined) return;
    const chars = JSON.stringify(provider).length;
    this.#hasOutput = true;
    this.#last = undefined;
    if (chars > FILE_CHARS_MAX && part.type === "file") {
      this.remark(`[A file of type ${part.mediaType} was left out: it is too large.]`);
    } else {
      this.#pieces.push({ kind: "provider", provider });
      this.#count(chars);
    }
  }

  #count(chars: number): void {
    this.#chars += chars;
    if (this.#chars > ANSWER_CHARS_MAX) {
      throw new ModelError("model_error", `The answer is longer than the limit of ${ANSWER_CHARS_MAX} characters.`);
    }
  }
}

const APPROVAL_UNSUPPORTED =
  "The provider requests approval for a tool that it executes itself, which Belay cannot give. Let the provider run " +
  "it without approval, or define the tool in this program.";

function blockPart({ kind, text, metadata }: Block): readonly TurnPart[] {
  const provider = plainMetadata(metadata);
  if (provider !== undefined) return [{ kind, text: text.toWellFormed(), provider }];
  return text === "" ? [] : [{ kind, text: text.toWellFormed() }];
}

/** Whether the parts are at most one text followed by calls. */
function isPlain(parts: readonly TurnPart[]): boolean {
  return parts.every((part, at) => part.kind === "call" || (at === 0 && part.kind === "text" && !("provider" in part)));
}
