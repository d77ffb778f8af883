// HTTP responses: reading them whole or in pieces, and what their errors mean.
import { ADVICE, type ControlCode, ControlError, STOP_UNRECORDED } from "../../core/errors.ts";
import { retryAfterMs } from "../../core/retry-after.ts";
import { ANSWER_BYTES_MAX, ERROR_BYTES_MAX, RETRY_AFTER_MS_MAX, STOP_ATTEMPTS_MAX } from "../limits.ts";

/** The part of `Response` that the client uses. */
export interface FetchResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: ReadableStream<Uint8Array> | null;
}

/** The part of `fetch` that the client uses; the platform's own fits. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;

export interface FetchInit {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** Redirects are reported, not followed: the token is for its own address only. */
  readonly redirect: "manual";
  readonly cache: "no-store";
  readonly credentials: "omit";
}

/** A failed request, and whether it may be repeated automatically. */
export interface Trouble {
  readonly error: ControlError;
  readonly again: boolean;
  /** True: the connection was refused, so that no server is running. */
  readonly absent?: boolean;
  /** True: the server says that it has not processed the request, so nothing can be done twice. */
  readonly untouched?: boolean;
  /** True: the response is not Belay's, so the fate of the request is unknown. */
  readonly foreign?: boolean;
  readonly afterMs: number;
  /** Undefined: the same limit as for any other request. */
  readonly attemptsMax?: number;
}

/** The chunks of a body as they arrive. Leaving the loop releases the connection. */
export async function* piecesOf(reply: FetchResponse): AsyncGenerator<Uint8Array, void> {
  if (reply.body === null) return;
  const reader = reply.body.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    // A stream that was cut rejects here too; the loop has already thrown that error.
    await reader.cancel().catch(() => undefined);
  }
}

/** The value of a response, or why it has none. */
export async function answerOf(reply: FetchResponse, where: string): Promise<{ readonly value: unknown } | Trouble> {
  const { status } = reply;
  if (status < 200 || status >= 300) return troubleOf(reply, where);
  if (status === 204) return { value: undefined };
  const text = await textOf(reply, ANSWER_BYTES_MAX);
  if (text === undefined) {
    throw new ControlError("internal", `${where} answered with more than ${ANSWER_BYTES_MAX} bytes.`);
  }
  try {
    return { value: JSON.parse(text) };
  } catch (cause) {
    return { error: foreign(status, where, cause), again: false, foreign: true, afterMs: 0 };
  }
}

/** Why a response has no value. */
export async function troubleOf(reply: FetchResponse, where: string): Promise<Trouble> {
  const { status } = reply;
  const own = belayError((await textOf(reply, ERROR_BYTES_MAX)) ?? "", status);
  const error = own ?? foreign(status, where);
  // A full queue is the session's own state; retrying here would hold up the prompts behind it.
  const pointless = error.code === "unauthenticated" || error.code === "queue_full";
  const again = !pointless && (status === 408 || status === 429 || (status >= 502 && status <= 504));
  const { headers } = reply;
  const requestedMs = retryAfterMs(headers.get("retry-after"), headers.get("date")) ?? 0;
  const afterMs = Math.min(requestedMs, RETRY_AFTER_MS_MAX);
  const untouched = status === 429 && isFromServer(error);
  return {
    error,
    again,
    untouched,
    foreign: own === undefined && !ABOUT_THE_REQUEST.has(status),
    afterMs,
    ...(error.hint === STOP_UNRECORDED ? { attemptsMax: STOP_ATTEMPTS_MAX } : {}),
  };
}

/** Statuses with which a proxy rejects the request itself: its credentials or its size. */
const ABOUT_THE_REQUEST: ReadonlySet<number> = new Set([401, 407, 413, 414, 431]);

/** Undefined: the body is longer than `bytesMax`, and the rest is not read. */
async function textOf(reply: FetchResponse, bytesMax: number): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const piece of piecesOf(reply)) {
    bytes += piece.byteLength;
    if (bytes > bytesMax) return undefined;
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}

/** The server's error, if this is one of Belay's. */
function belayError(text: string, status: number): ControlError | undefined {
  try {
    const { error } = JSON.parse(text) as { readonly error?: Readonly<Record<string, unknown>> };
    if (typeof error?.code !== "string" || typeof error.message !== "string") return undefined;
    // The request id leads to the server's own log entry.
    return errorIn(error, { status, requestId: error.requestId });
  } catch {
    return undefined;
  }
}

/** An error as the server encodes it. */
export function errorIn(
  error: { readonly [Field in "code" | "message" | "hint"]?: unknown },
  cause?: object,
): ControlError {
  const code: ControlCode = typeof error.code === "string" && isCode(error.code) ? error.code : "internal";
  const hint = typeof error.hint === "string" ? { hint: error.hint } : {};
  return new ControlError(code, String(error.message), { ...hint, ...(cause === undefined ? {} : { cause }) });
}

/** Whether the error comes from the server itself, not from a proxy or from this client. */
export function isFromServer({ cause }: ControlError): boolean {
  return typeof cause === "object" && cause !== null && "requestId" in cause;
}

/** The codes with which a server refuses a request after looking up its key. */
const JUDGED: ReadonlySet<ControlCode> = new Set([
  ...(["invalid", "not_found", "conflict", "closed", "busy", "queue_full"] as const),
]);

/**
 * The server refused the request and changed nothing. After any other failure the request may have been processed;
 * sending it again under its key finds out.
 */
export const isRefusal = (thrown: unknown): boolean =>
  thrown instanceof ControlError && JUDGED.has(thrown.code) && isFromServer(thrown);

/** A response that is not Belay's: from a proxy or another program. */
function foreign(status: number, where: string, cause?: unknown): ControlError {
  const hint = "Check the address: a proxy or another program responded instead of a Belay server.";
  if (status === 401)
    return new ControlError("unauthenticated", `${where} requires a token, and its response is not Belay's.`, {
      hint,
      cause,
    });
  const code = status >= 500 ? "unavailable" : "invalid";
  const what = status === 0 || (status >= 300 && status < 400) ? "a redirect, which is not followed" : `${status}`;
  return new ControlError(code, `${where} answered with ${what}, which is not a response of Belay.`, { hint, cause });
}

export const isCode = (code: string): code is ControlCode => Object.hasOwn(ADVICE, code);
