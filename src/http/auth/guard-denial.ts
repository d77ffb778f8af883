// The response to a request that is denied or fails: the error, with its status and headers.
import { type ControlCode, ControlError } from "../../core/errors.ts";
import type { HttpAnswer } from "../transport/http-exchange.ts";

export interface DenialOptions {
  readonly hint?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A response with a complete body. */
export type ErrorAnswer = HttpAnswer & { readonly body: string };

/** A denied request. It may be returned, or thrown where nothing can be returned (a body that is too large). */
export class Denial extends ControlError {
  readonly status: number;
  /** `retry-after`, `www-authenticate` and the like. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: ControlCode, message: string, options: DenialOptions = {}) {
    super(code, message, options.hint === undefined ? undefined : { hint: options.hint });
    this.status = status;
    this.headers = options.headers ?? {};
  }

  /** The response to send. */
  answer(requestId: string): ErrorAnswer {
    return errorAnswer(this, { status: this.status, headers: this.headers, requestId });
  }
}

/** Encodes any error. It includes no stack, no path and no cause: only `error` itself is meant for clients. */
export function errorAnswer(
  error: ControlError,
  {
    status,
    headers = {},
    requestId,
  }: { status: number; headers?: Readonly<Record<string, string>>; requestId: string },
): ErrorAnswer {
  const { code, message, hint, retryable } = error;
  return {
    status,
    headers: { "content-type": "application/json; charset=utf-8", ...headers },
    body: JSON.stringify({ error: { code, message, hint, retryable, requestId } }),
  };
}
