// A language model that a test controls. Works with any agent over the AI SDK's model interface; it never waits for
// time.
//
// Invariants
// 1. Each request plays the next script; a request after the last one is refused, and not retried.
// 2. A wait ends when the request is aborted, unless the script ignores that, like an uncooperative model.
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { ControlError } from "../core/errors.ts";
import type { Json } from "../core/model/prompt.ts";
import type { Gate } from "./gate.ts";

/** The model's next action. A script without an end finishes: for its calls, or because its output is complete. */
export type ModelStep =
  /** The steps before this one run before the provider responds. Without it, it responds at once. */
  | { readonly do: "connect" }
  | { readonly do: "say"; readonly text: string }
  | { readonly do: "think"; readonly text: string; readonly signature?: string }
  /** An `input` that is a string is used as JSON text, so that it can be invalid. */
  | { readonly do: "call"; readonly name: string; readonly input?: Json; readonly id?: string }
  /** Any other part that a provider may stream. */
  | { readonly do: "part"; readonly part: LanguageModelV4StreamPart }
  | { readonly do: "wait"; readonly for: Gate; readonly onCancel?: "heed" | "ignore" }
  | { readonly do: "finish"; readonly reason?: LanguageModelV4FinishReason["unified"]; readonly usage?: ScriptedUsage }
  /** Before `connect`: the request is refused. After: the stream breaks. */
  | { readonly do: "fail"; readonly error: unknown }
  /** The stream ends without a finish part. */
  | { readonly do: "close" };

export interface ScriptedUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
}

/** One received request. */
export interface ScriptedRequest {
  readonly options: LanguageModelV4CallOptions;
  /** Whether its signal was aborted. */
  readonly aborted: boolean;
  /** Whether the reader has cancelled its stream. */
  readonly cancelled: boolean;
}

export interface ScriptedModel extends LanguageModelV4 {
  /** Every request so far. */
  readonly requests: readonly ScriptedRequest[];
  /** The next request; each is returned once. */
  nextRequest(): Promise<ScriptedRequest>;
}

export function scriptedModel(...scripts: readonly (readonly ModelStep[])[]): ScriptedModel {
  for (const step of scripts.flat()) checkStep(step);
  const requests: Playing[] = [];
  const waiting: ((request: ScriptedRequest) => void)[] = [];
  let handedOut = 0;
  return {
    specificationVersion: "v4",
    provider: "scripted",
    modelId: "scripted",
    supportedUrls: {},
    requests,
    nextRequest() {
      const request = requests[handedOut];
      handedOut += 1;
      return request === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(request);
    },
    doGenerate: () => Promise.reject(new Error("The scripted model only streams.")),
    doStream(options) {
      const request = new Playing(options, scripts[requests.length] ?? NO_SCRIPT);
      requests.push(request);
      waiting.shift()?.(request);
      return request.connect();
    },
  };
}

/** An unknown step would be skipped, so that a test passes without testing anything. */
function checkStep(step: ModelStep): void {
  if (STEPS.has(step?.do)) return;
  throw new ControlError("invalid", `A step of a scripted model must have a known \`do\`: ${[...STEPS].join(", ")}.`);
}

const STEPS: ReadonlySet<unknown> = new Set<ModelStep["do"]>([
  ...(["connect", "say", "think", "call", "part", "wait", "finish", "fail", "close"] as const),
]);

const NO_SCRIPT: readonly ModelStep[] = [
  { do: "fail", error: Object.assign(new Error("The scripted model has no script left."), { isRetryable: false }) },
  { do: "connect" },
];

class Playing implements ScriptedRequest {
  readonly options: LanguageModelV4CallOptions;
  readonly #steps: readonly ModelStep[];
  #cancelled = false;
  #over = false;
  #blocks = 0;
  #calls = 0;

  constructor(options: LanguageModelV4CallOptions, steps: readonly ModelStep[]) {
    this.options = options;
    this.#steps = steps;
  }

  get aborted(): boolean {
    return this.options.abortSignal?.aborted ?? false;
  }

  get cancelled(): boolean {
    return this.#cancelled;
  }

  async connect(): Promise<LanguageModelV4StreamResult> {
    const at = this.#steps.findIndex((step) => step.do === "connect");
    for (const step of this.#steps.slice(0, Math.max(0, at))) await this.#wait(step);
    return { stream: this.#stream(this.#steps.slice(at + 1)) };
  }

  /** One part per pull, so that an error comes after the parts before it. */
  #stream(steps: readonly ModelStep[]): ReadableStream<LanguageModelV4StreamPart> {
    const parts = this.#play(steps);
    return new ReadableStream(
      {
        pull: async (controller) => {
          const { done, value } = await parts.next();
          if (this.#cancelled) return;
          if (done === true) controller.close();
          else controller.enqueue(value);
        },
        cancel: () => {
          this.#cancelled = true;
        },
      },
      { highWaterMark: 0 },
    );
  }

  async *#play(steps: readonly ModelStep[]): AsyncGenerator<LanguageModelV4StreamPart, void> {
    for (const step of steps) {
      await this.#wait(step);
      if (step.do === "close") return;
      yield* this.#parts(step);
    }
    yield* this.#finish({ do: "finish" });
  }

  async #wait(step: ModelStep): Promise<void> {
    if (step.do === "fail") throw step.error;
    if (step.do !== "wait") return;
    await (step.onCancel === "ignore" ? step.for.opened : Promise.race([step.for.opened, this.#abort()]));
  }

  #abort(): Promise<never> {
    return new Promise((_, reject) => {
      const signal = this.options.abortSignal;
      if (signal?.aborted === true) reject(signal.reason);
      else signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  }

  #parts(step: ModelStep): readonly LanguageModelV4StreamPart[] {
    switch (step.do) {
      case "say":
      case "think":
        return this.#block(step);
      case "call": {
        this.#calls += 1;
        const { name: toolName, input = {}, id = `call_${this.#calls}` } = step;
        const json = typeof input === "string" ? input : JSON.stringify(input);
        return [{ type: "tool-call", toolCallId: id, toolName, input: json }];
      }
      case "part":
        this.#over ||= step.part.type === "finish";
        return [step.part];
      case "finish":
        return this.#finish(step);
      default:
        return [];
    }
  }

  #block(step: Extract<ModelStep, { do: "say" | "think" }>): readonly LanguageModelV4StreamPart[] {
    this.#blocks += 1;
    const id = String(this.#blocks);
    if (step.do === "say") {
      return [
        { type: "text-start", id },
        { type: "text-delta", id, delta: step.text },
        { type: "text-end", id },
      ];
    }
    const signed =
      step.signature === undefined ? {} : { providerMetadata: { scripted: { signature: step.signature } } };
    return [
      { type: "reasoning-start", id },
      { type: "reasoning-delta", id, delta: step.text },
      { type: "reasoning-end", id, ...signed },
    ];
  }

  #finish({ reason, usage }: Extract<ModelStep, { do: "finish" }>): readonly LanguageModelV4StreamPart[] {
    if (this.#over) return [];
    this.#over = true;
    const unified = reason ?? (this.#calls > 0 ? "tool-calls" : "stop");
    return [{ type: "finish", finishReason: { unified, raw: unified }, usage: usageOf(usage) }];
  }
}

function usageOf({ inputTokens, outputTokens }: ScriptedUsage = { inputTokens: 10, outputTokens: 5 }) {
  return {
    inputTokens: { total: inputTokens, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: outputTokens, text: undefined, reasoning: undefined },
  } satisfies LanguageModelV4Usage;
}
