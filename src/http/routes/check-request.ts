// Validates queries and bodies against the schemas of the table. Errors name the field and suggest a correction.
//
// Invariants
// 1. Only what the table defines passes: no unknown field, no repeated parameter, no malformed number. Fields of a stop
//    that do not affect what it covers are dropped or corrected instead of refused.
import { z } from "zod";
import { ControlError } from "../../core/errors.ts";
import { isUnparsable } from "../../core/json-depth.ts";
import { JSON_DEPTH_MAX } from "../../core/limits.ts";
import { suggest } from "../../core/suggest.ts";
import type { Route } from "./route.ts";
import { readableStop } from "./stop-body.ts";

/** Levels of a body around the values whose depth Belay limits itself: `{ prompt: { data: … } }`. */
const ENVELOPE_DEPTH = 2;

/** Maximum length of a name that an error quotes. */
const FIELD_CHARS_SHOWN = 64;

const NO_FIELDS = z.strictObject({});

/** Parses and validates the query. Numbers must be whole and written in decimal digits. */
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
    if (!/^\d{1,16}$/.test(text)) throw invalid(`${shown(name)} must be a whole number in decimal digits.`);
    return Number(text);
  }
  if (kind instanceof z.ZodBoolean) {
    if (text !== "true" && text !== "false") throw invalid(`${shown(name)} must be true or false.`);
    return text === "true";
  }
  return text;
}

/** Parses and validates a body. An empty body counts as an empty object. */
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
    // The parser's message is not used: it quotes parts of the body, which would end up in logs.
    throw invalid("The body is not JSON.");
  }
}

/** Iterates level by level instead of recursing, because the depth is not checked yet. */
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
  // Reported first: an unknown field is usually the reason why the correct one is missing.
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ?? issues[0];
  throw issue === undefined ? invalid(`${where} is not valid.`) : issueError(issue, schema, where);
}

function issueError(issue: z.core.$ZodIssue, schema: z.ZodType, where: string): ControlError {
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

/** A name from the client, truncated for an error. */
const shown = (name: string): string => `\`${name.slice(0, FIELD_CHARS_SHOWN).toWellFormed()}\``;

const invalid = (message: string): ControlError => new ControlError("invalid", message);
const tooDeep = (): ControlError => invalid(`The body is nested deeper than ${JSON_DEPTH_MAX} levels.`);
