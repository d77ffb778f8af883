// Failures and refusals, as a caller receives them. Endings are values (outcomes), not errors.
import { ERROR_DATA_CHARS_MAX, ERROR_DEPTH_MAX } from "./limits.ts";

/** The kind of a failure. A closed set: clients branch on it. */
export type ControlCode =
  | "invalid"
  | "unauthenticated"
  | "forbidden"
  | "not_found"
  | "conflict"
  | "closed"
  | "busy"
  | "queue_full"
  | "overloaded"
  | "shutting_down"
  | "not_started"
  | "uncontained"
  | "store_full"
  | "store_locked"
  | "store_corrupt"
  | "store_newer"
  | "unavailable"
  | "disconnected"
  | "internal";

interface Advice {
  readonly retryable: boolean;
  readonly hint: string;
}

/** One table, so that every interface (library, HTTP, ACP, command line) gives the same advice. */
export const ADVICE: Readonly<Record<ControlCode, Advice>> = {
  invalid: { retryable: false, hint: "Correct the request; sending it again unchanged will fail again." },
  unauthenticated: {
    retryable: false,
    hint: "Send a valid token as `Authorization: Bearer …`. `belay token` shows, adds and rotates them.",
  },
  forbidden: {
    retryable: false,
    hint: "This token, or the place the request comes from, may not do that. `belay token list` shows scopes.",
  },
  not_found: {
    retryable: false,
    hint: "Check the id: nothing is stored under it. Sessions are made with createSession(), runs with prompt().",
  },
  conflict: { retryable: false, hint: "Use a new idempotency key for a different request." },
  closed: { retryable: false, hint: "The session was closed. Create a new one." },
  busy: { retryable: true, hint: 'Wait for the live run to end, or use delivery "queue", "steer" or "interrupt".' },
  queue_full: {
    retryable: true,
    hint: "Wait until queued runs have started and a turn has taken in the inbox, or withdraw some.",
  },
  overloaded: { retryable: true, hint: "Try again a little later." },
  shutting_down: { retryable: true, hint: "Send it again once the server is back." },
  not_started: {
    retryable: false,
    hint: "Check the program's name, the working directory, and whether the machine has room for another process.",
  },
  uncontained: {
    retryable: false,
    hint: "Run `belay doctor`: it says what is missing and how to get it. Or ask for a lower tier.",
  },
  store_full: { retryable: true, hint: "Free disk space. A running server continues by itself once writes succeed." },
  store_locked: { retryable: true, hint: "Another program holds the database. Stop it, or use another file." },
  store_corrupt: {
    retryable: false,
    hint: "Do not write to this file. Restore a backup, or salvage it with sqlite3 .recover.",
  },
  store_newer: { retryable: false, hint: "The file was written by a newer Belay. Upgrade; the file was not touched." },
  unavailable: { retryable: true, hint: "The store did not answer. Retry with the same idempotency key." },
  disconnected: {
    retryable: true,
    hint: "The connection to the server was lost. Accepted work continues; retry once the server is back.",
  },
  internal: { retryable: false, hint: "This is a fault in Belay. The log has the details." },
};

/** The hint for a stop that was carried out but is not recorded yet, whatever the store's error is. */
export const STOP_UNRECORDED =
  "The stop was carried out. It is recorded as soon as the store takes it; ask again to get its outcome.";

export class ControlError extends Error {
  override readonly name = "ControlError";
  readonly code: ControlCode;
  readonly retryable: boolean;
  readonly hint: string;

  constructor(code: ControlCode, message: string, options?: ErrorOptions & { readonly hint?: string }) {
    super(message, options);
    this.code = code;
    this.retryable = ADVICE[code].retryable;
    this.hint = options?.hint ?? ADVICE[code].hint;
  }
}

/**
 * A readable message of any thrown value: its message and those of its causes, or its data. Bounded, and never throws,
 * because error reporting must not fail.
 */
export function messageOf(thrown: unknown): string {
  return textOf(thrown, ERROR_DEPTH_MAX) || WORDLESS;
}

const WORDLESS = "It failed without a message.";

function textOf(thrown: unknown, causes: number): string {
  try {
    // The message of a ControlError is complete: its cause is for the log.
    if (thrown instanceof ControlError) return thrown.message;
    if (isError(thrown)) return withCauses(String(thrown.message), thrown, causes);
    return typeof thrown === "object" && thrown !== null ? dataOf(thrown) : String(thrown);
  } catch {
    // A value that cannot be read.
    return "";
  }
}

/** Also an error of another realm, which is not an instance of this realm's classes. */
function isError(thrown: unknown): thrown is { readonly message: unknown; readonly cause?: unknown } {
  if (thrown instanceof Error) return true;
  return typeof thrown === "object" && thrown !== null && "message" in thrown && typeof thrown.message === "string";
}

/** `message: cause`, and the first few errors of an AggregateError. A cause that the message quotes is omitted. */
function withCauses(message: string, thrown: { readonly cause?: unknown; readonly errors?: unknown }, causes: number) {
  if (causes === 0) return message;
  const errors = Array.isArray(thrown.errors) ? thrown.errors : [];
  const several = errors.slice(0, ERROR_DEPTH_MAX).map((one: unknown) => textOf(one, causes - 1));
  const left = errors.length - several.length;
  const joined = [...several.filter((one) => one !== ""), ...(left > 0 ? [`and ${left} more`] : [])].join("; ");
  const cause = thrown.cause === undefined ? "" : textOf(thrown.cause, causes - 1);
  return [message, joined, cause].reduce((text, one) => {
    if (one === "" || text.includes(one)) return text;
    return text === "" ? one : `${text.replace(/[.:\s]+$/, "")}: ${one}`;
  });
}

/** The object's own string form if it has one, otherwise its data as JSON. */
function dataOf(thrown: object): string {
  const hasText = typeof thrown.toString === "function" && thrown.toString !== Object.prototype.toString;
  if (hasText) return String(thrown);
  const json = JSON.stringify(thrown, plain) ?? "";
  if (json === "{}") return "";
  const cut = json.length - ERROR_DATA_CHARS_MAX;
  return cut <= 0 ? json : `${json.slice(0, ERROR_DATA_CHARS_MAX).toWellFormed()}… (${cut} more characters)`;
}

const plain = (_: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);

/** Any thrown value as an error that a client may see. Details of other errors stay in `cause`, for the log. */
export function toControlError(thrown: unknown): ControlError {
  if (thrown instanceof ControlError) return thrown;
  return new ControlError("internal", "Something went wrong inside Belay.", { cause: thrown });
}
