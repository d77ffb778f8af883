// Converts web-standard requests and responses, for frameworks and runtimes that use them.
//
// Invariants
// 1. Nothing is read from a stream before its reader requests it, and the stream ends when the reader leaves.
import type { Clock } from "../../ports/clock.ts";
import { READER_STALL_MS } from "../limits.ts";
import type { Actor, HttpAnswer, HttpRequest, ResponseStream } from "./http-exchange.ts";
import { headersOf } from "./listener-headers.ts";
import { compressed, decodeUtf8, notUtf8, parsedBody, tooLarge, withoutBase } from "./node-exchange.ts";

export interface FetchArrival {
  readonly id: string;
  readonly basePath?: string | undefined;
  readonly actor?: Actor | undefined;
  /** The body, if a body parser of the host has read it. */
  readonly body?: unknown;
}

export function fetchRequest(request: Request, { id, basePath, actor, body }: FetchArrival): HttpRequest {
  const url = new URL(request.url);
  return {
    id,
    actor,
    method: request.method === "HEAD" ? "GET" : request.method,
    path: withoutBase(url.pathname, basePath),
    query: url.searchParams,
    // The header is what the client has sent. Frameworks may use another host in the URL.
    header: (name) => request.headers.get(name) ?? (name === "host" ? url.host : undefined),
    via: "fetch",
    body: async (bytesMax) => parsedBody(body, request.bodyUsed, bytesMax) ?? (await readBody(request, bytesMax)),
    signal: request.signal,
  };
}

async function readBody(request: Request, bytesMax: number): Promise<string> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") throw compressed();
  if (Number(request.headers.get("content-length") ?? 0) > bytesMax) throw tooLarge(bytesMax);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop early cancels the body.
  for await (const piece of request.body ?? []) {
    bytes += piece.length;
    if (bytes > bytesMax) throw tooLarge(bytesMax);
    pieces.push(piece);
  }
  const text = decodeUtf8(Buffer.concat(pieces, bytes));
  if (text === undefined) throw notUtf8();
  return text;
}

export function fetchResponse(request: Request, answer: HttpAnswer, { id, clock }: ResponseParts): Response {
  const { status, body } = answer;
  const headers = headersOf(answer, id);
  if (request.method === "HEAD" && typeof body === "object") void body.return?.().catch(() => {});
  const sent = request.method === "HEAD" || body === undefined ? null : body;
  return new Response(typeof sent === "string" || sent === null ? sent : stream(sent, clock), {
    status,
    headers,
  });
}

interface ResponseParts {
  readonly id: string;
  readonly clock: Clock;
}

function stream(pieces: ResponseStream, clock: Clock): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let cancelTimer = (): void => {};
  // Disconnects a reader that reads nothing, or never starts to read, so that its place is free for another.
  const watch = (controller: ReadableStreamDefaultController): void => {
    cancelTimer = clock.after(
      READER_STALL_MS,
      () => {
        controller.error(new Error("The reader has read nothing for too long."));
        void pieces.return?.().catch(() => {});
      },
      "idle",
    );
  };
  return new ReadableStream(
    {
      start: watch,
      async pull(controller) {
        cancelTimer();
        const piece = await pieces.next();
        if (piece.done === true) return controller.close();
        controller.enqueue(encoder.encode(piece.value));
        watch(controller);
      },
      async cancel() {
        cancelTimer();
        await pieces.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
