// A stream of a server's events that outlives its connections: cut off, it goes on where it was.
//
// Invariants
// 1. Whoever reads decides how far it is (`cursor`): a new connection asks for what follows that, and nothing else.
// 2. A connection that says nothing is not believed for longer than three heartbeats.
// 3. Leaving the loop closes the connection, and tells the server nothing else.
import { ADVICE, type ControlCode, ControlError } from "../../core/errors.ts";
import { type SseMessage, SseParser } from "../../wire/sse-parser.ts";
import { FAULTS_MAX, SILENCE_MS } from "../limits.ts";
import type { Backoff } from "./backoff.ts";
import { type Connection, type Query, withQuery } from "./connection.ts";
import { isCode, piecesOf, type Reply, type Trouble, troubleOf } from "./reply.ts";

export interface StreamOptions {
  readonly path: string;
  readonly query?: Query;
  readonly signal: AbortSignal | undefined;
  /** `ends`: when the server ends it in order, it is over. Otherwise that is a cut like any other. */
  readonly kind?: "ends";
}

/** How one connection ended. */
type End = { readonly kind: "over" } | { readonly kind: "cut"; readonly error: ControlError; readonly afterMs: number };

export class Stream {
  /** What was heard last: sent as `Last-Event-ID` by the next connection. Moved by whoever reads. */
  cursor: string | undefined = undefined;
  /** Connections so far that have answered. */
  connections = 0;
  readonly #connection: Connection;
  readonly #options: StreamOptions;
  #restart = false;
  #faults = 0;

  constructor(connection: Connection, options: StreamOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  /** What has come in cannot be right: connect again, from the cursor. */
  restart(): void {
    this.#restart = true;
  }

  /** The events, as many at a time as have come in, until the stream is over or the signal aborts. */
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

  /** One connection, from its opening to its end. */
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
        watch.heard();
        backoff.alive();
        const messages = parser.push(piece);
        if (parser.retryMs !== undefined) backoff.begin(parser.retryMs);
        const bye = messages.findIndex(({ event }) => event === "bye");
        const page = bye === -1 ? messages : messages.slice(0, bye);
        if (page.length > 0) {
          // However long the reader takes, it is not the server that is silent.
          this.#faults = 0;
          watch.rest();
          yield page;
          watch.heard();
          if (!this.#restart) backoff.reset();
        }
        if (bye !== -1) this.#judge(messages[bye]?.data ?? "");
        if (this.#restart || bye !== -1) return this.#again();
      }
      return this.#options.kind === "ends" ? { kind: "over" } : this.#again();
    } catch (thrown) {
      if (thrown instanceof ControlError) throw thrown;
      if (this.#options.signal?.aborted === true) return { kind: "over" };
      // Throws if it was the client that has been closed.
      connection.hold(stop)();
      return { kind: "cut", error: connection.lost(stop.signal.aborted ? stop.signal.reason : thrown), afterMs: 0 };
    } finally {
      watch.end();
    }
  }

  /** A server that ends the stream because of a failure of its own is tried again, but not for ever. */
  #judge(data: string): void {
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
      // Whoever gave up hears nothing of it: their loop ends.
      if (signal?.aborted !== true) throw thrown;
    }
  }
}

/** Ends a connection that has said nothing for too long. One timer for a whole connection, not one for each piece. */
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
    this.heard();
    this.#arm(SILENCE_MS);
  }

  heard(): void {
    this.#lastAt = this.#connection.clock.elapsed();
  }

  /** Nobody listens for the moment, so silence means nothing. */
  rest(): void {
    this.#lastAt = undefined;
  }

  end(): void {
    this.#dispose?.();
  }

  #arm(ms: number): void {
    const look = (): void => {
      const now = this.#connection.clock.elapsed();
      const leftMs = (this.#lastAt ?? now) + SILENCE_MS - now;
      if (leftMs > 0) this.#arm(leftMs);
      else this.#stop.abort(SILENT);
    };
    this.#dispose = this.#connection.clock.after(ms, look, "idle");
  }
}

function cutBy({ error, again, foreign, afterMs }: Trouble): End {
  if (!again && foreign !== true) throw error;
  return { kind: "cut", error, afterMs };
}

/** A page of a proxy, in place of the stream. */
function notStream(reply: Reply, where: string): ControlError | undefined {
  const type = reply.headers.get("content-type") ?? "";
  if (/^text\/event-stream\b/i.test(type)) return undefined;
  return new ControlError("invalid", `${where} answered with ${type || "something"} where a stream was asked for.`, {
    hint: "Check the address: something else than a Belay server, or a proxy before it, has answered.",
  });
}

/** Reasons of our own: without one, each abort makes an error with a stack, for nobody. */
const LEFT = { name: "Left", message: "Nobody reads any more." } as const;
const SILENT = new Error(`nothing came in for ${SILENCE_MS} ms`);
