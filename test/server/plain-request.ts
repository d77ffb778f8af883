// A request without a socket, for whatever is about the handler alone.
import type { HttpRequest } from "../../src/server/exchange.ts";

export interface PlainRequest {
  readonly method?: string;
  /** With its query, as it would stand in a request line. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly via?: HttpRequest["via"];
  readonly signal?: AbortSignal;
}

const NEVER = new AbortController().signal;
let made = 0;

export function plainRequest(given: PlainRequest): HttpRequest {
  const { method = "GET", target, headers = {}, body = "", via = "tcp", signal = NEVER } = given;
  const mark = target.indexOf("?");
  made += 1;
  return {
    id: `req_${made}`,
    method,
    path: mark === -1 ? target : target.slice(0, mark),
    query: new URLSearchParams(mark === -1 ? "" : target.slice(mark + 1)),
    header: (name) => (Object.hasOwn(headers, name) ? headers[name] : undefined),
    via,
    body: () => Promise.resolve(body),
    signal,
  };
}
