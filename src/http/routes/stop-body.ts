// Corrects the body of a stop. Fields that determine what it covers are validated strictly; others never refuse it.
import { z } from "zod";
import { readableReason, readableWait } from "../../core/stop-form.ts";
import { suggest } from "../../core/suggest.ts";
import type { Route } from "./route.ts";

/** Fields that are parsed leniently, or dropped. All other fields determine what is covered. */
const LENIENT: Readonly<Record<string, (given: unknown) => unknown>> = {
  reason: readableReason,
  waitMs: readableWait,
  remind: (given) => (typeof given === "boolean" ? given : undefined),
};

/**
 * The body in a form that its schema accepts: without unknown fields. A field that may be a misspelt one that
 * determines what is covered is kept, so that the schema refuses it: dropping it would change the stop.
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
