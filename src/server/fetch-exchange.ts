// The same server behind the web's own Request and Response, for frameworks and runtimes that speak those.
//
// Invariants
// 1. Nothing is pulled from a stream before its reader asks for it, and a reader that leaves ends it.
import { toControlError } from "../core/control-error.ts";
import type { HttpAnswer, HttpRequest, Outpour } from "./exchange.ts";
import { Denial, errorAnswer } from "./guard-denial.ts";
import { headersOf } from "./listener-headers.ts";
import { compressed, decodeUtf8, notUtf8, tooLarge } from "./node-exchange.ts";
import type { Handle } from "./node-server.ts";
import { requestIds } from "./request-id.ts";

export interface FetchOptions {
  /** Something that no request should be able to bring about. For the log. */
  readonly onTrouble?: (thrown: unknown, requestId: string) => void;
}

export function fetchHandler(handle: Handle, options: FetchOptions = {}): (request: Request) => Promise<Response> {
  const nextId = requestIds();
  return async (request) => {
    const id = nextId();
    const answer = await handle(translated(request, id)).catch((thrown: unknown): HttpAnswer => {
      if (thrown instanceof Denial) return thrown.answer(id);
      options.onTrouble?.(thrown, id);
      const error = toControlError(thrown);
      return errorAnswer(error.code === "internal" ? error : toControlError(undefined), { status: 500, requestId: id });
    });
    return response(request, answer, id);
  };
}

function translated(request: Request, id: string): HttpRequest {
  const url = new URL(request.url);
  return {
    id,
    method: request.method === "HEAD" ? "GET" : request.method,
    path: url.pathname,
    query: url.searchParams,
    // Whoever made the request from a connection has put the Host into its address, or left the header, or both. Where
    // they differ somebody is being led astray, and the guard finds no name of ours in the two of them.
    header: (name) => (name === "host" ? hostOf(request, url) : (request.headers.get(name) ?? undefined)),
    via: "fetch",
    body: (bytesMax) => readBody(request, bytesMax),
    signal: request.signal,
  };
}

function hostOf(request: Request, url: URL): string {
  const header = request.headers.get("host")?.toLowerCase();
  // An address leaves out the port that goes without saying; a header may have it.
  const said = `${url.hostname}:${url.protocol === "https:" ? 443 : 80}`;
  return header === undefined || header === url.host || header === said ? url.host : `${header}, ${url.host}`;
}

async function readBody(request: Request, bytesMax: number): Promise<string> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") throw compressed();
  if (Number(request.headers.get("content-length") ?? 0) > bytesMax) throw tooLarge(bytesMax);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop early cancels the rest.
  for await (const piece of request.body ?? []) {
    bytes += piece.length;
    if (bytes > bytesMax) throw tooLarge(bytesMax);
    pieces.push(piece);
  }
  const text = decodeUtf8(Buffer.concat(pieces, bytes));
  if (text === undefined) throw notUtf8();
  return text;
}

function response(request: Request, answer: HttpAnswer, id: string): Response {
  const { status, body } = answer;
  const headers = headersOf(answer, id);
  if (request.method === "HEAD" && typeof body === "object") void body.return?.().catch(() => {});
  const wanted = request.method === "HEAD" || body === undefined ? null : body;
  return new Response(typeof wanted === "string" || wanted === null ? wanted : stream(wanted), { status, headers });
}

function stream(pieces: Outpour): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream(
    {
      async pull(controller) {
        const piece = await pieces.next();
        if (piece.done === true) controller.close();
        else controller.enqueue(encoder.encode(piece.value));
      },
      async cancel() {
        await pieces.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}
