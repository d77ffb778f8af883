// Maps errors to HTTP responses: one status for each error code.
import { type ControlCode, ControlError, STOP_UNRECORDED, toControlError } from "../../core/errors.ts";
import { Denial, errorAnswer } from "../auth/guard-denial.ts";
import { RETRY_AFTER_S } from "../limits.ts";
import type { HttpAnswer } from "../transport/http-exchange.ts";

/** The client never sees the status of `disconnected`: it is for the log and the metrics. */
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
  store_full: 507,
  store_locked: 503,
  store_corrupt: 500,
  store_newer: 500,
  unavailable: 503,
  disconnected: 499,
  internal: 500,
};

/** Public messages of these errors. The original ones are for the operator: they contain paths and database errors. */
const PUBLIC_MESSAGES: Readonly<Partial<Record<ControlCode, string>>> = {
  store_full: "There is no space left for what the server has to record.",
  store_locked: "Another program is writing to the server's store.",
  store_corrupt: "The server's store is damaged.",
  store_newer: "The server's store was written by a newer version.",
  unavailable: "The server cannot do this at the moment.",
  internal: "Something went wrong inside Belay.",
};

/** The response to a request that was refused or failed, and the error for the log. */
export function errorResponse(
  thrown: unknown,
  requestId: string,
): { readonly error: ControlError; readonly answer: HttpAnswer } {
  if (thrown instanceof Denial) return { error: thrown, answer: thrown.answer(requestId) };
  const error = toControlError(thrown);
  const { code, hint } = error;
  // The client must learn that its stop is carried out, even if the reason why it is not recorded is not public.
  const sent = hint === STOP_UNRECORDED ? new ControlError(code, unrecorded(code), { hint }) : publicError(error);
  const status = STATUS[code];
  return { error, answer: errorAnswer(sent, { status, headers: headersOf(code, status), requestId }) };
}

/** The error without details that clients must not see. */
export function publicError(error: ControlError): ControlError {
  const message = PUBLIC_MESSAGES[error.code];
  return message === undefined ? error : new ControlError(error.code, message);
}

/** The message of an unrecorded stop. Its hint tells that the stop was carried out. */
const unrecorded = (code: ControlCode): string =>
  ["The stop is not recorded yet.", PUBLIC_MESSAGES[code] ?? []].flat().join(" ");

function headersOf(code: ControlCode, status: number): Readonly<Record<string, string>> {
  if (status === 429 || status === 503) return { "retry-after": String(RETRY_AFTER_S) };
  return code === "unauthenticated" ? { "www-authenticate": "Bearer" } : {};
}
