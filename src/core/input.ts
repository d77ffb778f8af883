// Checks of caller input, before anything is recorded. Invalid input leaves no trace.

import { ControlError } from "./errors.ts";
import {
  CALL_BYTES_MAX,
  ITEM_BYTES_MAX,
  JSON_DEPTH_MAX,
  KEY_CHARS_MAX,
  NOTE_CHARS_MAX,
  PAGE_ROWS_MAX,
  PROMPT_BYTES_MAX,
} from "./limits.ts";
import { type CancelReason, cutReason } from "./model/cancel.ts";
import type { InboxItem } from "./model/inbox.ts";
import { type Delivery, isEmptyPrompt, type Json, type Prompt, promptBytes, utf8Bytes } from "./model/prompt.ts";

const DELIVERIES: ReadonlySet<unknown> = new Set<Delivery>(["queue", "steer", "interrupt", "reject"]);

export function checkPrompt(given: unknown): Prompt {
  const asked: unknown = typeof given === "string" ? { text: given } : given;
  if (!isObject(asked)) throw invalid("A prompt is a string, or an object with `text`.");
  const { text, data, ...rest } = asked;
  rejectUnknown(rest, "A prompt");
  if (typeof text !== "string") throw invalid("A prompt's `text` is a string.");
  if (isEmptyPrompt({ text, data })) throw invalid("The prompt is empty.");
  const prompt: Prompt =
    data === undefined ? { text: text.toWellFormed() } : { text: text.toWellFormed(), data: checkJson(data, "`data`") };
  const bytes = promptBytes(prompt);
  if (bytes > PROMPT_BYTES_MAX) throw invalid(`The prompt has ${bytes} bytes; the limit is ${PROMPT_BYTES_MAX}.`);
  return prompt;
}

export function checkDelivery(given: unknown): Delivery {
  if (given === undefined) return "queue";
  if (!isDelivery(given)) {
    throw invalid(`Delivery ${show(given)} is not one of "queue", "steer", "interrupt", "reject".`);
  }
  return given;
}

export function checkKey(given: unknown): string | undefined {
  if (given === undefined) return undefined;
  if (typeof given !== "string" || given === "" || given.length > KEY_CHARS_MAX || !given.isWellFormed()) {
    throw invalid(`An idempotency key is a string of 1 to ${KEY_CHARS_MAX} characters.`);
  }
  return given;
}

/** The user that a request comes from. */
export function checkSender(actor: unknown): { readonly actor?: string } {
  if (actor === undefined) return {};
  if (typeof actor !== "string" || actor.length > KEY_CHARS_MAX) throw invalid("`actor` must be a short string.");
  return { actor };
}

/** Keys of prompts that may not have arrived. Not limited, because prompts that have arrived leave no memo. */
export function checkKeys(given: unknown): readonly string[] {
  if (!Array.isArray(given)) throw invalid("`prompts` must be a list.");
  return given.map((one) => {
    const key = checkKey(one);
    if (key === undefined) throw invalid("A prompt is named by its key.");
    return key;
  });
}

export function checkReason(reason: unknown): CancelReason {
  // A text that is too long is cut: a stop must not fail because of its text.
  const given = cutReason(reason);
  if (given === undefined) return { kind: "user" };
  if (typeof given === "string") return { kind: "user", note: given };
  if (!isObject(given)) throw invalid("A cancel's `reason` is a string or an object with `kind`.");
  const { kind, note, by, ...rest } = given;
  rejectUnknown(rest, "A reason");
  if (kind === "user") {
    return {
      kind,
      ...(note === undefined ? {} : { note: checkNote(note) }),
      ...(by === undefined ? {} : { by: checkNote(by) }),
    };
  }
  if (kind === "policy" && by === undefined) return { kind, note: checkNote(note) };
  throw invalid('A cancel\'s `reason.kind` is "user" or "policy"; the other kinds are Belay\'s own.');
}

/** The error for a position beyond the end of the log, which the log cannot have given out. */
export const beyondTheEnd = (after: number, head: number): ControlError =>
  new ControlError("invalid", `There is nothing at position ${after} yet: the log ends at ${head}.`, {
    hint: "Resume from a position that this session has returned, or from 0.",
  });

