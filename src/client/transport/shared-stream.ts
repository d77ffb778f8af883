// The one connection over which a client follows, waits and stops: it multiplexes any number of requests, with
// backpressure for each response.
//
// Invariants
// 1. Stops and long requests share one connection, so that no stop waits for one of a browser's six connections.
// 2. A stop waits at most `STOP_OPEN_MS` for this connection to open, and is then sent separately.
// 3. When the connection is lost, every response on it fails at once; its reader requests it again from its cursor.
import type { Clock } from "../../ports/clock.ts";
import type { StreamDown, StreamHead, StreamUp } from "../../wire/stream-message.ts";
import { READ_CHARS, RECEIVED_MS, STOP_OPEN_MS, STREAM_LINGER_MS } from "../limits.ts";
import type { FetchInit, FetchResponse } from "./reply.ts";

/** An open connection for messages. */
export interface Carrier {
  send(message: StreamUp): void;
  /** `dead`: nothing arrives over it any more, so every user of it must give it up. */
  close(why?: "dead"): void;
}

export interface CarrierEvents {
  readonly message: (message: StreamDown) => void;
  /** Called once, whichever side closed it. */
  readonly closed: (why: unknown) => void;
}

/**
 * Connects to the server. Undefined: this kind of connection is not available. Rejects if the server is unreachable.
 */
export type OpenCarrier = (events: CarrierEvents) => Promise<Carrier | undefined>;

/** A request that waits for its response, or whose response is being read. */
interface Pending {
  readonly answered: (reply: FetchResponse) => void;
  readonly failed: (why: unknown) => void;
  received(): void;
  body: Body | undefined;
}

export class SharedStream {
  readonly #open: OpenCarrier;
  readonly #clock: Clock;
  readonly #pending = new Map<string, Pending>();
  #carrier: Promise<Carrier | undefined> | undefined;
  #live: Carrier | undefined;
  #disarm: () => void = () => {};
  #ids = 0;

  constructor(open: OpenCarrier, clock: Clock) {
    this.#open = open;
    this.#clock = clock;
  }

