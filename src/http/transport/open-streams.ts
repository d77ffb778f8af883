// The open event streams. All of them end when the server shuts down, and each when its token becomes invalid.
//
// Invariants
// 1. After the shutdown has begun, no stream can be opened.
// 2. A stream outlives its token by at most `STREAM_CHECK_MS` after the token's invalidation is noticed.
import { ControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Gatekeeper } from "../auth/guard.ts";
import { DRAIN_MS, STREAM_CHECK_MS } from "../limits.ts";
import type { Source } from "../routes/route-handler.ts";
import type { Actor, HttpRequest, ResponseStream } from "./http-exchange.ts";
import { SseResponse } from "./sse-response.ts";

export interface StreamParts {
  readonly clock: Clock;
  readonly guard: Gatekeeper;
  readonly onError: (error: unknown, request: HttpRequest) => void;
  readonly onCountChanged: (open: number) => void;
}

/** The pass of a request on a shared stream, which counts as one stream for all its requests. */
const COUNTED = { kind: "opened", release: (): void => {} } as const;

/** The reader of a stream. */
interface Reader {
  readonly actor: Actor;
  readonly request: HttpRequest;
}

export class OpenStreams {
  readonly #parts: StreamParts;
  readonly #open = new Map<SseResponse, Reader>();
  /** Set while there are streams. */
  #cancelCheck: (() => void) | undefined;
  #closing = false;
  #onEmpty: (() => void) | undefined;

  constructor(parts: StreamParts) {
    this.#parts = parts;
  }

  get count(): number {
    return this.#open.size;
  }

  open(source: Source, actor: Actor, request: HttpRequest): ResponseStream {
    if (this.#closing) throw new ControlError("shutting_down", "The server is shutting down.");
    const pass = request.shared === true ? COUNTED : this.#parts.guard.stream(actor);
    if (pass.kind === "denied") throw pass.denial;
    const stream: SseResponse = new SseResponse({
      source: (signal) => startOrRelease(() => source(signal), pass.release),
      clock: this.#parts.clock,
      onError: (error) => this.#parts.onError(error, request),
      onEnd: () => {
        pass.release();
        this.#remove(stream);
      },
    });
    this.#open.set(stream, { actor, request });
    this.#cancelCheck ??= this.#checkLater();
    this.#parts.onCountChanged(this.#open.size);
    stream.endWith(request.signal);
    return stream;
  }

  /** Ends all streams with a `bye` event. Resolves when all readers have read it, or at the timeout. */
  drain(): Promise<void> {
    this.#closing = true;
    for (const stream of this.#open.keys()) stream.close("shutting_down");
    if (this.#open.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const cancelTimer = this.#parts.clock.after(DRAIN_MS, resolve);
      this.#onEmpty = () => {
        cancelTimer();
        resolve();
      };
    });
  }

  #remove(stream: SseResponse): void {
    this.#open.delete(stream);
    this.#parts.onCountChanged(this.#open.size);
    if (this.#open.size > 0) return;
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
    this.#onEmpty?.();
  }

  /** Closes the streams of revoked and expired tokens. A client that reconnects gets the error. */
  #check(): void {
    for (const [stream, reader] of this.#open) if (!this.#isStillAdmitted(reader)) stream.close("unauthenticated");
    this.#cancelCheck = this.#open.size === 0 ? undefined : this.#checkLater();
  }

  #isStillAdmitted({ request, actor }: Reader): boolean {
    try {
      return this.#parts.guard.isStillAdmitted(request, actor);
    } catch (thrown) {
      // If the token cannot be verified, the stream is closed. A client that reconnects gets the error.
      this.#parts.onError(thrown, request);
      return false;
    }
  }

  #checkLater(): () => void {
    return this.#parts.clock.after(STREAM_CHECK_MS, () => this.#check(), "idle");
  }
}

/** Releases the pass if the source throws when it starts. */
function startOrRelease<T>(start: () => T, release: () => void): T {
  try {
    return start();
  } catch (error) {
    release();
    throw error;
  }
}
