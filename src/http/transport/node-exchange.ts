// One request of Node's and its answer, translated. The hot path of the server: no web streams, one write per piece.
//
// Invariants
// 1. Nothing is buffered beyond the high-water mark of the connection and one piece.
// 2. Whoever asked being gone ends the answering: the signal, the stream. A connection that is only closed for writing
//    on the other side counts as gone for streams and waits, but still gets its answer.
import type { IncomingMessage, ServerResponse } from "node:http";
import { ControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { Denial } from "../auth/guard-denial.ts";
import { READER_STALL_MS, TARGET_CHARS_MAX, UNWANTED_BYTES_MAX } from "../limits.ts";
import type { Actor, HttpAnswer, HttpRequest, ResponseStream } from "./http-exchange.ts";
import { headersOf } from "./listener-headers.ts";

/** Shared, because making an error costs more than everything else about somebody who leaves. */
export const GONE = new ControlError("disconnected", "Whoever asked is gone.");

export interface Arrival {
  readonly id: string;
  readonly via: HttpRequest["via"];
  readonly message: IncomingMessage;
  readonly response: ServerResponse;
  /** Whether the sender waits to be told before it sends the body (`Expect: 100-continue`). */
  readonly sender: "sending" | "waiting";
  readonly clock: Clock;
  /** The address, where another server has shortened that of the message. */
  readonly url?: string | undefined;
  /** Where it is mounted in another server. */
  readonly basePath?: string | undefined;
  /** Who asks, if that server knows. */
  readonly actor?: Actor | undefined;
  /** The body, if a parser of that server has read it. */
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
  #gone = false;
  #told: boolean;

  constructor(arrival: Arrival) {
    const { message, id, via, sender } = arrival;
    const { path, query } = targetOf({ url: arrival.url ?? message.url ?? "" });
    this.#arrival = arrival;
    this.id = id;
    this.via = via;
    // Whoever asks for the head is told what a GET would say, without its body.
    this.method = message.method === "HEAD" ? "GET" : (message.method ?? "");
    this.path = withoutBase(path, arrival.basePath);
    this.actor = arrival.actor;
    this.onAdmitted = arrival.onAdmitted;
    this.query = query;
    this.#told = sender === "sending";
  }

  /** What is wrong with the request line, before anybody reads it. */
  get flaw(): Denial | undefined {
    const { message, url = message.url ?? "" } = this.#arrival;
    return targetFlaw({ url, method: message.method });
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#gone) this.#controller.abort(GONE);
    }
    return this.#controller.signal;
  }

  /** Whether something of the answer is on its way already. */
  get begun(): boolean {
    return this.#arrival.response.headersSent;
  }

  /** Whether all of it has come in. */
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
    if (!this.#told) this.#arrival.response.writeContinue();
    this.#told = true;
    return readBody(this.#arrival.message, bytesMax);
  }

  /** Answers. Resolves when everything was handed over, or nobody is there any more. */
  async send(answer: HttpAnswer, options: { readonly connection?: "close" } = {}): Promise<void> {
    const { message, response } = this.#arrival;
    const { status, body } = answer;
    const headers = headersOf(answer, this.id);
    // A sender that was never told to go on may send its body or not; nobody can tell where its next request begins.
    if (options.connection === "close" || !this.#told) headers.connection = "close";
    if (typeof body === "string") headers["content-length"] = String(Buffer.byteLength(body));
    else if (body === undefined && status !== 204 && status !== 304) headers["content-length"] = "0";
    response.writeHead(status, headers);
    const wanted = message.method !== "HEAD";
    // Nearly every answer: one text, in one write with its headers.
    if (message.complete && typeof body === "string" && body.length <= SHORT_CHARS) {
      response.end(wanted ? body : undefined);
      return;
    }
    if (typeof body === "object") await (wanted ? this.#stream(body) : body.return?.());
    else if (body !== undefined && wanted) await this.#write(Buffer.from(body));
    if (response.destroyed) return;
    // Closing before everything was read would make the system throw the answer away together with the rest.
    if (!message.complete && this.#told) {
      response.flushHeaders();
      await thrownAway(message);
    }
    response.end();
  }

  /** Whoever asked is not listening any more. */
  leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#controller?.abort(GONE);
    // A stream that waits for something to happen would otherwise wait on, for nobody.
    void this.#streamed?.return?.().catch(() => {});
  }

  async #stream(pieces: ResponseStream): Promise<void> {
    const { response } = this.#arrival;
    this.#streamed = pieces;
    try {
      response.flushHeaders();
      while (!this.#gone) {
        const piece = await pieces.next();
        if (piece.done === true || this.#gone) return;
        if (!response.write(piece.value) && !(await this.#taken())) return;
      }
    } finally {
      await pieces.return?.();
    }
  }

  /** In slices, so that a slow reader can be told from one that has stopped reading. */
  async #write(bytes: Buffer): Promise<void> {
    const { response } = this.#arrival;
    for (let from = 0; from < bytes.length && !response.destroyed; from += SLICE_BYTES) {
      if (!response.write(bytes.subarray(from, from + SLICE_BYTES)) && !(await this.#taken())) return;
    }
  }

  /** Waits until the reader has taken what is ready. False: it is gone, or was let go because it takes nothing. */
  #taken(): Promise<boolean> {
    const { response, clock } = this.#arrival;
    if (response.destroyed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const done = (taken: boolean): void => {
        dispose();
        response.off("drain", drained);
        response.off("close", closed);
        resolve(taken);
      };
      const drained = (): void => done(true);
      const closed = (): void => done(false);
      const dispose = clock.after(READER_STALL_MS, () => response.destroy(), "idle");
      response.on("drain", drained);
      response.on("close", closed);
    });
  }

  #bodyFlaw(bytesMax: number): Denial | undefined {
    const encoding = this.header("content-encoding");
    const transfer = this.header("transfer-encoding");
    if (encoding !== undefined && encoding.toLowerCase() !== "identity") return compressed();
    // Node takes off the chunks and leaves what is under them as it is.
    if (transfer !== undefined && transfer.toLowerCase() !== "chunked") return compressed();
    return Number(this.header("content-length") ?? 0) > bytesMax ? tooLarge(bytesMax) : undefined;
  }
}

/** Large enough that slicing costs nothing, small enough that a reader of a slow line takes one within a minute. */
const SLICE_BYTES = 64 * 1024;

/** A character has at most four bytes, so this is less than a slice. */
const SHORT_CHARS = SLICE_BYTES / 4;

/** Below where it is mounted. A host that takes that off itself has left nothing to take off. */
export const withoutBase = (path: string, base: string | undefined): string =>
  base !== undefined && path.startsWith(`${base}/`) ? path.slice(base.length) : path;

/**
 * The text of a body that a parser of the host has read. Undefined: nobody has read it yet. Throws if it was read and
 * is gone: an empty one would mean something else than what was sent.
 */
export function parsedBody(parsed: unknown, isRead: boolean, bytesMax: number): string | undefined {
  if (parsed === undefined) {
    if (!isRead) return undefined;
    throw new Denial(400, "invalid", "The body of this request was read before it reached Belay, and is gone.", {
      hint: "Hand on what your body parser has made of it, or mount Belay before the parser.",
    });
  }
  const bytes = parsed instanceof Uint8Array ? decodeUtf8(parsed) : undefined;
  const text = typeof parsed === "string" ? parsed : (bytes ?? JSON.stringify(parsed));
  if (Buffer.byteLength(text) > bytesMax) throw tooLarge(bytesMax);
  return text;
}

/** What stands in the request line, undecoded. */
export function targetOf({ url = "" }: Pick<IncomingMessage, "url">): Pick<HttpRequest, "path" | "query"> {
  const mark = url.indexOf("?");
  return {
    path: mark === -1 ? url : url.slice(0, mark),
    query: new URLSearchParams(mark === -1 ? "" : url.slice(mark + 1)),
  };
}

export function targetFlaw({ url = "", method }: Pick<IncomingMessage, "url" | "method">): Denial | undefined {
  if (url.length > TARGET_CHARS_MAX) return new Denial(414, "invalid", "The address of this request is too long.");
  if (url.startsWith("/") || (url === "*" && method === "OPTIONS")) return undefined;
  return new Denial(400, "invalid", "The request names a whole address where a path belongs. This is no proxy.");
}

export function headerOf(message: IncomingMessage, name: string): string | undefined {
  const value = message.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

export const tooLarge = (bytesMax: number): Denial =>
  new Denial(413, "invalid", `The body of this request is larger than ${bytesMax} bytes.`, {
    hint: "Send less. What is large travels by reference: put it into a file, and name the file.",
  });

export const compressed = (): Denial =>
  new Denial(415, "invalid", "A compressed body is not accepted.", { hint: "Send it as it is." });

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

/** Undefined if it is not UTF-8. A replacement character in a prompt would be something nobody has said. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Reads on what nobody wants, up to a bound. */
function thrownAway(message: IncomingMessage): Promise<void> {
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
