// An error as plain data: what it is called, what it says, its code, and what caused it.
import { CAUSES_MAX } from "./limits.ts";

/** Names as log shippers know them. */
export interface ErrorRecord {
  readonly type: string;
  readonly message: string;
  readonly code?: string | number;
  readonly stack?: string;
  readonly cause?: unknown;
  readonly errors?: readonly unknown[];
}

/**
 * Where an error comes from is for whoever looks for a fault: told when somebody asked for everything, and when the
 * fault is our own. A stack names paths, so it is not told of every mistake that a client makes.
 */
export function errorRecord(error: Error, stacks: "always" | "internal", causes = CAUSES_MAX): ErrorRecord {
  const code = codeOf(error);
  // Once a fault is ours, what caused it is needed with its place.
  const told = stacks === "always" || code === "internal" || error.name === "Bug" ? "always" : "internal";
  const more = (one: unknown): unknown =>
    one instanceof Error ? (causes > 0 ? errorRecord(one, told, causes - 1) : "[and more causes]") : one;
  return {
    type: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    ...(told === "always" && typeof error.stack === "string" ? { stack: error.stack } : {}),
    ...(error.cause === undefined ? {} : { cause: more(error.cause) }),
    ...(error instanceof AggregateError ? { errors: error.errors.slice(0, CAUSES_MAX).map(more) } : {}),
  };
}

function codeOf(error: Error): string | number | undefined {
  const code: unknown = "code" in error ? error.code : undefined;
  return typeof code === "string" || typeof code === "number" ? code : undefined;
}
