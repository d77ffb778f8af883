// Converts one Node.js request and its response. This is the hot path of the server: no web streams, one write a piece.
//
// Invariants
// 1. Nothing is buffered beyond the high-water mark of the connection and one piece.
// 2. A disconnect of the client aborts the signal and ends the stream. A half-open connection counts as disconnected
//    for streams and waits, but still gets its response.
import type { IncomingMessage, ServerResponse } from "node:http";
import { ControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { Denial } from "../auth/guard-denial.ts";
import { READER_STALL_MS, TARGET_CHARS_MAX, UNWANTED_BYTES_MAX } from "../limits.ts";
import type { Actor, HttpAnswer, HttpRequest, ResponseStream } from "./http-exchange.ts";
import { headersOf } from "./listener-headers.ts";

/** One shared error: creating it would cost more than the rest of handling a disconnect. */
export const GONE = new ControlError("disconnected", "The client disconnected.");

export interface Arrival {
  readonly id: string;
  readonly via: HttpRequest["via"];
  readonly message: IncomingMessage;
  readonly response: ServerResponse;
  /** `waiting`: the client waits for `100 Continue` before it sends the body. */
  readonly sender: "sending" | "waiting";
  readonly clock: Clock;
  /** The URL, if the host server has changed that of the message. */
  readonly url?: string | undefined;
  /** The path prefix of the mount in the host server. */
  readonly basePath?: string | undefined;
  /** The actor, if the host server has authenticated it. */
  readonly actor?: Actor | undefined;
  /** The body, if a parser of the host server has read it. */
  readonly parsed?: unknown;
  readonly onAdmitted?: HttpRequest["onAdmitted"];
}

export class NodeExchange implements HttpRequest {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly via: HttpRequest["via"];
  readonly actor: Actor | undefined;
  readonly onAdmitted: HttpRequest["onAdmitted"];
  readonly #arrival: Arrival;
  #controller: AbortController | undefined;
  #streamed: ResponseStream | undefined;
  #isGone = false;
  /** Whether the client has sent its body, or was told to continue. */
  #mayHaveBody: boolean;

  constructor(arrival: Arrival) {
    const { message, id, via, sender } = arrival;
    const { path, query } = targetOf({ url: arrival.url ?? message.url ?? "" });
    this.#arrival = arrival;
    this.id = id;
    this.via = via;
    // A HEAD is answered like a GET, without the body.
    this.method = message.method === "HEAD" ? "GET" : (message.method ?? "");
    this.path = withoutBase(path, arrival.basePath);
    this.actor = arrival.actor;
    this.onAdmitted = arrival.onAdmitted;
    this.query = query;
    this.#mayHaveBody = sender === "sending";
  }

  /** The error of an invalid request line. */
  get flaw(): Denial | undefined {
    const { message, url = message.url ?? "" } = this.#arrival;
    return targetFlaw({ url, method: message.method });
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isGone) this.#controller.abort(GONE);
    }
    return this.#controller.signal;
  }

  /** Whether the response has begun. */
  get begun(): boolean {
    return this.#arrival.response.headersSent;
  }

  /** Whether the request has arrived completely. */
  get received(): boolean {
    return this.#arrival.message.complete;
  }

  header(name: string): string | undefined {
    return headerOf(this.#arrival.message, name);
  }

  body(bytesMax: number): Promise<string> {
    const flaw = this.#bodyFlaw(bytesMax);
    if (flaw !== undefined) return Promise.reject(flaw);
    const { message, parsed, via } = this.#arrival;
    try {
      const text = via === "fetch" ? parsedBody(parsed, message.readableDidRead, bytesMax) : undefined;
      if (text !== undefined) return Promise.resolve(text);
    } catch (error) {
      return Promise.reject(error);
    }
    if (!this.#mayHaveBody) this.#arrival.response.writeContinue();
    this.#mayHaveBody = true;
    return readBody(this.#arrival.message, bytesMax);
  }

  /** Sends the response. Resolves when it was written, or the client has disconnected. */
  async send(answer: HttpAnswer, options: { readonly connection?: "close" } = {}): Promise<void> {
    const { message, response } = this.#arrival;
    const { status, body } = answer;
    const headers = headersOf(answer, this.id);
    // Without `100 Continue` the client may send its body or not, so the start of its next request is unknown.
    if (options.connection === "close" || !this.#mayHaveBody) headers.connection = "close";
    if (typeof body === "string") headers["content-length"] = String(Buffer.byteLength(body));
    else if (body === undefined && status !== 204 && status !== 304) headers["content-length"] = "0";
    response.writeHead(status, headers);
    const sendsBody = message.method !== "HEAD";
    // The common case: one text, in one write with its headers.
    if (message.complete && typeof body === "string" && body.length <= SHORT_CHARS) {
      response.end(sendsBody ? body : undefined);
      return;
    }
    if (typeof body === "object") await (sendsBody ? this.#stream(body) : body.return?.());
    else if (body !== undefined && sendsBody) await this.#write(Buffer.from(body));
    if (response.destroyed) return;
    // If the connection were closed before the request was read, the system would discard the response, too.
    if (!message.complete && this.#mayHaveBody) {
      response.flushHeaders();
      await discardBody(message);
    }
    response.end();
  }

  /** Called when the client has disconnected. */
  leave(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#controller?.abort(GONE);
    // Otherwise a stream that waits for an event would wait forever.
    void this.#streamed?.return?.().catch(() => {});
  }

  async #stream(pieces: ResponseStream): Promise<void> {
    const { response } = this.#arrival;
    this.#streamed = pieces;
    try {
      response.flushHeaders();
      while (!this.#isGone) {
        const piece = await pieces.next();
        if (piece.done === true || this.#isGone) return;
        if (!response.write(piece.value) && !(await this.#drained())) return;
      }
    } finally {
      await pieces.return?.();
    }
  }

  /** Writes in slices, to distinguish a slow reader from one that has stopped reading. */
  async #write(bytes: Buffer): Promise<void> {
    const { response } = this.#arrival;
    for (let from = 0; from < bytes.length && !response.destroyed; from += SLICE_BYTES) {
      if (!response.write(bytes.subarray(from, from + SLICE_BYTES)) && !(await this.#drained())) return;
    }
  }

  /** Waits until the buffer is drained. False if the client has disconnected, or was disconnected because it stalls. */
  #drained(): Promise<boolean> {
    const { response, clock } = this.#arrival;
    if (response.destroyed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const done = (isDrained: boolean): void => {
        cancelTimer();
        response.off("drain", onDrain);
        response.off("close", onClose);
        resolve(isDrained);
      };
      const onDrain = (): void => done(true);
      const onClose = (): void => done(false);
      const cancelTimer = clock.after(READER_STALL_MS, () => response.destroy(), "idle");
      response.on("drain", onDrain);
      response.on("close", onClose);
    });
  }

  #bodyFlaw(bytesMax: number): Denial | undefined {
    const encoding = this.header("content-encoding");
    const transfer = this.header("transfer-encoding");
    if (encoding !== undefined && encoding.toLowerCase() !== "identity") return compressed();
    // Node.js decodes the chunks and leaves any other transfer encoding as it is.
    if (transfer !== undefined && transfer.toLowerCase() !== "chunked") return compressed();
    return Number(this.header("content-length") ?? 0) > bytesMax ? tooLarge(bytesMax) : undefined;
  }
}

/** Large enough that slicing costs nothing, small enough that a slow client reads one within a minute. */
const SLICE_BYTES = 64 * 1024;

/** A character has at most four bytes, so this is less than a slice. */
const SHORT_CHARS = SLICE_BYTES / 4;

/** The path without the prefix of the mount. Unchanged if the host has stripped it. */
export const withoutBase = (path: string, base: string | undefined): string =>
  base !== undefined && path.startsWith(`${base}/`) ? path.slice(base.length) : path;

/**
 * The text of a body that a parser of the host has read, or undefined if it is unread. Throws if it was read but not
 * passed on: an empty body would mean something else than what was sent.
 */
export function parsedBody(parsed: unknown, isRead: boolean, bytesMax: number): string | undefined {
  if (parsed === undefined) {
    if (!isRead) return undefined;
    throw new Denial(400, "invalid", "The body of this request was read before it reached Belay.", {
      hint: "Pass on the result of your body parser, or mount Belay before the parser.",
    });
  }
  const bytes = parsed instanceof Uint8Array ? decodeUtf8(parsed) : undefined;
  const text = typeof parsed === "string" ? parsed : (bytes ?? JSON.stringify(parsed));
  if (Buffer.byteLength(text) > bytesMax) throw tooLarge(bytesMax);
  return text;
}

/** Path and query of the request line, not decoded. */
export function targetOf({ url = "" }: Pick<IncomingMessage, "url">): Pick<HttpRequest, "path" | "query"> {
  const mark = url.indexOf("?");
  return {
    path: mark === -1 ? url : url.slice(0, mark),
    query: new URLSearchParams(mark === -1 ? "" : url.slice(mark + 1)),
  };
}

export function targetFlaw({ url = "", method }: Pick<IncomingMessage, "url" | "method">): Denial | undefined {
  if (url.length > TARGET_CHARS_MAX) return new Denial(414, "invalid", "The URL of this request is too long.");
  if (url.startsWith("/") || (url === "*" && method === "OPTIONS")) return undefined;
  return new Denial(400, "invalid", "The request target must be a path: this server is not a proxy.");
}

export function headerOf(message: IncomingMessage, name: string): string | undefined {
  const value = message.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

export const tooLarge = (bytesMax: number): Denial =>
  new Denial(413, "invalid", `The body of this request is larger than ${bytesMax} bytes.`, {
    hint: "Put large content into a file and send its path.",
  });

export const compressed = (): Denial =>
  new Denial(415, "invalid", "Compressed bodies are not supported.", { hint: "Send it uncompressed." });

export const notUtf8 = (): Denial => new Denial(400, "invalid", "The body of this request is not UTF-8.");

function readBody(message: IncomingMessage, bytesMax: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    const leave = (): void => {
      message.off("data", onData).off("end", onEnd).off("close", onClose);
    };
    const onData = (piece: Buffer): void => {
      bytes += piece.length;
      pieces.push(piece);
      if (bytes <= bytesMax) return;
      leave();
      message.pause();
      reject(tooLarge(bytesMax));
    };
    const onEnd = (): void => {
      leave();
      const text = decodeUtf8(Buffer.concat(pieces, bytes));
      if (text === undefined) reject(notUtf8());
      else resolve(text);
    };
    const onClose = (): void => {
      leave();
      reject(GONE);
    };
    message.on("data", onData).on("end", onEnd).on("close", onClose);
    if (message.destroyed) onClose();
  });
}

/** Undefined if it is not UTF-8: replacement characters would change the prompt. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Reads and discards the rest of a body, up to a limit of bytes. Its time is limited by the `requestTimeout` of the
 * server; in a mount, of the host.
 */
function discardBody(message: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    message.on("data", (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > UNWANTED_BYTES_MAX) message.destroy();
    });
    message.on("end", resolve).on("close", resolve);
    message.resume();
  });
}
