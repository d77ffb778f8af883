// What goes wrong, as HTTP says it: one status for each code.
import { type ControlCode, type ControlError, toControlError } from "../core/control-error.ts";
import type { HttpAnswer } from "./exchange.ts";
import { Denial, errorAnswer } from "./guard-denial.ts";
import { RETRY_AFTER_S } from "./limits.ts";

/** `disconnected`: whoever asked is gone, so nobody reads the status but the log and the metrics. */
export const STATUS: Readonly<Record<ControlCode, number>> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  closed: 409,
  busy: 409,
  queue_full: 429,
  overloaded: 429,
  shutting_down: 503,
  not_started: 422,
  uncontained: 501,
  store_full: 503,
  store_locked: 503,
  store_corrupt: 500,
  store_newer: 500,
  unavailable: 503,
  disconnected: 499,
  internal: 500,
};

/** The answer to a request that was refused or failed, and the error as it may be seen. */
export function failed(
  thrown: unknown,
  requestId: string,
): { readonly error: ControlError; readonly answer: HttpAnswer } {
  if (thrown instanceof Denial) return { error: thrown, answer: thrown.answer(requestId) };
  const error = toControlError(thrown);
  const status = STATUS[error.code];
  return { error, answer: errorAnswer(error, { status, headers: headersOf(error.code, status), requestId }) };
}

function headersOf(code: ControlCode, status: number): Readonly<Record<string, string>> {
  if (status === 429 || status === 503) return { "retry-after": String(RETRY_AFTER_S) };
  return code === "unauthenticated" ? { "www-authenticate": "Bearer" } : {};
}
