// A request to a model that stands still until the scheduler moves it: it connects, streams, finishes, is refused,
// breaks, falls silent, or comes too late. One per attempt of the real agent loop.
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";

/** What a request is for: the turn's own answer, or a summary of what was said before. */
export type Purpose = "turn" | "compaction";

/** How the provider has ended it. `refused`: before it began to answer. `closed`: without saying why. */
export type RequestEnd = "finished" | "refused" | "broken" | "closed";

export interface Told {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** Something that went wrong at the provider's. */
export interface Trouble {
  readonly retryable: boolean;
  readonly status?: number;
  /** When it wants to be asked again. */
  readonly afterMs?: number;
}

interface Parts {
  readonly purpose: Purpose;
  readonly options: LanguageModelV4CallOptions;
  /** It goes on as if nothing had happened when it is told to stop. */
  readonly deaf: boolean;
  readonly elapsed: () => number;
  /** Our side has let go of it. */
  readonly release: (request: ParkedRequest) => void;
}

export class ParkedRequest {
  readonly purpose: Purpose;
  readonly options: LanguageModelV4CallOptions;
  readonly deaf: boolean;
  readonly askedAt: number;
  phase: "connecting" | "streaming" | "over" = "connecting";
  end: RequestEnd | undefined = undefined;
  trouble: Trouble | undefined = undefined;
  /** When it last gave a sign of life, or was asked; and when it ended, or was let go of. */
  heardAt: number;
  endedAt: number | undefined = undefined;
  begun = false;
  /** Whether it has said anything that cannot be unsaid, and what of it is text. */
  said = false;
  text = "";
  chars = 0;
  calls = 0;
  told: Told | undefined = undefined;
  /** How its answer ends. */
  reason: LanguageModelV4FinishReason["unified"] | undefined = undefined;
  /** The answer is complete, and the connection is still open. */
  lingers = false;
  /** Whoever read its stream has closed it. */
  cancelled = false;
  readonly answer: Promise<LanguageModelV4StreamResult>;
  readonly #elapsed: () => number;
  readonly #release: (request: ParkedRequest) => void;
  #connect: (result: LanguageModelV4StreamResult) => void = ignore;
  #refuse: (error: unknown) => void = ignore;
  /** What it has sent and nobody has read, and who waits for more. */
  readonly #sent: Sent[] = [];
  #wanted: () => void = ignore;
  #blocks = 0;

