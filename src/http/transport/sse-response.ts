// One stream on its way to one reader: pieces as they come, a heartbeat while none do, and a last word if we end it.
//
// Invariants
// 1. A piece is asked for only when the reader has taken the last one. At most one is held here.
// 2. It ends once: by its source, by the reader leaving, or by the server. Everything it holds is given back then.
// 3. A heartbeat is said only to a reader that waits, so it never adds to what a slow one has not taken.
// 4. Nothing of ours comes in between the slices of one event. A stream that ends there ends without a word, and its
//    reader throws the half away.
import { messageOf, toControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { HEARTBEAT_MS } from "../limits.ts";
import type { EventBatches, Source } from "../routes/route-handler.ts";
import { bye, FIRST, FRAME_END, HEARTBEAT } from "./event-text.ts";
import type { ResponseStream } from "./http-exchange.ts";

type Step = IteratorResult<string, void>;
type NextPiece = { readonly text: string } | { readonly end: "complete" | "cut" } | { readonly failure: unknown };

const OVER: Step = { done: true, value: undefined };
const said = (value: string): Step => ({ done: false, value });

export interface SseResponseOptions {
  readonly source: Source;
  readonly clock: Clock;
  /** Its source has failed. Told at most once, before it ends. */
  readonly failed: (failure: unknown) => void;
  /** It has ended, however. Told once. */
  readonly ended: () => void;
}

/** A reason of our own: without one, each abort makes an error with a stack, for nobody. */
const LEFT = { name: "Left", message: "The reader has left." } as const;

export class SseResponse implements ResponseStream {
  readonly #options: SseResponseOptions;
  readonly #stop = new AbortController();
  readonly #pieces: EventBatches;
  #asked = false;
  #came: NextPiece | undefined;
  #waiting: ((step: Step) => void) | undefined;
  /** What is said before anything else: how to come back, or that it is over. */
  #next: string | undefined = FIRST;
  /** Whether the last piece ended where an event ends. */
  #whole = true;
  #closing = false;
  #over = false;
  #dispose: () => void;
  #gone: AbortSignal | undefined;

  constructor(options: SseResponseOptions) {
    this.#options = options;
    this.#pieces = options.source(this.#stop.signal);
    this.#dispose = this.#beatLater();
  }

  /** Ends it when this signal aborts: whoever asked is gone. */
  endWith(gone: AbortSignal): void {
    this.#gone = gone;
    if (gone.aborted) this.#end();
    else gone.addEventListener("abort", this, { once: true });
  }

  next(): Promise<Step> {
    if (this.#over) return Promise.resolve(OVER);
    if (this.#next !== undefined) {
      const text = this.#next;
      this.#next = undefined;
      return Promise.resolve(said(text));
    }
    if (this.#closing) {
      this.#end();
      return Promise.resolve(OVER);
    }
    const came = this.#came;
    if (came !== undefined) return Promise.resolve(this.#take(came));
    this.#ask();
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** The reader leaves. */
  return(): Promise<Step> {
    this.#end();
    return Promise.resolve(OVER);
  }

  /** The server ends it: after what the reader is just taking, one last word. */
  close(reason: string): void {
    if (this.#over || this.#closing) return;
    this.#closing = true;
    this.#stop.abort(LEFT);
    if (this.#whole) this.#answer(bye(reason));
    else this.#end();
  }

  /** Called by the signal. */
  handleEvent(): void {
    this.#end();
  }

  #ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    this.#pieces.next().then(
      (step) => this.#arrive(step.done === true ? { end: step.value } : { text: step.value }),
      (failure) => this.#arrive({ failure }),
    );
  }

  #arrive(came: NextPiece): void {
    this.#asked = false;
    if (this.#over || this.#closing) return;
    const waiting = this.#waiting;
    if (waiting === undefined) {
      this.#came = came;
      return;
    }
    this.#waiting = undefined;
    waiting(this.#take(came));
  }

  #take(came: NextPiece): Step {
    this.#came = undefined;
    if ("text" in came) {
      this.#whole = came.text.endsWith(FRAME_END);
      return said(came.text);
    }
    if ("end" in came && came.end === "complete") {
      this.#end();
      return OVER;
    }
    // The log goes on, but not here: whoever reads comes back and is told why, or finds us again.
    this.#closing = true;
    if ("failure" in came) this.#options.failed(came.failure);
    if (!this.#whole) {
      this.#end();
      return OVER;
    }
    return said(bye("failure" in came ? toControlError(came.failure).code : "shutting_down"));
  }

  /** Said to a reader that waits now, or as the next thing. */
  #answer(text: string): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#next = `${this.#next ?? ""}${text}`;
    else waiting(said(text));
  }

  #beatLater(): () => void {
    return this.#options.clock.after(
      HEARTBEAT_MS,
      () => {
        if (this.#over) return;
        if (this.#waiting !== undefined && this.#whole) this.#answer(HEARTBEAT);
        this.#dispose = this.#beatLater();
      },
      "idle",
    );
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#came = undefined;
    this.#dispose();
    this.#gone?.removeEventListener("abort", this);
    this.#stop.abort(LEFT);
    // A source that fails while it is left has nobody to tell.
    this.#pieces.return?.("cut").then(undefined, messageOf);
    this.#waiting?.(OVER);
    this.#waiting = undefined;
    this.#options.ended();
  }
}
