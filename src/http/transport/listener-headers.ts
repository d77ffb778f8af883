// The headers of every response.
import { STATUS_CODES } from "node:http";
import type { HttpAnswer } from "./http-exchange.ts";

/** For browsers: a response is data. It is not framed, sniffed or cached, and runs no foreign script. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** All headers of a response. Its own headers override the general ones. */
export const headersOf = (answer: HttpAnswer, requestId: string): Record<string, string> => ({
  ...SECURITY_HEADERS,
  "x-request-id": requestId,
  ...answer.headers,
});

/** A complete response in wire format, for requests that Node.js does not answer. It closes the connection. */
export function rawAnswer(answer: HttpAnswer & { readonly body: string }, requestId: string): string {
  const headers = {
    ...headersOf(answer, requestId),
    "content-length": String(Buffer.byteLength(answer.body)),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ""}\r\n${lines.join("")}\r\n${answer.body}`;
}
