// Headers that every answer carries, whatever it says and whoever gets it.
import { STATUS_CODES } from "node:http";
import type { HttpAnswer } from "./http-exchange.ts";

/** For browsers: an answer is data. It is not shown in a frame, not guessed at, not kept, and runs nothing foreign. */
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

/** All headers of an answer. Its own come last: it may say more precisely what is said here in general. */
export const headersOf = (answer: HttpAnswer, requestId: string): Record<string, string> => ({
  ...SECURITY_HEADERS,
  "x-request-id": requestId,
  ...answer.headers,
});

/** A whole answer as it goes over the wire, for where nobody else writes it. The connection ends with it. */
export function rawAnswer(answer: HttpAnswer & { readonly body: string }, requestId: string): string {
  const headers = {
    ...headersOf(answer, requestId),
    "content-length": String(Buffer.byteLength(answer.body)),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ""}\r\n${lines.join("")}\r\n${answer.body}`;
}
