// Classifies what a provider throws: the error code, and whether a retry may succeed.
import { retryAfterMs } from "../../core/retry-after.ts";
import { PROVIDER_ERROR_CHARS_MAX } from "../limits.ts";
import { ModelError, type ModelErrorCode } from "./model-error.ts";

export interface ProviderFailure {
  readonly code: ModelErrorCode;
  readonly message: string;
  /** The same request may succeed later. */
  readonly transient: boolean;
  /** The provider's retry-after, in milliseconds. */
  readonly afterMs?: number;
  readonly cause: unknown;
}

/** Reads errors by their fields, not their class: a program may contain two copies of a provider's package. */
export function classifyError(error: unknown, provider: string): ProviderFailure {
  // Our own error from reading the stream, such as a timeout. A retry may succeed.
  if (error instanceof ModelError) return { code: error.code, message: error.message, transient: true, cause: error };
  const status = field(error, "statusCode");
  const message = `${provider} ${status === undefined ? "failed" : `answered ${String(status)}`}: ${errorText(error)}`;
  if (isTransient(error, status)) {
    const afterMs = retryAfterOf(field(error, "responseHeaders"));
    const pause = afterMs === undefined ? {} : { afterMs };
    return { code: "model_overloaded", message, transient: true, ...pause, cause: error };
  }
  const rejected = typeof status === "number" && status >= 400 && status < 500;
  // @fault rejection-told-as-an-error
  return { code: rejected ? "model_rejected" : "model_error", message, transient: false, cause: error };
}

function isTransient(error: unknown, status: unknown): boolean {
  const isRetryable = field(error, "isRetryable");
  if (typeof isRetryable === "boolean") return isRetryable;
  if (typeof status === "number") return status === 408 || status === 409 || status === 429 || status >= 500;
  return isBusy(error) || isNetwork(error) || isNetwork(field(error, "cause"));
}

/** Error types that providers send in a stream whose status was already 200. */
const BUSY = new Set(["overloaded_error", "rate_limit_error", "api_error", "timeout_error", "server_error"]);

const isBusy = (error: unknown): boolean =>
  BUSY.has(String(field(error, "type"))) || /^(server_error|rate_limit_exceeded)$/.test(String(field(error, "code")));

const NETWORK =
  /^(ECONNRESET|ECONNREFUSED|ECONNABORTED|EPIPE|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN|UND_ERR_\w+)$/;

function isNetwork(error: unknown): boolean {
  if (NETWORK.test(String(field(error, "code"))) || field(error, "name") === "TimeoutError") return true;
  // The messages of fetch for a missing or interrupted answer.
  return error instanceof TypeError && /^(fetch failed|terminated|network error)$/i.test(error.message);
}

/** From `retry-after-ms` if present, otherwise from the standard `retry-after`. */
function retryAfterOf(headers: unknown): number | undefined {
  const ms = Number.parseFloat(String(field(headers, "retry-after-ms")));
  if (ms >= 0) return ms;
  return retryAfterMs(String(field(headers, "retry-after")), String(field(headers, "date")));
}

/** Finds the message. Providers stream errors as Error objects, plain objects and strings. */
function errorText(error: unknown): string {
  const message = field(error, "message") ?? field(field(error, "error"), "message");
  const words = typeof message === "string" ? message : typeof error === "string" ? error : asText(error);
  return (words.trim() || "no reason was given").slice(0, PROVIDER_ERROR_CHARS_MAX);
}

function asText(error: unknown): string {
  try {
    return JSON.stringify(error) ?? "";
  } catch {
    return "";
  }
}

function field(of: unknown, name: string): unknown {
  return typeof of === "object" && of !== null ? Reflect.get(of, name) : undefined;
}
