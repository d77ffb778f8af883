// One log line: as JSON for machines, or for a person at a terminal. Pure.
import type { Json } from "../core/model/prompt.ts";
import { LINE_CHARS_MAX } from "./limits.ts";
import { type PreviewOptions, preview, previewText } from "./preview.ts";

export type Level = "debug" | "info" | "warn" | "error";

/** The numbers log shippers know. */
export const LEVELS: Readonly<Record<Level, number>> = { debug: 20, info: 30, warn: 40, error: 50 };

/** Anything may be told beside a message. Errors are told with their code and their causes. */
export type Fields = Readonly<Record<string, unknown>>;

export interface LogEntry {
  readonly level: Level;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly msg: string;
  readonly fields: Fields;
}

export type LineForm = "json" | "pretty";

/** The line with its line break. Redaction is its last step, over exactly the characters that leave. */
export function logLine(entry: LogEntry, form: LineForm, options: PreviewOptions): string {
  const msg = previewText(entry.msg, options.redact);
  const whole = oneLine(form, { ...entry, msg }, entriesOf(preview(entry.fields, options)), options);
  if (whole.length <= LINE_CHARS_MAX) return `${whole}\n`;
  // The line is made anew, not cut: half a line is not JSON. A character becomes six at most when it is escaped.
  const short = { ...entry, msg: previewText(entry.msg, options.redact, LINE_CHARS_MAX / 16) };
  return `${oneLine(form, short, [["cut", `${whole.length} characters were too many for one line`]], options)}\n`;
}

type Entries = readonly (readonly [string, Json])[];

function oneLine(form: LineForm, entry: LogEntry, fields: Entries, options: PreviewOptions): string {
  return form === "json" ? jsonLine(entry, fields, options) : options.redact(prettyLine(entry, fields));
}

function jsonLine({ level, time, msg }: LogEntry, fields: Entries, { redact }: PreviewOptions): string {
  const own = { level: LEVELS[level], time };
  const line = visible(JSON.stringify({ ...own, ...Object.fromEntries(fields.map(renamed)), msg }));
  const safe = redact(line);
  // A secret that is a number, or begins inside an escape, leaves something that is not JSON. Then less is told.
  return safe === line || isJson(safe) ? safe : JSON.stringify({ ...own, msg: "[redacted]" });
}

function prettyLine({ level, time, msg }: LogEntry, fields: Entries): string {
  const told = fields.map(([key, value]) => ` ${bare(key)}=${bare(value)}`).join("");
  return visible(`${timeOfDay(time)} ${level.toUpperCase().padEnd(5)} ${msg}${told}`);
}

const entriesOf = (value: Json): Entries =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [];

/** A field cannot pass for the line's own. */
const renamed = ([key, value]: readonly [string, Json]): readonly [string, Json] =>
  ["level", "time", "msg"].includes(key) ? [`field_${key}`, value] : [key, value];

/** A text that could not be mistaken for two is told without quotes. */
const bare = (value: Json): string =>
  typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);

/** What a terminal would obey, and what cannot be seen, as escapes. Inside JSON that is the same text. */
function visible(line: string): string {
  return line.replace(UNSEEN, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** UTC, as everywhere. */
function timeOfDay(time: number): string {
  const part = (unitMs: number, count: number, digits: number): string =>
    String(Math.floor(time / unitMs) % count).padStart(digits, "0");
  return `${part(3_600_000, 24, 2)}:${part(60_000, 60, 2)}:${part(1_000, 60, 2)}.${part(1, 1_000, 3)}`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
