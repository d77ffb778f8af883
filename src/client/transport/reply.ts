// What comes back over HTTP, read to its end or as it comes, and what its errors mean.
import { ADVICE, type ControlCode, ControlError, STOP_UNRECORDED } from "../../core/errors.ts";
import { retryAfterMs } from "../../core/retry-after.ts";
import { ANSWER_BYTES_MAX, ERROR_BYTES_MAX, RETRY_AFTER_MS_MAX, STOP_ATTEMPTS_MAX } from "../limits.ts";

/** As much of a `Response` as is needed here. */
export interface Reply {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: ReadableStream<Uint8Array> | null;
}

/** As much of `fetch` as is needed here: the platform's own fits. */
export type Fetch = (url: string, init: FetchInit) => Promise<Reply>;

export interface FetchInit {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** A redirect is told, not followed: the token is for the address it was given for. */
  readonly redirect: "manual";
  readonly cache: "no-store";
  readonly credentials: "omit";
}

/** Something went wrong, and whether the same request may be made again by itself. */
export interface Trouble {
  readonly error: ControlError;
  readonly again: boolean;
  /** True: the connection was refused, so that no server is there. */
  readonly absent?: boolean;
  /** True: the server itself says that it has not looked at the request, so that nothing can be done twice. */
  readonly untouched?: boolean;
  /** True: it was not Belay that answered, so what became of the request is not known. */
  readonly foreign?: boolean;
  readonly afterMs: number;
  /** Undefined: as often as any other request. */
  readonly attemptsMax?: number;
}

/** The pieces of a body as they come. Leaving the loop lets go of the connection. */
export async function* piecesOf(reply: Reply): AsyncGenerator<Uint8Array, void> {
  if (reply.body === null) return;
  const reader = reply.body.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    // A stream that was cut rejects here as well, and whoever read it has heard of that.
    await reader.cancel().catch(() => undefined);
  }
}

/** What was answered, or why that is none. */
export async function answerOf(reply: Reply, where: string): Promise<{ readonly value: unknown } | Trouble> {
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

/** What an answer that is none says about why. */
export async function troubleOf(reply: Reply, where: string): Promise<Trouble> {
  const { status } = reply;
  const own = told((await textOf(reply, ERROR_BYTES_MAX)) ?? "", status);
  const error = own ?? foreign(status, where);
  // A full queue is the session's own state: whoever waited for it here would hold up the prompts behind it.
  const pointless = error.code === "unauthenticated" || error.code === "queue_full";
  const again = !pointless && (status === 408 || status === 429 || (status >= 502 && status <= 504));
  const { headers } = reply;
  const asked = retryAfterMs(headers.get("retry-after"), headers.get("date")) ?? 0;
  const afterMs = Math.min(asked, RETRY_AFTER_MS_MAX);
  const untouched = status === 429 && isTold(error);
  return {
    error,
    again,
    untouched,
    foreign: own === undefined && !ABOUT_THE_REQUEST.has(status),
    afterMs,
    ...(error.hint === STOP_UNRECORDED ? { attemptsMax: STOP_ATTEMPTS_MAX } : {}),
  };
}

/** What a proxy says of a request that it will never let through: who sends it, and how large it is. */
const ABOUT_THE_REQUEST: ReadonlySet<number> = new Set([401, 407, 413, 414, 431]);

/** Undefined: it is longer than that, and is not read to its end. */
async function textOf(reply: Reply, bytesMax: number): Promise<string | undefined> {
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

/** Belay's own words, if these are Belay's. */
function told(text: string, status: number): ControlError | undefined {
  try {
    const { error } = JSON.parse(text) as { readonly error?: Readonly<Record<string, unknown>> };
    if (typeof error?.code !== "string" || typeof error.message !== "string") return undefined;
    // The id of the request leads to the server's own record of it.
    return errorIn(error, { status, requestId: error.requestId });
  } catch {
    return undefined;
  }
}

/** An error as the server writes one. */
export function errorIn(
  error: { readonly [Field in "code" | "message" | "hint"]?: unknown },
  cause?: object,
): ControlError {
  const code: ControlCode = typeof error.code === "string" && isCode(error.code) ? error.code : "internal";
  const hint = typeof error.hint === "string" ? { hint: error.hint } : {};
  return new ControlError(code, String(error.message), { ...hint, ...(cause === undefined ? {} : { cause }) });
}

/** Whether the server itself has said so, and not a proxy before it, or this client. */
export function isTold({ cause }: ControlError): boolean {
  return typeof cause === "object" && cause !== null && "requestId" in cause;
}

/** The codes by which a server judges a request, having looked under its key. */
const JUDGED: ReadonlySet<ControlCode> = new Set([
  ...(["invalid", "not_found", "conflict", "closed", "busy", "queue_full"] as const),
]);

/**
 * It was refused: nothing was done. The only way to know that. After any other failure it may have been done all the
 * same, which is found out by its key.
 */
export const isRefusal = (thrown: unknown): boolean =>
  thrown instanceof ControlError && JUDGED.has(thrown.code) && isTold(thrown);

/** Whatever answered there has not spoken as Belay does: a proxy, or another program. */
function foreign(status: number, where: string, cause?: unknown): ControlError {
  const hint = "Check the address: something else than a Belay server, or a proxy before it, has answered.";
  if (status === 401)
    return new ControlError("unauthenticated", `${where} wants a token, and not in Belay's words.`, { hint, cause });
  const code = status >= 500 ? "unavailable" : "invalid";
  const what = status === 0 || (status >= 300 && status < 400) ? "a redirect, which is not followed" : `${status}`;
  return new ControlError(code, `${where} answered with ${what}, and not in Belay's words.`, { hint, cause });
}

export const isCode = (code: string): code is ControlCode => Object.hasOwn(ADVICE, code);
