// The streams that are open: ended together when the server shuts down, and each when its token ends.
//
// Invariants
// 1. Whoever opens one after the shutdown has begun is refused.
// 2. A stream outlives its token by `STREAM_CHECK_MS` at most, and by as long as the token's end takes to be noticed.
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
  readonly failed: (failure: unknown, request: HttpRequest) => void;
  readonly changed: (open: number) => void;
}

const COUNTED = { kind: "opened", release: (): void => {} } as const;

/** Whose a stream is. */
interface Reader {
  readonly actor: Actor;
  readonly request: HttpRequest;
}

export class OpenStreams {
  readonly #parts: StreamParts;
  readonly #open = new Map<SseResponse, Reader>();
  /** Waits while there are streams, and only then. */
  #dispose: (() => void) | undefined;
  #closing = false;
  #emptied: (() => void) | undefined;

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
      source: (signal) => begun(() => source(signal), pass.release),
      clock: this.#parts.clock,
      failed: (failure) => this.#parts.failed(failure, request),
      ended: () => {
        pass.release();
        this.#left(stream);
      },
    });
    this.#open.set(stream, { actor, request });
    this.#dispose ??= this.#lookLater();
    this.#parts.changed(this.#open.size);
    stream.endWith(request.signal);
    return stream;
  }

  /** Ends all of them with a last word. Resolves when it has been taken, or nobody wants to wait any longer. */
  drain(): Promise<void> {
    this.#closing = true;
    for (const stream of this.#open.keys()) stream.close("shutting_down");
    if (this.#open.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const dispose = this.#parts.clock.after(DRAIN_MS, resolve);
      this.#emptied = () => {
        dispose();
        resolve();
      };
    });
  }

  #left(stream: SseResponse): void {
    this.#open.delete(stream);
    this.#parts.changed(this.#open.size);
    if (this.#open.size > 0) return;
    this.#dispose?.();
    this.#dispose = undefined;
    this.#emptied?.();
  }

  /** A token that was revoked, or has expired, reads no further. Its reader asks again, and is told. */
  #look(): void {
    for (const [stream, reader] of this.#open) if (!this.#isStill(reader)) stream.close("unauthenticated");
    this.#dispose = this.#open.size === 0 ? undefined : this.#lookLater();
  }

  #isStill({ request, actor }: Reader): boolean {
    try {
      return this.#parts.guard.still(request, actor);
    } catch (thrown) {
      // Nobody can say, so it is no; whoever asks again is told what is wrong.
      this.#parts.failed(thrown, request);
      return false;
    }
  }

  #lookLater(): () => void {
    return this.#parts.clock.after(STREAM_CHECK_MS, () => this.#look(), "idle");
  }
}

/** A source that cannot even begin holds no place. */
function begun<T>(begin: () => T, release: () => void): T {
  try {
    return begin();
  } catch (error) {
    release();
    throw error;
  }
}
