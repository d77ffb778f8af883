// ACP over plain HTTP, translated: our request into the web's, which the SDK reads, and its response into our answer.
//
// Invariants
// 1. Nothing is taken from a stream before its reader asks for it, and a reader that leaves gives it back.
import type { ControlError } from "../../core/errors.ts";
import { Denial } from "../auth/guard-denial.ts";
import { slices } from "../transport/event-batches.ts";
import type { HttpAnswer, HttpRequest, ResponseStream } from "../transport/http-exchange.ts";
import { GONE } from "../transport/node-exchange.ts";

/** Where editors and programs that speak ACP come in. */
export const ACP_PATH = "/acp";
export const CONNECTION_HEADER = "acp-connection-id";
export const SESSION_HEADER = "acp-session-id";

/** The SDK looks at no more than these. Above all a token goes no further than the guard. */
const HANDED_ON = ["content-type", "accept", CONNECTION_HEADER, SESSION_HEADER] as const;

/** An address has to be there, and nobody looks at it. */
const ADDRESS = "http://localhost/acp";

export function webRequest(request: HttpRequest, body?: string): Request {
  const headers = new Headers();
  for (const name of HANDED_ON) {
    const value = request.header(name);
    if (value !== undefined) headers.set(name, value);
  }
  const { method, signal } = request;
  return new Request(ADDRESS, { method, headers, signal, ...(body === undefined ? {} : { body }) });
}

/** How the server itself lets a connection go. */
export const webDelete = (connectionId: string): Request =>
  new Request(ADDRESS, { method: "DELETE", headers: { [CONNECTION_HEADER]: connectionId } });

/** What is not as the protocol has it is refused in our own form, like everything else that is refused. */
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

/** `ended` is told once, when the stream has, or when it has turned out to be none. */
export async function streamOf(response: Response, gone: AbortSignal, ended: () => void): Promise<HttpAnswer> {
  const { status, body } = response;
  if (status === 200 && body !== null) {
    return { status, headers: STREAM_HEADERS, body: new StreamedAnswer(body, gone, ended) };
  }
  ended();
  return answerOf(response);
}

/** One stream on its way to one reader, in pieces that a connection can hold. */
class StreamedAnswer implements ResponseStream {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  readonly #gone: AbortSignal;
  readonly #ended: () => void;
  #pieces: Iterator<string, void> = [][Symbol.iterator]();
  #over = false;

  constructor(body: ReadableStream<Uint8Array>, gone: AbortSignal, ended: () => void) {
    this.#reader = body.getReader();
    this.#gone = gone;
    this.#ended = ended;
    gone.addEventListener("abort", this, { once: true });
    if (gone.aborted) this.handleEvent();
  }

  async next(): Promise<IteratorResult<string, void>> {
    for (;;) {
      const piece = this.#pieces.next();
      if (piece.done !== true) return piece;
      const came = await this.#reader.read().catch(() => "broken" as const);
      if (came === "broken") {
        this.#end();
        // A stream that breaks must not look like one that has ended.
        throw GONE;
      }
      if (came.done) {
        this.#end();
        return OVER;
      }
      this.#pieces = slices(this.#decoder.decode(came.value, { stream: true }));
    }
  }

  /** The reader leaves, also while it waits for the next piece. */
  async return(): Promise<IteratorResult<string, void>> {
    this.handleEvent();
    return OVER;
  }

  /** Called by the signal. */
  handleEvent(): void {
    if (this.#over) return;
    this.#end();
    void this.#reader.cancel().catch(() => {});
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#gone.removeEventListener("abort", this);
    this.#ended();
  }
}

const OVER: IteratorResult<string, void> = { done: true, value: undefined };

function refusal(status: number, said: string): ControlError {
  switch (status) {
    case 499:
      return GONE;
    case 404:
      return unknownConnection();
    case 409:
      return new Denial(409, "conflict", "Somebody is reading this stream already.", {
        hint: "A stream has one reader. It is free again once that one has left.",
      });
    default:
      return new Denial(status, "invalid", `This is not as ACP has it: ${said}.`);
  }
}

/** Said of a connection that is not there, and of one that is somebody else's. */
export const unknownConnection = (): Denial =>
  new Denial(404, "not_found", "There is no such ACP connection.", {
    hint: "It was closed, or the server was started anew. Begin again with `initialize`; sessions can be loaded again.",
  });
