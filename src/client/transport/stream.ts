// A server's event stream that survives its connections: after a cut it continues where it was.
//
// Invariants
// 1. The reader decides the position (`cursor`): a new connection requests what follows it, and nothing else.
// 2. A connection that sends nothing for three heartbeats is closed.
// 3. Leaving the loop closes the connection, and sends nothing else to the server.
import { ADVICE, type ControlCode, ControlError } from "../../core/errors.ts";
import { type SseMessage, SseParser } from "../../wire/sse-parser.ts";
import { FAULTS_MAX, SILENCE_MS } from "../limits.ts";
import type { Backoff } from "./backoff.ts";
import { type Connection, type Query, withQuery } from "./connection.ts";
import { type FetchResponse, isCode, piecesOf, type Trouble, troubleOf } from "./reply.ts";

export interface StreamOptions {
  readonly path: string;
  readonly query?: Query;
  readonly signal: AbortSignal | undefined;
  /** `ends`: when the server ends the stream cleanly, it is over. Otherwise the client reconnects. */
  readonly kind?: "ends";
}

/** How one connection ended. */
type End = { readonly kind: "over" } | { readonly kind: "cut"; readonly error: ControlError; readonly afterMs: number };

export class Stream {
  /** The last delivered position, sent as `Last-Event-ID` by the next connection. The reader sets it. */
  cursor: string | undefined = undefined;
  /** The number of connections that were answered. */
  connections = 0;
  readonly #connection: Connection;
  readonly #options: StreamOptions;
  #restart = false;
  #faults = 0;

  constructor(connection: Connection, options: StreamOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  /** Reconnects from the cursor, because the received messages cannot be right. */
  restart(): void {
    this.#restart = true;
  }

  /** The messages in batches as they arrive, until the stream is over or the signal aborts. */
  async *pages(): AsyncGenerator<readonly SseMessage[], void> {
    const { signal } = this.#options;
    const backoff = this.#connection.backoff();
    while (signal?.aborted !== true) {
      const stop = new AbortController();
      const abandon = (): void => stop.abort(signal?.reason);
      const release = this.#connection.hold(stop);
      signal?.addEventListener("abort", abandon, { once: true });
      let end: End;
      try {
        end = yield* this.#once(stop, backoff);
      } finally {
        signal?.removeEventListener("abort", abandon);
        release();
        stop.abort(LEFT);
      }
      if (end.kind === "over") return;
      const pauseMs = backoff.next(end);
      if (pauseMs === undefined) throw end.error;
      await this.#pause(pauseMs);
    }
  }

  /** One connection, from opening to end. */
  async *#once(stop: AbortController, backoff: Backoff): AsyncGenerator<readonly SseMessage[], End> {
    const connection = this.#connection;
    const watch = new Watchdog(connection, stop);
    try {
      const headers = this.cursor === undefined ? {} : { "last-event-id": this.cursor };
      const reply = await connection.open(withQuery(this.#options.path, this.#options.query), headers, stop);
      if (reply.status === 204) return { kind: "over" };
      if (reply.status !== 200) return cutBy(await troubleOf(reply, connection.where));
      const other = notStream(reply, connection.where);
      if (other !== undefined) return { kind: "cut", error: other, afterMs: 0 };
      this.connections += 1;
      watch.begin();
      const parser = new SseParser();
      for await (const piece of piecesOf(reply)) {
        watch.received();
        backoff.alive();
        const messages = parser.push(piece);
        if (parser.retryMs !== undefined) backoff.begin(parser.retryMs);
        const bye = messages.findIndex(({ event }) => event === "bye");
        const page = bye === -1 ? messages : messages.slice(0, bye);
        if (page.length > 0) {
          // A slow reader does not make the server silent.
          this.#faults = 0;
          watch.suspend();
          yield page;
          watch.received();
          if (!this.#restart) backoff.reset();
        }
        if (bye !== -1) this.#countFault(messages[bye]?.data ?? "");
        if (this.#restart || bye !== -1) return this.#again();
      }
      return this.#options.kind === "ends" ? { kind: "over" } : this.#again();
    } catch (thrown) {
      if (thrown instanceof ControlError) throw thrown;
      if (this.#options.signal?.aborted === true) return { kind: "over" };
      // Throws if the client was closed.
      connection.hold(stop)();
      return { kind: "cut", error: connection.lost(stop.signal.aborted ? stop.signal.reason : thrown), afterMs: 0 };
    } finally {
      watch.end();
    }
  }

  /** Retries a server that ends the stream because of an internal failure, a limited number of times. */
  #countFault(data: string): void {
    const reason = /^\{"reason":"([a-z_]+)"\}$/.exec(data)?.[1] ?? "shutting_down";
    const code: ControlCode = isCode(reason) ? reason : "internal";
    if (ADVICE[code].retryable) return;
    this.#faults += 1;
    if (this.#faults <= FAULTS_MAX) return;
    throw new ControlError(code, `${this.#connection.where} has ended the stream ${this.#faults} times: ${code}.`);
  }

  #again(): End {
    this.#restart = false;
    return { kind: "cut", error: this.#connection.lost(new Error("the stream has ended")), afterMs: 0 };
  }

  async #pause(ms: number): Promise<void> {
    const { signal } = this.#options;
    try {
      await this.#connection.pause(ms, signal);
    } catch (thrown) {
      // The caller aborted, so its loop ends without an error.
      if (signal?.aborted !== true) throw thrown;
    }
  }
}

/** Closes a connection that is silent for too long. One timer per connection, not one per message. */
class Watchdog {
  readonly #connection: Connection;
  readonly #stop: AbortController;
  #lastAt: number | undefined = undefined;
  #dispose: (() => void) | undefined = undefined;

  constructor(connection: Connection, stop: AbortController) {
    this.#connection = connection;
    this.#stop = stop;
  }

  begin(): void {
    this.received();
    this.#arm(SILENCE_MS);
  }

  received(): void {
    this.#lastAt = this.#connection.clock.elapsed();
  }

  /** Pauses the watchdog while the reader processes a batch. */
  suspend(): void {
    this.#lastAt = undefined;
  }

  end(): void {
    this.#dispose?.();
  }

  #arm(ms: number): void {
    const check = (): void => {
      const now = this.#connection.clock.elapsed();
      const leftMs = (this.#lastAt ?? now) + SILENCE_MS - now;
      if (leftMs > 0) this.#arm(leftMs);
      else this.#stop.abort(SILENT);
    };
    this.#dispose = this.#connection.clock.after(ms, check, "idle");
  }
}

function cutBy({ error, again, foreign, afterMs }: Trouble): End {
  if (!again && foreign !== true) throw error;
  return { kind: "cut", error, afterMs };
}

/** A proxy's page instead of the stream. */
function notStream(reply: FetchResponse, where: string): ControlError | undefined {
  const type = reply.headers.get("content-type") ?? "";
  if (/^text\/event-stream\b/i.test(type)) return undefined;
  return new ControlError("invalid", `${where} answered with ${type || "something"} where a stream was requested.`, {
    hint: "Check the address: a proxy or another program responded instead of a Belay server.",
  });
}

/** Plain objects as abort reasons: without one, each abort creates an error with a stack trace. */
const LEFT = { name: "Left", message: "The reader has left." } as const;
const SILENT = new Error(`nothing came in for ${SILENCE_MS} ms`);