  constructor(parts: Parts) {
    this.purpose = parts.purpose;
    this.options = parts.options;
    this.deaf = parts.deaf;
    this.#elapsed = parts.elapsed;
    this.#release = parts.release;
    this.askedAt = parts.elapsed();
    this.heardAt = this.askedAt;
    this.answer = new Promise((resolve, reject) => {
      this.#connect = resolve;
      this.#refuse = reject;
    });
    // A request that nobody waits for any more may still be refused.
    this.answer.catch(ignore);
    parts.options.abortSignal?.addEventListener("abort", () => this.#aborted(), { once: true });
  }

  get aborted(): boolean {
    return this.options.abortSignal?.aborted === true;
  }

  /** The loop waits for it. */
  get open(): boolean {
    return this.phase !== "over" && !this.aborted;
  }

  /** It was let go of while it stood, and does not know. */
  get late(): boolean {
    return this.deaf && this.aborted && this.phase !== "over" && !this.cancelled;
  }

  connect(): void {
    if (this.phase !== "connecting") return;
    this.phase = "streaming";
    // One that comes too late begins nothing.
    this.begun = !this.aborted;
    const stream = new ReadableStream<LanguageModelV4StreamPart>(
      {
        pull: (controller) => this.#pulled(controller),
        cancel: () => {
          this.cancelled = true;
          this.lingers = false;
          this.phase = "over";
          this.#wanted();
        },
      },
      { highWaterMark: 0 },
    );
    this.#connect({ stream });
  }

  say(text: string, kind: "text" | "reasoning" = "text"): void {
    this.#blocks += 1;
    const id = String(this.#blocks);
    this.#push({ type: `${kind}-start`, id }, { type: `${kind}-delta`, id, delta: text }, { type: `${kind}-end`, id });
    if (kind === "text") this.text += text;
    this.#count(text.length);
  }

  call(toolCallId: string, toolName: string, input: string): void {
    this.calls += 1;
    this.#push({ type: "tool-call", toolCallId, toolName, input });
    this.#count(input.length);
  }

  /** A sign of life that says nothing. */
  ping(): void {
    this.#push({ type: "raw", rawValue: "ping" });
  }

  /** `lingers`: the provider leaves the connection open. */
  finish(unified: NonNullable<ParkedRequest["reason"]>, told: Told | undefined, how: "closes" | "lingers"): void {
    this.reason = unified;
    this.told = told;
    this.#push({ type: "finish", finishReason: { unified, raw: unified }, usage: usageOf(told) });
    this.#over("finished");
    if (how === "lingers") this.lingers = true;
    else this.#send({ kind: "close" });
  }

  /** Before it has connected it is refused; after that, it breaks off. */
  fail(trouble: Trouble): void {
    this.trouble = trouble;
    const error = errorOf(trouble);
    const connecting = this.phase === "connecting";
    this.#over(connecting ? "refused" : "broken");
    if (connecting) this.#refuse(error);
    else this.#send({ kind: "error", error });
  }

  /** The stream ends as it is. */
  close(): void {
    this.#over("closed");
    this.#send({ kind: "close" });
  }

  /** One at a time, so that what breaks the stream comes after what was said before it. */
  async #pulled(controller: ReadableStreamDefaultController<LanguageModelV4StreamPart>): Promise<void> {
    if (this.#sent.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wanted = resolve;
      });
    }
    const next = this.cancelled ? undefined : this.#sent.shift();
    if (next?.kind === "part") controller.enqueue(next.part);
    else if (next?.kind === "error") controller.error(next.error);
    else if (next?.kind === "close") controller.close();
  }

  #send(sent: Sent): void {
    this.#sent.push(sent);
    this.#wanted();
  }

  #count(chars: number): void {
    this.said = true;
    this.chars += chars;
  }

  #push(...parts: readonly LanguageModelV4StreamPart[]): void {
    if (this.cancelled) return;
    if (!this.aborted) this.heardAt = this.#elapsed();
    for (const part of parts) this.#send({ kind: "part", part });
  }

  #over(end: RequestEnd): void {
    this.phase = "over";
    this.end ??= this.aborted ? undefined : end;
    this.endedAt ??= this.#elapsed();
  }

  /** Told to stop. Most providers are; the others are found out later, and it must make no difference. */
  #aborted(): void {
    this.endedAt ??= this.#elapsed();
    this.#release(this);
    if (this.deaf || this.phase === "over") return;
    const connecting = this.phase === "connecting";
    this.phase = "over";
    const error = this.options.abortSignal?.reason ?? new Error("The simulated request was stopped.");
    if (connecting) this.#refuse(error);
    else this.#send({ kind: "error", error });
  }
}

type Sent =
  | { readonly kind: "part"; readonly part: LanguageModelV4StreamPart }
  | { readonly kind: "error"; readonly error: unknown }
  | { readonly kind: "close" };

function errorOf({ retryable, status, afterMs }: Trouble): Error {
  const headers = afterMs === undefined ? {} : { responseHeaders: { "retry-after-ms": String(afterMs) } };
  const code = status === undefined ? {} : { statusCode: status };
  return Object.assign(new Error("The simulated provider failed."), { isRetryable: retryable, ...code, ...headers });
}

function usageOf(told: Told | undefined): LanguageModelV4Usage {
  return {
    inputTokens: { total: told?.inputTokens, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: told?.outputTokens, text: undefined, reasoning: undefined },
  };
}

const ignore = (): void => {};