export function checkCallJson(given: unknown, what: string): Json {
  const json = checkJson(given, what);
  const bytes = utf8Bytes(JSON.stringify(json));
  if (bytes > CALL_BYTES_MAX) throw invalid(`${what} has ${bytes} bytes; the limit is ${CALL_BYTES_MAX}.`);
  return json;
}

export function checkItem(given: unknown): InboxItem {
  if (!isObject(given)) throw invalid("An item of the inbox is an object with `kind` and `text`.");
  const { kind, text, data, ...rest } = given;
  rejectUnknown(rest, "An item of the inbox");
  if (kind !== "reminder" && kind !== "result") throw invalid('An item\'s `kind` is "reminder" or "result".');
  if (typeof text !== "string" || text.trim() === "") throw invalid("An item has a `text`.");
  const checked = data === undefined ? {} : { data: checkJson(data, "`data`") };
  const item: InboxItem = { kind, text: text.toWellFormed(), ...checked };
  if (utf8Bytes(JSON.stringify(item)) > ITEM_BYTES_MAX) throw invalid(`An item has at most ${ITEM_BYTES_MAX} bytes.`);
  return item;
}

/** Copies plain data. The copy cannot be changed by the caller, and can be stored. */
export function checkJson(given: unknown, what: string, depth = 0): Json {
  switch (typeof given) {
    case "string":
      return given.toWellFormed();
    case "boolean":
      return given;
    case "number":
      if (Number.isFinite(given)) return given;
      throw invalid(`${what} contains ${given}, which JSON does not have.`);
    case "object":
      if (given === null) return null;
      if (depth >= JSON_DEPTH_MAX) throw invalid(`${what} is nested deeper than ${JSON_DEPTH_MAX} levels.`);
      // Not `map`, which skips the holes of a list.
      if (Array.isArray(given)) return Array.from(given, (item) => checkJson(item, what, depth + 1));
      return checkObject(given, what, depth);
    default:
      throw invalid(
        `${what} contains ${given === undefined ? "undefined" : `a ${typeof given}`}; only JSON can be stored.`,
      );
  }
}

function checkObject(given: object, what: string, depth: number): Json {
  const { toJSON } = given as { readonly toJSON?: unknown };
  if (typeof toJSON === "function") return checkJson(toJSON.call(given), what, depth + 1);
  const prototype: unknown = Object.getPrototypeOf(given);
  if (prototype !== Object.prototype && prototype !== null)
    throw invalid(`${what} contains an object that is not plain data.`);
  const copy: Record<string, Json> = Object.create(null);
  for (const [key, value] of Object.entries(given)) {
    if (value !== undefined) copy[key.toWellFormed()] = checkJson(value, what, depth + 1);
  }
  return { ...copy };
}

export function rejectUnknown(rest: object, what: string): void {
  const unknown = Object.keys(rest);
  if (unknown.length > 0) throw invalid(`${what} has no ${unknown.map((key) => `\`${key}\``).join(", ")}.`);
}

/** Checks a whole number of milliseconds within a limit. */
export function checkMs(given: unknown, what: string, max: number): number {
  if (!isWhole(given) || given < 0 || given > max) {
    throw invalid(`${what} is a whole number of milliseconds from 0 to ${max}.`);
  }
  return given;
}

/** Checks the number of rows of a page. */
export function checkLimit(given: unknown): number {
  if (given === undefined) return 100;
  if (!isWhole(given) || given < 1 || given > PAGE_ROWS_MAX) {
    throw invalid(`\`limit\` is a whole number from 1 to ${PAGE_ROWS_MAX}.`);
  }
  return given;
}

export function checkNote(given: unknown): string {
  if (typeof given !== "string" || given.length > NOTE_CHARS_MAX) {
    throw invalid(`A note is a string of at most ${NOTE_CHARS_MAX} characters.`);
  }
  return given.toWellFormed();
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** `cancel("enough")` and `cancel(null)` are mistakes; the error says what is right. */
export function optionsOf<O extends object>(given: O, of: string): O {
  if (!isObject(given)) throw invalid(`${of} takes its options as an object, { name: value }.`);
  return given;
}

export const isString = (value: unknown): value is string => typeof value === "string";

const isWhole = (value: unknown): value is number => Number.isInteger(value);

const isDelivery = (value: unknown): value is Delivery => DELIVERIES.has(value);

export const invalid = (message: string): ControlError => new ControlError("invalid", message);

const show = (value: unknown): string => (typeof value === "string" ? `"${value.slice(0, 40)}"` : typeof value);
