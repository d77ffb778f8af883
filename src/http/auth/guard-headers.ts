// What the guard reads out of a request: a token, whether its body is JSON, and whether a secret is in its address.

import { AUTHORIZATION_CHARS_MAX } from "../limits.ts";
import type { HttpRequest } from "../transport/http-exchange.ts";

/** The token of `Authorization: Bearer …`. Two such headers arrive with a comma between them, and are none. */
export function bearerOf(header: string): string | undefined {
  if (header.length > AUTHORIZATION_CHARS_MAX) return undefined;
  return /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(header)?.[1];
}

/** A WebSocket's subprotocol that is a token. Pages cannot set headers on one, and an address is no place for it. */
const BEARER_PROTOCOL = "belay.bearer.";

/** The `Authorization` of a request. One who sends a token in two places sends two, which are none. */
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
 * A page can make a browser send a form or plain text to anybody, but not JSON without having asked first. So a
 * mutation is JSON and says so. A DELETE has no such form, and needs none if it has no body.
 */
export function isJson(request: HttpRequest): boolean {
  const type = request.header("content-type");
  if (type === undefined) return request.method === "DELETE" && hasNoBody(request);
  return /^application\/json[ \t]*(;|$)/i.test(type);
}

/**
 * Whether the headers say that there is no body. A length nobody can read counts as one: whoever reads the body will
 * refuse it. A type without a length announces a body.
 */
export function hasNoBody(request: HttpRequest): boolean {
  if (request.header("transfer-encoding") !== undefined) return false;
  const length = request.header("content-length");
  return length === undefined ? request.header("content-type") === undefined : /^0+$/.test(length);
}

const SECRETS: ReadonlySet<string> = new Set(["token", "access_token", "auth_token", "api_key", "authorization"]);

/** The name of a query parameter that says it is a secret, however it is spelled. Never its value. */
export function namedSecret(query: URLSearchParams): string | undefined {
  for (const name of query.keys()) if (SECRETS.has(name.toLowerCase())) return name.toLowerCase();
  return undefined;
}
