// The one connection over which a client follows and waits: any number of requests and their answers, each read at the
// pace of its own reader.
//
// Invariants
// 1. Stops, and requests that take long, share one connection: no stop waits for one of the six of a browser.
// 2. A stop never waits for this connection for longer than `STOP_OPEN_MS`: then it is sent by itself.
// 3. When the connection is lost, every answer on it fails at once; who reads them asks again from where it was.
import type { Clock } from "../../ports/clock.ts";
import type { StreamDown, StreamHead, StreamUp } from "../../wire/stream-message.ts";
import { READ_CHARS, RECEIVED_MS, STOP_OPEN_MS, STREAM_LINGER_MS } from "../limits.ts";
import type { FetchInit, Reply } from "./reply.ts";

/** An open way for messages. */
export interface Carrier {
  send(message: StreamUp): void;
  /** `dead`: nothing comes over it any more, whoever else may use it. */
  close(why?: "dead"): void;
}

export interface CarrierEvents {
  readonly message: (message: StreamDown) => void;
  /** Once, whoever ended it. */
  readonly closed: (why: unknown) => void;
}

/** Opens a way to the server. Undefined: there is no such way here. Rejects if the server cannot be reached. */
export type OpenCarrier = (events: CarrierEvents) => Promise<Carrier | undefined>;

/** A request that waits for its answer, or whose answer is being read. */
interface Pending {
  readonly answered: (reply: Reply) => void;
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

  /** As `fetch`, over the shared connection; `alone` sends it by itself, where there is none. */
  async fetch(path: string, init: FetchInit, alone: () => Promise<Reply>): Promise<Reply> {
    const carrier = await (init.method === "GET" ? this.#connected() : this.#soon());
    if (carrier === undefined) return alone();
    // It was lost again before this could be sent.
    if (carrier !== this.#live) throw new Error("the connection was closed");
    return this.#request(carrier, path, init);
  }

  close(): void {
    this.#live?.close();
  }

  /** Undefined: it is not open soon enough for a stop, or cannot be opened. */
  async #soon(): Promise<Carrier | undefined> {
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

  #request(carrier: Carrier, path: string, { method, headers, body, signal }: FetchInit): Promise<Reply> {
    const id = String(++this.#ids);
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
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

  /** With the last one gone, the connection is closed: an open one keeps a program alive. */
  #forget(id: string): boolean {
    const known = this.#pending.delete(id);
    if (known && this.#pending.size === 0) {
      this.#disarm();
      this.#disarm = this.#clock.after(STREAM_LINGER_MS, () => this.#live?.close(), "idle");
    }
    return known;
  }
}

function replyOf({ status, headers }: StreamHead, body: ReadableStream<Uint8Array>): Reply {
  return { status, headers: { get: (name) => headers[name] ?? null }, body };
}

/** The body of one answer: what has come in waits here until it is read, and only then is more asked for. */
class Body {
  readonly stream: ReadableStream<Uint8Array>;
  readonly #encoder = new TextEncoder();
  readonly #texts: string[] = [];
  readonly #read: (chars: number) => void;
  #wanted: (() => void) | undefined;
  #unsaid = 0;
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
    this.#wanted?.();
  }

  end(): void {
    if (this.#end === "open") this.#end = "ended";
    this.#wanted?.();
  }

  fail(why: unknown): void {
    if (this.#end === "open") this.#end = { why };
    this.#wanted?.();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    while (this.#texts.length === 0 && this.#end === "open") {
      await new Promise<void>((resolve) => {
        this.#wanted = resolve;
      });
    }
    const text = this.#texts.shift();
    if (text !== undefined) {
      controller.enqueue(this.#encoder.encode(text));
      this.#unsaid += text.length;
      if (this.#unsaid < READ_CHARS || this.#end !== "open") return;
      this.#read(this.#unsaid);
      this.#unsaid = 0;
    } else if (typeof this.#end === "object") controller.error(this.#end.why);
    else controller.close();
  }
}
