// One request to a model, from the first byte to the last.
//
// Invariants
// 1. A stop ends it in the same tick, whatever the model does: its signal is aborted, and nothing waits for it.
// 2. However it ends, its connection is closed or will close by itself.
// 3. It uses one timer, which is only set again when it fires: a stream of thousands of parts does not create thousands
//    of timers.
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { Clock } from "../../ports/clock.ts";
import { DRAIN_MS, PARTS_PER_YIELD } from "../limits.ts";
import type { TurnStop } from "../loop/turn-stop.ts";
import type { ModelAnswer } from "./model-answer.ts";
import { ModelError } from "./model-error.ts";

export interface Idle {
  /** Time until the provider begins to answer. */
  readonly firstByteMs: number;
  /** Longest silence between two parts of an answer. */
  readonly silentMs: number;
}

type Reader = ReadableStreamDefaultReader<LanguageModelV4StreamPart>;

export class ModelRequest {
  readonly #stop: TurnStop;
  readonly #clock: Clock;
  readonly #idle: Idle;
  readonly #controller = new AbortController();
  /** Why the request was ended by us, if it was. */
  #ended: { readonly why: unknown } | undefined = undefined;
  /** Ends the current wait. */
  #release: () => void = ignore;
  #begun = false;
  #lastPartAt = 0;
  #cancelTimer: () => void = ignore;

  constructor(stop: TurnStop, clock: Clock, idle: Idle) {
    this.#stop = stop;
    this.#clock = clock;
    this.#idle = idle;
  }

  /** The provider has begun to answer, so the request costs something. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Sends the request and reads the answer to its end. */
  async read(model: LanguageModelV4, options: LanguageModelV4CallOptions, answer: ModelAnswer): Promise<void> {
    const unsubscribe = this.#stop.onStop(() => this.#end(this.#stop.reason));
    this.#lastPartAt = this.#clock.elapsed(); // @fault silence-by-the-wall:begin
    this.#arm(this.#idle.firstByteMs);
    try {
      const reader = await this.#connect(model, { ...options, abortSignal: this.#controller.signal });
      this.#begun = true;
      this.#release = () => void reader.cancel(this.#ended?.why).catch(ignore); // @fault stream-not-let-go
      // The stop may have come after the answer began and before the reader existed.
      if (this.#ended !== undefined) this.#release(); // @fault stop-between-answer-and-reading
      await this.#readAll(reader, answer);
      this.#cancelTimer();
      void drain(reader, this.#clock);
    } catch (error) {
      const why = this.#ended === undefined ? error : this.#ended.why;
      this.#end(why);
      throw why;
    } finally {
      this.#cancelTimer();
      unsubscribe();
    }
  }

  #connect(model: LanguageModelV4, options: LanguageModelV4CallOptions): Promise<Reader> {
    return new Promise((resolve, reject) => {
      this.#release = () => reject(this.#ended?.why);
      Promise.resolve(model.doStream(options)).then(({ stream }) => {
        if (this.#ended === undefined) resolve(stream.getReader());
        // The answer arrived after the stop, so its connection must be closed here.
        else stream.cancel(this.#ended.why).catch(ignore); // @fault late-answer-left-open
      }, reject);
    });
  }

  /** A pending read ends when its reader is cancelled, so the loop awaits only the reader. */
  async #readAll(reader: Reader, answer: ModelAnswer): Promise<void> {
    for (let count = 1; ; count += 1) {
      const { done, value } = await reader.read();
      if (this.#ended !== undefined) throw this.#ended.why;
      if (done) throw new ModelError("model_error", "The provider's answer ended without saying why.");
      this.#lastPartAt = this.#clock.elapsed(); // @fault silence-from-the-beginning, silence-by-the-wall:part
      answer.note(value);
      if (answer.finished !== undefined) return;
      if (count % PARTS_PER_YIELD === 0) await this.#yieldToEventLoop();
    }
  }

  #yieldToEventLoop(): Promise<void> {
    return new Promise((resolve) => void this.#clock.after(0, resolve));
  }

  #arm(ms: number): void {
    this.#cancelTimer = this.#clock.after(ms, () => {
      const limitMs = this.#begun ? this.#idle.silentMs : this.#idle.firstByteMs;
      const leftMs = this.#lastPartAt + limitMs - this.#clock.elapsed(); // @fault silence-by-the-wall:left
      if (leftMs > 0) return this.#arm(leftMs); // @fault silence-not-noticed
      this.#end(new ModelError("model_timeout", this.#begun ? silent(limitMs) : late(limitMs)));
    });
  }

  #end(why: unknown): void {
    if (this.#ended !== undefined) return;
    this.#ended = { why };
    this.#controller.abort(why); // @fault provider-not-told
    this.#release();
  }
}

const late = (ms: number): string => `The provider did not begin to answer within ${ms} ms.`;
const silent = (ms: number): string => `The provider was silent for ${ms} ms in the middle of its answer.`;

/**
 * Reads the rest of a complete answer in the background, so that the connection can be reused. A cancelled one would
 * be closed, and the next turn would need a new handshake.
 */
async function drain(reader: Reader, clock: Clock): Promise<void> {
  const dispose = clock.after(DRAIN_MS, () => void reader.cancel().catch(ignore), "idle");
  try {
    while (!(await reader.read()).done);
  } catch {
    // The connection broke after the answer was complete.
  } finally {
    dispose(); // @fault door-kept-open
  }
}

const ignore = (): void => {};
