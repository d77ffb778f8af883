// The streams that are open: ended together when the server shuts down.
//
// Invariants
// 1. Whoever opens one after the shutdown has begun is refused.
import { ControlError } from "../core/control-error.ts";
import type { Clock } from "../ports.ts";
import type { Source } from "./doing.ts";
import type { Actor, HttpRequest, Outpour } from "./exchange.ts";
import type { Gatekeeper } from "./guard.ts";
import { DRAIN_MS } from "./limits.ts";
import { Outpouring } from "./outpouring.ts";

export interface StreamParts {
  readonly clock: Clock;
  readonly guard: Gatekeeper;
  readonly failed: (failure: unknown, request: HttpRequest) => void;
  readonly changed: (open: number) => void;
}

export class OpenStreams {
  readonly #parts: StreamParts;
  readonly #open = new Set<Outpouring>();
  #closing = false;
  #emptied: (() => void) | undefined;

  constructor(parts: StreamParts) {
    this.#parts = parts;
  }

  get count(): number {
    return this.#open.size;
  }

  open(source: Source, actor: Actor, request: HttpRequest): Outpour {
    if (this.#closing) throw new ControlError("shutting_down", "The server is shutting down.");
    const pass = this.#parts.guard.stream(actor);
    if (pass.kind === "denied") throw pass.denial;
    const stream: Outpouring = new Outpouring({
      source,
      clock: this.#parts.clock,
      failed: (failure) => this.#parts.failed(failure, request),
      ended: () => {
        pass.release();
        this.#left(stream);
      },
    });
    this.#open.add(stream);
    this.#parts.changed(this.#open.size);
    stream.endWith(request.signal);
    return stream;
  }

  /** Ends all of them with a last word. Resolves when it has been taken, or nobody wants to wait any longer. */
  drain(): Promise<void> {
    this.#closing = true;
    for (const stream of this.#open) stream.close("shutting_down");
    if (this.#open.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const takeBack = this.#parts.clock.after(DRAIN_MS, resolve);
      this.#emptied = () => {
        takeBack();
        resolve();
      };
    });
  }

  #left(stream: Outpouring): void {
    this.#open.delete(stream);
    this.#parts.changed(this.#open.size);
    if (this.#open.size === 0) this.#emptied?.();
  }
}
