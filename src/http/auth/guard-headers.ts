// What the guard reads from a request: the token, whether the body is JSON, and whether the URL contains a secret.

import { AUTHORIZATION_CHARS_MAX } from "../limits.ts";
import type { HttpRequest } from "../transport/http-exchange.ts";

/** The token of `Authorization: Bearer …`. Two such headers arrive joined by a comma and are not a valid token. */
export function bearerOf(header: string): string | undefined {
  if (header.length > AUTHORIZATION_CHARS_MAX) return undefined;
  return /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(header)?.[1];
}

/** Prefix of a WebSocket subprotocol with a token: pages cannot set headers, and tokens must not be in a URL. */
const BEARER_PROTOCOL = "belay.bearer.";

/** The `Authorization` of a request. A token in a header and a subprotocol makes two tokens, which are not valid. */
export function authorizationOf(request: HttpRequest): string | undefined {
  const header = request.header("authorization");
  const tokens = request.upgrade === undefined ? [] : protocolsOf(request).filter(isBearer);
  if (tokens.length === 0) return header;
  const sent = tokens.map((token) => `Bearer ${token.slice(BEARER_PROTOCOL.length)}`);
  return [...(header === undefined ? [] : [header]), ...sent].join(", ");
}

const isBearer = (protocol: string): boolean => protocol.startsWith(BEARER_PROTOCOL);

const protocolsOf = (request: HttpRequest): readonly string[] =>
  (request.header("sec-websocket-protocol") ?? "").split(",").map((one) => one.trim());

/**
 * Whether the request declares a JSON body. Mutations must, against CSRF: a page can make a browser send a form or
 * plain text to any server, but JSON only after a preflight. A DELETE without a body is exempt: forms cannot send it.
 */
export function isJson(request: HttpRequest): boolean {
  const type = request.header("content-type");
  if (type === undefined) return request.method === "DELETE" && hasNoBody(request);
  return /^application\/json[ \t]*(;|$)/i.test(type);
}

/**
 * Whether the headers declare that there is no body. An invalid length counts as a body, which is refused when it is
 * read. A content type without a length declares a body.
 */
export function hasNoBody(request: HttpRequest): boolean {
  if (request.header("transfer-encoding") !== undefined) return false;
  const length = request.header("content-length");
  return length === undefined ? request.header("content-type") === undefined : /^0+$/.test(length);
}

const SECRETS: ReadonlySet<string> = new Set(["token", "access_token", "auth_token", "api_key", "authorization"]);

/** The name of a query parameter that holds a secret, in any case. Never its value. */
export function namedSecret(query: URLSearchParams): string | undefined {
  for (const name of query.keys()) if (SECRETS.has(name.toLowerCase())) return name.toLowerCase();
  return undefined;
}
