// A request that is not let through: the error its sender sees, with the status and headers that go with it.
import { type ControlCode, ControlError } from "../../core/errors.ts";
import type { HttpAnswer } from "../transport/http-exchange.ts";

export interface DenialOptions {
  readonly hint?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer whose body is there, all of it. */
export type ErrorAnswer = HttpAnswer & { readonly body: string };

/** May be returned, or thrown from where nothing can be returned (a body that is too large). */
export class Denial extends ControlError {
  readonly status: number;
  /** `retry-after`, `www-authenticate` and the like. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: ControlCode, message: string, options: DenialOptions = {}) {
    super(code, message, options.hint === undefined ? undefined : { hint: options.hint });
    this.status = status;
    this.headers = options.headers ?? {};
  }

  /** As it goes out. */
  answer(requestId: string): ErrorAnswer {
    return errorAnswer(this, { status: this.status, headers: this.headers, requestId });
  }
}

/** The one shape of every error. No stack and no path: `error` was made for people to see, its cause was not. */
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
