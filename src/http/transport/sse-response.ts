// One event stream to one reader: pieces with backpressure, heartbeats while it is idle, and a `bye` event if the
// server ends it.
//
// Invariants
// 1. A piece is requested only when the reader has read the last one. At most one is buffered.
// 2. It ends once: with its source, when the reader leaves, or by the server. It releases everything then.
// 3. A heartbeat is sent only to a waiting reader, so it never adds to the backlog of a slow one.
// 4. Nothing is inserted between the slices of one event. A stream that ends there ends without `bye`, and its reader
//    discards the incomplete event.
import { messageOf, toControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { HEARTBEAT_MS } from "../limits.ts";
import type { EventBatches, Source } from "../routes/route-handler.ts";
import { bye, FIRST, FRAME_END, HEARTBEAT } from "./event-text.ts";
import type { ResponseStream } from "./http-exchange.ts";

type Step = IteratorResult<string, void>;
type NextPiece = { readonly text: string } | { readonly end: "complete" | "cut" } | { readonly failure: unknown };

const OVER: Step = { done: true, value: undefined };
const step = (value: string): Step => ({ done: false, value });

export interface SseResponseOptions {
  readonly source: Source;
  readonly clock: Clock;
  /** Called at most once, before the end, if the source fails. */
  readonly onError: (error: unknown) => void;
  /** Called once when the stream has ended. */
  readonly onEnd: () => void;
}

/** A constant reason: without one, each abort would create an error with a stack. */
const LEFT = { name: "Left", message: "The reader has left." } as const;

export class SseResponse implements ResponseStream {
  readonly #options: SseResponseOptions;
  readonly #stop = new AbortController();
  readonly #pieces: EventBatches;
  #isRequested = false;
  #buffered: NextPiece | undefined;
  #waiting: ((step: Step) => void) | undefined;
  /** Sent before anything else: the reconnection delay, or `bye`. */
  #next: string | undefined = FIRST;
  /** Whether the last piece ended at the end of an event. */
  #isEventComplete = true;
  #closing = false;
  #hasEnded = false;
  #cancelHeartbeat: () => void;
  #gone: AbortSignal | undefined;

  constructor(options: SseResponseOptions) {
    this.#options = options;
    this.#pieces = options.source(this.#stop.signal);
    this.#cancelHeartbeat = this.#heartbeatLater();
  }

  /** Ends the stream when the signal aborts, because the client has disconnected. */
  endWith(gone: AbortSignal): void {
    this.#gone = gone;
    if (gone.aborted) this.#end();
    else gone.addEventListener("abort", this, { once: true });
  }

  next(): Promise<Step> {
    if (this.#hasEnded) return Promise.resolve(OVER);
    if (this.#next !== undefined) {
      const text = this.#next;
      this.#next = undefined;
      return Promise.resolve(step(text));
    }
    if (this.#closing) {
      this.#end();
      return Promise.resolve(OVER);
    }
    const buffered = this.#buffered;
    if (buffered !== undefined) return Promise.resolve(this.#take(buffered));
    this.#request();
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** Called when the reader leaves. */
  return(): Promise<Step> {
    this.#end();
    return Promise.resolve(OVER);
  }

  /** Ends the stream by the server: after the current piece, the reader gets a `bye` event. */
  close(reason: string): void {
    if (this.#hasEnded || this.#closing) return;
    this.#closing = true;
    this.#stop.abort(LEFT);
    if (this.#isEventComplete) this.#send(bye(reason));
    else this.#end();
  }

  /** Called by the abort signal. */
  handleEvent(): void {
    this.#end();
  }

  #request(): void {
    if (this.#isRequested) return;
    this.#isRequested = true;
    this.#pieces.next().then(
      (next) => this.#receive(next.done === true ? { end: next.value } : { text: next.value }),
      (failure) => this.#receive({ failure }),
    );
  }

  #receive(piece: NextPiece): void {
    this.#isRequested = false;
    if (this.#hasEnded || this.#closing) return;
    const waiting = this.#waiting;
    if (waiting === undefined) {
      this.#buffered = piece;
      return;
    }
    this.#waiting = undefined;
    waiting(this.#take(piece));
  }

  #take(piece: NextPiece): Step {
    this.#buffered = undefined;
    if ("text" in piece) {
      this.#isEventComplete = piece.text.endsWith(FRAME_END);
      return step(piece.text);
    }
    if ("end" in piece && piece.end === "complete") {
      this.#end();
      return OVER;
    }
    // The log continues, but this stream does not: the client reconnects, and then resumes or gets the error.
    this.#closing = true;
    if ("failure" in piece) this.#options.onError(piece.failure);
    if (!this.#isEventComplete) {
      this.#end();
      return OVER;
    }
    return step(bye("failure" in piece ? toControlError(piece.failure).code : "shutting_down"));
  }

  /** Sends a text to a waiting reader, or as the next piece. */
  #send(text: string): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#next = `${this.#next ?? ""}${text}`;
    else waiting(step(text));
  }

  #heartbeatLater(): () => void {
    return this.#options.clock.after(
      HEARTBEAT_MS,
      () => {
        if (this.#hasEnded) return;
        if (this.#waiting !== undefined && this.#isEventComplete) this.#send(HEARTBEAT);
        this.#cancelHeartbeat = this.#heartbeatLater();
      },
      "idle",
    );
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#buffered = undefined;
    this.#cancelHeartbeat();
    this.#gone?.removeEventListener("abort", this);
    this.#stop.abort(LEFT);
    // An error of the source no longer matters to a reader.
    this.#pieces.return?.("cut").then(undefined, messageOf);
    this.#waiting?.(OVER);
    this.#waiting = undefined;
    this.#options.onEnd();
  }
}
