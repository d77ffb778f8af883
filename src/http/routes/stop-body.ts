// The body of a stop. What says what it covers is checked as every body is; the rest is no reason to refuse it.
import { z } from "zod";
import { readableReason, readableWait } from "../../core/stop-form.ts";
import { suggest } from "../../core/suggest.ts";
import type { Route } from "./route.ts";

/** Read as far as possible, or left out. All other fields say what is covered. */
const LENIENT: Readonly<Record<string, (given: unknown) => unknown>> = {
  reason: readableReason,
  waitMs: readableWait,
  remind: (given) => (typeof given === "boolean" ? given : undefined),
};

/**
 * The body as its schema takes it: without unknown fields, unless one may be a misspelt field that says what is
 * covered. That would make the stop another one, so the schema refuses it.
 */
export function readableStop({ stop, body }: Route, value: unknown): unknown {
  if (stop !== true || !(body instanceof z.ZodObject) || !("reason" in body.shape)) return value;
  if (value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) return value;
  const { shape } = body;
  const covering = Object.keys(shape).filter((name) => !Object.hasOwn(LENIENT, name));
  const fields = Object.entries(value).flatMap(([name, given]) => {
    if (!Object.hasOwn(shape, name)) return suggest(name, covering) === undefined ? [] : [[name, given]];
    const read = Object.hasOwn(LENIENT, name) ? LENIENT[name]?.(given) : given;
    return read === undefined || read === null ? [] : [[name, read]];
  });
  return Object.fromEntries(fields);
}
