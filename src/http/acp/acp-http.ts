// ACP over HTTP: converts the server's requests into web-standard requests for the SDK, and its responses back.
//
// Invariants
// 1. Nothing is read from a stream before its reader requests it, and the stream is released when the reader leaves.
import type { ControlError } from "../../core/errors.ts";
import { Denial } from "../auth/guard-denial.ts";
import { slices } from "../transport/event-batches.ts";
import type { HttpAnswer, HttpRequest, ResponseStream } from "../transport/http-exchange.ts";
import { GONE } from "../transport/node-exchange.ts";

/** The path of the ACP endpoint. */
export const ACP_PATH = "/acp";
export const CONNECTION_HEADER = "acp-connection-id";
export const SESSION_HEADER = "acp-session-id";

/** The headers that the SDK needs. Above all, the token is not passed on. */
const FORWARDED = ["content-type", "accept", CONNECTION_HEADER, SESSION_HEADER] as const;

/** A `Request` must have a URL, but the SDK ignores it. */
const UNUSED_URL = "http://localhost/acp";

export function webRequest(request: HttpRequest, body?: string): Request {
  const headers = new Headers();
  for (const name of FORWARDED) {
    const value = request.header(name);
    if (value !== undefined) headers.set(name, value);
  }
  const { method, signal } = request;
  return new Request(UNUSED_URL, { method, headers, signal, ...(body === undefined ? {} : { body }) });
}

/** The request with which the server itself closes a connection. */
export const webDelete = (connectionId: string): Request =>
  new Request(UNUSED_URL, { method: "DELETE", headers: { [CONNECTION_HEADER]: connectionId } });

/** Converts a response of the SDK. Its protocol errors are thrown as this server's errors. */
export async function answerOf(response: Response): Promise<HttpAnswer> {
  const { status, headers } = response;
  const type = headers.get("content-type");
  if (status >= 400 && type?.startsWith("text/plain") === true) throw refusal(status, await response.text());
  const id = headers.get(CONNECTION_HEADER);
  const own = id === null ? {} : { [CONNECTION_HEADER]: id };
  const body = await response.text();
  if (type === null || body === "") return { status, headers: own, body: undefined };
  return { status, headers: { ...own, "content-type": type }, body };
}

const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
} as const;

/** Converts a streaming response. `onEnd` is called once: when the stream ends, or if the response is not a stream. */
export async function streamOf(response: Response, gone: AbortSignal, onEnd: () => void): Promise<HttpAnswer> {
  const { status, body } = response;
  if (status === 200 && body !== null) {
    return { status, headers: STREAM_HEADERS, body: new StreamedAnswer(body, gone, onEnd) };
  }
  onEnd();
  return answerOf(response);
}

/** The body of a streaming response, in pieces of bounded size. */
class StreamedAnswer implements ResponseStream {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  readonly #gone: AbortSignal;
  readonly #onEnd: () => void;
  #pieces: Iterator<string, void> = [][Symbol.iterator]();
  #hasEnded = false;

  constructor(body: ReadableStream<Uint8Array>, gone: AbortSignal, onEnd: () => void) {
    this.#reader = body.getReader();
    this.#gone = gone;
    this.#onEnd = onEnd;
    gone.addEventListener("abort", this, { once: true });
    if (gone.aborted) this.handleEvent();
  }

  async next(): Promise<IteratorResult<string, void>> {
    for (;;) {
      const piece = this.#pieces.next();
      if (piece.done !== true) return piece;
      const chunk = await this.#reader.read().catch(() => "broken" as const);
      if (chunk === "broken") {
        this.#end();
        // A broken stream must not look like a complete one.
        throw GONE;
      }
      if (chunk.done) {
        this.#end();
        return OVER;
      }
      this.#pieces = slices(this.#decoder.decode(chunk.value, { stream: true }));
    }
  }

  /** Called when the reader leaves, even while it waits for the next piece. */
  async return(): Promise<IteratorResult<string, void>> {
    this.handleEvent();
    return OVER;
  }

  /** Called by the abort signal. */
  handleEvent(): void {
    if (this.#hasEnded) return;
    this.#end();
    void this.#reader.cancel().catch(() => {});
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#gone.removeEventListener("abort", this);
    this.#onEnd();
  }
}

const OVER: IteratorResult<string, void> = { done: true, value: undefined };

function refusal(status: number, text: string): ControlError {
  switch (status) {
    case 499:
      return GONE;
    case 404:
      return unknownConnection();
    case 409:
      return new Denial(409, "conflict", "This stream already has a reader.", {
        hint: "A stream has one reader at a time. Disconnect the other reader first.",
      });
    default:
      return new Denial(status, "invalid", `This request is not valid ACP: ${text}.`);
  }
}

/** The error for an unknown connection, and for one of another actor. */
export const unknownConnection = (): Denial =>
  new Denial(404, "not_found", "There is no such ACP connection.", {
    hint: "It was closed, or the server was restarted. Send `initialize` again; sessions can be loaded again.",
  });
