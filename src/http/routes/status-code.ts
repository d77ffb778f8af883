// What goes wrong, as HTTP says it: one status for each code.
import { type ControlCode, ControlError, STOP_UNRECORDED, toControlError } from "../../core/errors.ts";
import { Denial, errorAnswer } from "../auth/guard-denial.ts";
import { RETRY_AFTER_S } from "../limits.ts";
import type { HttpAnswer } from "../transport/http-exchange.ts";

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
  store_full: 507,
  store_locked: 503,
  store_corrupt: 500,
  store_newer: 500,
  unavailable: 503,
  disconnected: 499,
  internal: 500,
};

/** What the house says about these is for whoever runs it: it names files, and what a database has said. */
const SEEN: Readonly<Partial<Record<ControlCode, string>>> = {
  store_full: "There is no space left for what the server has to record.",
  store_locked: "Another program is writing to the server's store.",
  store_corrupt: "The server's store is damaged.",
  store_newer: "The server's store was written by a newer version.",
  unavailable: "The server cannot do this at the moment.",
  internal: "Something went wrong inside Belay.",
};

/** The answer to a request that was refused or failed; and the error as the log may have it. */
export function failed(
  thrown: unknown,
  requestId: string,
): { readonly error: ControlError; readonly answer: HttpAnswer } {
  if (thrown instanceof Denial) return { error: thrown, answer: thrown.answer(requestId) };
  const error = toControlError(thrown);
  const { code, hint } = error;
  // Whoever asked for a stop is told that it is under way, also by a house that cannot say why it has not recorded it.
  const seen = hint === STOP_UNRECORDED ? new ControlError(code, unrecorded(code), { hint }) : seenOf(error);
  const status = STATUS[code];
  return { error, answer: errorAnswer(seen, { status, headers: headersOf(code, status), requestId }) };
}

/** An error as clients may see it. */
export function seenOf(error: ControlError): ControlError {
  const message = SEEN[error.code];
  return message === undefined ? error : new ControlError(error.code, message);
}

/** What the hint says of the same is that it was carried out. */
const unrecorded = (code: ControlCode): string => ["The stop is not recorded yet.", SEEN[code] ?? []].flat().join(" ");

function headersOf(code: ControlCode, status: number): Readonly<Record<string, string>> {
  if (status === 429 || status === 503) return { "retry-after": String(RETRY_AFTER_S) };
  return code === "unauthenticated" ? { "www-authenticate": "Bearer" } : {};
}