  /** Like `fetch`, over the shared connection; calls `alone` to send it separately if there is none. */
  async fetch(path: string, init: FetchInit, alone: () => Promise<FetchResponse>): Promise<FetchResponse> {
    const carrier = await (init.method === "GET" ? this.#connected() : this.#connectedSoon());
    if (carrier === undefined) return alone();
    // The connection was lost before this could be sent.
    if (carrier !== this.#live) throw new Error("the connection was closed");
    return this.#request(carrier, path, init);
  }

  close(): void {
    this.#live?.close();
  }

  /** Undefined: it does not open soon enough for a stop, or cannot be opened. */
  async #connectedSoon(): Promise<Carrier | undefined> {
    if (this.#live !== undefined) return this.#live;
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const disarm = this.#clock.after(STOP_OPEN_MS, () => resolve(undefined), "idle");
    try {
      return await Promise.race([this.#connected(), late]);
    } catch {
      return undefined;
    } finally {
      disarm();
    }
  }

  #connected(): Promise<Carrier | undefined> {
    if (this.#carrier !== undefined) return this.#carrier;
    const carrier = this.#begin();
    this.#carrier = carrier;
    carrier.catch(() => {
      if (this.#carrier === carrier) this.#carrier = undefined;
    });
    return carrier;
  }

  async #begin(): Promise<Carrier | undefined> {
    let over = false;
    const closed = (why: unknown): void => {
      if (over) return;
      over = true;
      this.#lost(why);
    };
    const carrier = await this.#open({ message: (message) => this.#receive(message), closed });
    if (over) throw new Error("the connection was closed while it was opened");
    this.#live = carrier;
    return carrier;
  }

  #lost(why: unknown): void {
    this.#carrier = undefined;
    this.#live = undefined;
    this.#disarm();
    const all = [...this.#pending.values()];
    this.#pending.clear();
    for (const one of all) one.failed(why);
  }

  #request(carrier: Carrier, path: string, { method, headers, body, signal }: FetchInit): Promise<FetchResponse> {
    const id = String(++this.#ids);
    const { promise, resolve, reject } = Promise.withResolvers<FetchResponse>();
    if (signal.aborted) return Promise.reject(signal.reason);
    const received = this.#clock.after(RECEIVED_MS, () => carrier.close("dead"), "idle");
    const left = (): void => {
      if (!this.#forget(id)) return;
      carrier.send({ type: "leave", id });
      one.failed(signal.reason);
    };
    const over = (): void => {
      received();
      signal.removeEventListener("abort", left);
    };
    const one: Pending = {
      body: undefined,
      received,
      answered: resolve,
      failed: (why) => {
        over();
        reject(why);
        one.body?.fail(why);
      },
    };
    signal.addEventListener("abort", left, { once: true });
    this.#disarm();
    this.#pending.set(id, one);
    carrier.send({
      ...{ type: "request", id, method: method === "GET" || method === "DELETE" ? method : "POST", path },
      lastEventId: headers["last-event-id"],
      key: headers["idempotency-key"],
      body: body === undefined ? undefined : JSON.parse(body),
    });
    one.body = new Body({
      read: (chars) => carrier.send({ type: "read", id, chars }),
      left: () => {
        over();
        if (this.#forget(id)) carrier.send({ type: "leave", id });
      },
    });
    return promise;
  }

  #receive(message: StreamDown): void {
    if (message.type === "open" || message.type === "heartbeat") return;
    const one = this.#pending.get(message.id);
    const body = one?.body;
    if (one === undefined || body === undefined) return;
    one.received();
    if (message.type === "head" || message.type === "answer") one.answered(replyOf(message.head, body.stream));
    if (message.type === "piece" || message.type === "answer") body.push(message.text);
    if (message.type !== "answer" && message.type !== "end") return;
    body.end();
    this.#forget(message.id);
  }

  /** After the last request the connection is closed: an open one keeps a program alive. */
  #forget(id: string): boolean {
    const known = this.#pending.delete(id);
    if (known && this.#pending.size === 0) {
      this.#disarm();
      this.#disarm = this.#clock.after(STREAM_LINGER_MS, () => this.#live?.close(), "idle");
    }
    return known;
  }
}

function replyOf({ status, headers }: StreamHead, body: ReadableStream<Uint8Array>): FetchResponse {
  return { status, headers: { get: (name) => headers[name] ?? null }, body };
}

/** The body of one response: received text is buffered until it is read, and only then is more requested. */
class Body {
  readonly stream: ReadableStream<Uint8Array>;
  readonly #encoder = new TextEncoder();
  readonly #texts: string[] = [];
  readonly #read: (chars: number) => void;
  #wake: (() => void) | undefined;
  #unacknowledged = 0;
  #end: "open" | "ended" | { readonly why: unknown } = "open";

  constructor({ read, left }: { read: (chars: number) => void; left: () => void }) {
    this.#read = read;
    this.stream = new ReadableStream<Uint8Array>(
      { pull: (controller) => this.#pull(controller), cancel: left },
      { highWaterMark: 0 },
    );
  }

  push(text: string): void {
    this.#texts.push(text);
    this.#wake?.();
  }

  end(): void {
    if (this.#end === "open") this.#end = "ended";
    this.#wake?.();
  }

  fail(why: unknown): void {
    if (this.#end === "open") this.#end = { why };
    this.#wake?.();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    while (this.#texts.length === 0 && this.#end === "open") {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const text = this.#texts.shift();
    if (text !== undefined) {
      controller.enqueue(this.#encoder.encode(text));
      this.#unacknowledged += text.length;
      if (this.#unacknowledged < READ_CHARS || this.#end !== "open") return;
      this.#read(this.#unacknowledged);
      this.#unacknowledged = 0;
    } else if (typeof this.#end === "object") controller.error(this.#end.why);
    else controller.close();
  }
}
