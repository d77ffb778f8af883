// One request to a model, from the first byte to the last.
//
// Invariants
// 1. Stopped, it is over in the same tick, whatever the model does: its signal is aborted, and nobody waits for it.
// 2. However it ends, its connection is closed, or about to end by itself.
// 3. One timer, set again only when it fires: a stream of thousands of parts costs no thousand timers.
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { Clock } from "../../ports/clock.ts";
import { DRAIN_MS, PARTS_PER_BREATH } from "../limits.ts";
import type { TurnStop } from "../loop/turn-stop.ts";
import type { ModelAnswer } from "./model-answer.ts";
import { ModelError } from "./model-error.ts";

export interface Idle {
  /** Until the provider begins to answer. */
  readonly firstByteMs: number;
  /** Between two signs of life within an answer. */
  readonly silentMs: number;
}

type Reader = ReadableStreamDefaultReader<LanguageModelV4StreamPart>;

export class ModelRequest {
  readonly #stop: TurnStop;
  readonly #clock: Clock;
  readonly #idle: Idle;
  readonly #controller = new AbortController();
  /** Why we have ended it, if we have. */
  #ended: { readonly why: unknown } | undefined = undefined;
  /** Lets go of whatever is being waited for. */
  #release: () => void = ignore;
  #begun = false;
  #heardAt = 0;
  #cancelTimer: () => void = ignore;

  constructor(stop: TurnStop, clock: Clock, idle: Idle) {
    this.#stop = stop;
    this.#clock = clock;
    this.#idle = idle;
  }

  /** The provider has begun to answer, and to count. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Makes the request and reads its answer to the finish. */
  async read(model: LanguageModelV4, options: LanguageModelV4CallOptions, answer: ModelAnswer): Promise<void> {
    const heeded = this.#stop.onStop(() => this.#end(this.#stop.reason));
    this.#heardAt = this.#clock.elapsed(); // @fault silence-by-the-wall:begin
    this.#arm(this.#idle.firstByteMs);
    try {
      const reader = await this.#connect(model, { ...options, abortSignal: this.#controller.signal });
      this.#begun = true;
      this.#release = () => void reader.cancel(this.#ended?.why).catch(ignore); // @fault stream-not-let-go
      // It may have been ended after the answer had begun, and before anybody was here to read it.
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
      heeded();
    }
  }

  #connect(model: LanguageModelV4, options: LanguageModelV4CallOptions): Promise<Reader> {
    return new Promise((resolve, reject) => {
      this.#release = () => reject(this.#ended?.why);
      Promise.resolve(model.doStream(options)).then(({ stream }) => {
        if (this.#ended === undefined) resolve(stream.getReader());
        // It comes after we had left. Somebody must close the door.
        else stream.cancel(this.#ended.why).catch(ignore); // @fault late-answer-left-open
      }, reject);
    });
  }

  /** A pending read ends when its reader is cancelled, so the loop needs no promise but the reader's own. */
  async #readAll(reader: Reader, answer: ModelAnswer): Promise<void> {
    for (let count = 1; ; count += 1) {
      const { done, value } = await reader.read();
      if (this.#ended !== undefined) throw this.#ended.why;
      if (done) throw new ModelError("model_error", "The provider's answer ended without saying why.");
      this.#heardAt = this.#clock.elapsed(); // @fault silence-from-the-beginning, silence-by-the-wall:part
      answer.note(value);
      if (answer.finished !== undefined) return;
      if (count % PARTS_PER_BREATH === 0) await this.#yieldToEventLoop();
    }
  }

  #yieldToEventLoop(): Promise<void> {
    return new Promise((resolve) => void this.#clock.after(0, resolve));
  }

  #arm(ms: number): void {
    this.#cancelTimer = this.#clock.after(ms, () => {
      const limitMs = this.#begun ? this.#idle.silentMs : this.#idle.firstByteMs;
      const leftMs = this.#heardAt + limitMs - this.#clock.elapsed(); // @fault silence-by-the-wall:left
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
 * The answer is complete, and nobody waits for this. A connection that is read to its end can be used for the next
 * request; one that is cancelled is closed, and the next turn would have to begin with a handshake.
 */
async function drain(reader: Reader, clock: Clock): Promise<void> {
  const dispose = clock.after(DRAIN_MS, () => void reader.cancel().catch(ignore), "idle");
  try {
    while (!(await reader.read()).done);
  } catch {
    // It broke after it was complete.
  } finally {
    dispose(); // @fault door-kept-open
  }
}

const ignore = (): void => {};
