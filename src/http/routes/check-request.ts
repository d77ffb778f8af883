// Queries and bodies held against the table. What is refused names the field, and what may have been meant.
//
// Invariants
// 1. Nothing that was not asked for by the table gets past here: no unknown field, no parameter twice, no odd number.
//    Of a stop, what does not say what it covers is left out or made readable instead of refused.
import { z } from "zod";
import { ControlError } from "../../core/errors.ts";
import { isUnparsable } from "../../core/json-depth.ts";
import { JSON_DEPTH_MAX } from "../../core/limits.ts";
import { suggest } from "../../core/suggest.ts";
import type { Route } from "./route.ts";
import { readableStop } from "./stop-body.ts";

/** Levels of a body around what the house bounds itself: `{ prompt: { data: … } }`. */
const ENVELOPE_DEPTH = 2;

/** How much of an unknown name an error quotes. */
const FIELD_CHARS_SHOWN = 64;

const NO_FIELDS = z.strictObject({});

/** The query, as values: numbers are whole, and written as people write them. */
export function checkQuery(route: Route, query: URLSearchParams): unknown {
  const schema: z.ZodObject = route.query ?? NO_FIELDS;
  const values: Record<string, unknown> = Object.create(null);
  for (const [name, text] of query) {
    if (name in values) throw invalid(`The query has ${shown(name)} more than once.`);
    values[name] = valueIn(Object.hasOwn(schema.shape, name) ? schema.shape[name] : undefined, name, text);
  }
  return checked(schema, { ...values }, "The query");
}

function valueIn(field: z.core.$ZodType | undefined, name: string, text: string): unknown {
  const kind = field instanceof z.ZodOptional ? field.unwrap() : field;
  if (kind instanceof z.ZodNumber) {
    if (!/^\d{1,16}$/.test(text)) throw invalid(`${shown(name)} is a whole number, written in digits.`);
    return Number(text);
  }
  if (kind instanceof z.ZodBoolean) {
    if (text !== "true" && text !== "false") throw invalid(`${shown(name)} is true or false.`);
    return text === "true";
  }
  return text;
}

/** The body, as a value. An empty one is an empty object. */
export function checkBody(schema: z.ZodType, text: string, route?: Route): unknown {
  if (isUnparsable(text)) throw tooDeep();
  const value = text.trim() === "" ? {} : parsed(text);
  if (isDeeper(value, JSON_DEPTH_MAX + ENVELOPE_DEPTH)) throw tooDeep();
  return checked(schema, route === undefined ? value : readableStop(route, value), "The body");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // What the parser says shows parts of the body, and those end up in logs.
    throw invalid("The body is not JSON.");
  }
}

/** Level by level, not by a function that calls itself: depth is what is being checked. */
function isDeeper(value: unknown, max: number): boolean {
  let level: readonly unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > max) return true;
    level = level.flatMap((one) => (typeof one === "object" && one !== null ? Object.values(one) : []));
  }
  return false;
}

function checked(schema: z.ZodType, value: unknown, where: string): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { issues } = result.error;
  // An unknown name is most often why the right one is missing.
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ?? issues[0];
  throw issue === undefined ? invalid(`${where} is not as it should be.`) : wrong(issue, schema, where);
}

function wrong(issue: z.core.$ZodIssue, schema: z.ZodType, where: string): ControlError {
  if (issue.code === "unrecognized_keys") {
    const [key = ""] = issue.keys;
    const meant = issue.path.length === 0 ? suggest(key, fieldsOf(schema)) : undefined;
    const inside = issue.path.length === 0 ? where : `${where}, in ${shown(issue.path.join("."))},`;
    return invalid(`${inside} has no ${shown(key)}.${meant === undefined ? "" : ` Did you mean \`${meant}\`?`}`);
  }
  const field = issue.path.length === 0 ? where : shown(issue.path.join("."));
  return invalid(`${field}: ${issue.message}.`);
}

function fieldsOf(schema: z.ZodType): readonly string[] {
  if (schema instanceof z.ZodObject) return Object.keys(schema.shape);
  if (!(schema instanceof z.ZodUnion)) return [];
  return schema.options.flatMap((option) => (option instanceof z.ZodObject ? Object.keys(option.shape) : []));
}

/** What the client sent, short enough to be shown. */
const shown = (name: string): string => `\`${name.slice(0, FIELD_CHARS_SHOWN).toWellFormed()}\``;

const invalid = (message: string): ControlError => new ControlError("invalid", message);
const tooDeep = (): ControlError => invalid(`The body is nested deeper than ${JSON_DEPTH_MAX} levels.`);
