// Encodes and decodes JSON-RPC 2.0 lines.
import { type ControlCode, toControlError } from "../../core/errors.ts";
import { isUnparsable, PARSED_LEVELS_MAX } from "../../core/json-depth.ts";
import type { Json } from "../../core/model/prompt.ts";
import { suggest } from "../../core/suggest.ts";
import { REQUEST_ID_CHARS_MAX } from "./limits.ts";

export type RequestId = string | number;

export type Params = Readonly<Record<string, Json | undefined>>;

/** Without an `id` it is a notification, which is handled but not answered. */
export interface Request {
  readonly id: RequestId | undefined;
  readonly method: string;
  readonly params: Params;
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: { readonly code: ControlCode; readonly hint: string; readonly retryable: boolean };
}

export type Decoded =
  | { readonly kind: "request"; readonly request: Request }
  /** An empty line, or an answer, which is ignored because the bridge sends no requests. */
  | { readonly kind: "nothing" }
  | { readonly kind: "faulty"; readonly id: RequestId | null; readonly error: RpcError };

const NOT_JSON = -32700;
const NO_REQUEST = -32600;
const NO_METHOD = -32601;

/**
 * The JSON-RPC number of each error code; these never change. A code with a counterpart in JSON-RPC uses that number.
 * `not_found` uses the number that hosts of other agents know for a missing session.
 */
export const RPC_CODE: Readonly<Record<ControlCode, number>> = {
  invalid: -32602,
  internal: -32603,
  conflict: -32000,
  closed: -32001,
  busy: -32002,
  queue_full: -32003,
  not_found: -32004,
  overloaded: -32005,
  shutting_down: -32006,
  unauthenticated: -32007,
  forbidden: -32008,
  not_started: -32009,
  uncontained: -32010,
  store_full: -32011,
  store_locked: -32012,
  store_corrupt: -32013,
  store_newer: -32014,
  unavailable: -32015,
  disconnected: -32016,
};

const utf8 = new TextDecoder("utf-8", { fatal: true });

export function decode(bytes: Uint8Array): Decoded {
  let read: Json;
  try {
    const line = utf8.decode(bytes);
    if (line.trim() === "") return { kind: "nothing" };
    if (isUnparsable(line)) return faulty(null, NO_REQUEST, `A line has at most ${PARSED_LEVELS_MAX} levels.`);
    read = JSON.parse(line) as Json;
  } catch {
    return faulty(null, NOT_JSON, "A line must be one JSON object in UTF-8.");
  }
  if (typeof read !== "object" || read === null) return faulty(null, NO_REQUEST, "A request must be an object.");
  if (Array.isArray(read)) return faulty(null, NO_REQUEST, "Requests must be sent one to a line, not as a list.");
  return requestOf(read as Params);
}

export const tooLong = (bytesMax: number): Decoded =>
  faulty(null, NO_REQUEST, `The line is longer than ${bytesMax} bytes, and was ignored.`);

function requestOf({ jsonrpc, id, method, params, ...rest }: Params): Decoded {
  const known = isId(id) ? id : null;
  if (method === undefined && ("result" in rest || "error" in rest)) return { kind: "nothing" };
  if (jsonrpc !== undefined && jsonrpc !== "2.0") return faulty(known, NO_REQUEST, '`jsonrpc` must be "2.0".');
  if (id !== undefined && known === null) {
    return faulty(
      null,
      NO_REQUEST,
      `An \`id\` must be a number, or a string of at most ${REQUEST_ID_CHARS_MAX} characters.`,
    );
  }
  if (typeof method !== "string")
    return faulty(known, NO_REQUEST, "A request must have a `method`, which is a string.");
  const given = params ?? {};
  if (typeof given !== "object" || Array.isArray(given)) {
    return faulty(known, RPC_CODE.invalid, "`params` must be an object with named parameters.");
  }
  return { kind: "request", request: { id: isId(id) ? id : undefined, method, params: given as Params } };
}

const isId = (id: Json | undefined): id is RequestId =>
  (typeof id === "number" && Number.isFinite(id)) || (typeof id === "string" && id.length <= REQUEST_ID_CHARS_MAX);

function faulty(id: RequestId | null, code: number, message: string): Extract<Decoded, { kind: "faulty" }> {
  return { kind: "faulty", id, error: { code, message } };
}

export function rpcError(thrown: unknown): RpcError {
  const { code, message, hint, retryable } = toControlError(thrown);
  return { code: RPC_CODE[code], message, data: { code, hint, retryable } };
}

export function unknownMethod(method: string, known: Iterable<string>): RpcError {
  const meant = suggest(method, known);
  const hint = meant === undefined ? "`initialize` returns a list of all methods." : `Did you mean \`${meant}\`?`;
  const message = `There is no method \`${method.slice(0, 80)}\`. ${hint}`;
  return { code: NO_METHOD, message, data: { code: "invalid", hint, retryable: false } };
}

export const answerLine = (id: RequestId, result: unknown): string =>
  `${JSON.stringify({ jsonrpc: "2.0", id, result: result ?? {} })}\n`;

export const errorLine = (id: RequestId | null, error: RpcError): string =>
  `${JSON.stringify({ jsonrpc: "2.0", id, error })}\n`;

export const notificationLine = (method: string, params: unknown): string =>
  `${JSON.stringify({ jsonrpc: "2.0", method, params })}\n`;
