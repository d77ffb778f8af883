// Formats one log line: as JSON for machines, or for people at a terminal. Pure.
import type { Json } from "../core/model/prompt.ts";
import { LINE_CHARS_MAX } from "./limits.ts";
import { type PreviewOptions, preview, previewText } from "./preview.ts";

export type Level = "debug" | "info" | "warn" | "error";

/** The level numbers that log shippers expect. */
export const LEVELS: Readonly<Record<Level, number>> = { debug: 20, info: 30, warn: 40, error: 50 };

/** Additional values of a log line. Errors are logged with their code and their causes. */
export type Fields = Readonly<Record<string, unknown>>;

export interface LogEntry {
  readonly level: Level;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly msg: string;
  readonly fields: Fields;
}

export type LineForm = "json" | "pretty";

/** Formats the line, with its line break. Redaction is the last step, over exactly the characters that are written. */
export function logLine(entry: LogEntry, form: LineForm, options: PreviewOptions): string {
  const msg = previewText(entry.msg, options.redact);
  const whole = oneLine(form, { ...entry, msg }, entriesOf(preview(entry.fields, options)), options);
  if (whole.length <= LINE_CHARS_MAX) return `${whole}\n`;
  // The line is formatted again, not truncated: half a line is not JSON. Escaping makes six characters of one at most.
  const short = { ...entry, msg: previewText(entry.msg, options.redact, LINE_CHARS_MAX / 16) };
  return `${oneLine(form, short, [["cut", `the line had ${whole.length} characters, which is too long`]], options)}\n`;
}

type Entries = readonly (readonly [string, Json])[];

function oneLine(form: LineForm, entry: LogEntry, fields: Entries, options: PreviewOptions): string {
  return form === "json" ? jsonLine(entry, fields, options) : options.redact(prettyLine(entry, fields));
}

function jsonLine({ level, time, msg }: LogEntry, fields: Entries, { redact }: PreviewOptions): string {
  const own = { level: LEVELS[level], time };
  const line = visible(JSON.stringify({ ...own, ...Object.fromEntries(fields.map(renamed)), msg }));
  const safe = redact(line);
  // Redacting a number, or a secret that begins inside an escape, can break the JSON. Then only the level is written.
  return safe === line || isJson(safe) ? safe : JSON.stringify({ ...own, msg: "[redacted]" });
}

function prettyLine({ level, time, msg }: LogEntry, fields: Entries): string {
  const pairs = fields.map(([key, value]) => ` ${bare(key)}=${bare(value)}`).join("");
  return visible(`${timeOfDay(time)} ${level.toUpperCase().padEnd(5)} ${msg}${pairs}`);
}

const entriesOf = (value: Json): Entries =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [];

/** Renames a field that would collide with the line's own fields. */
const renamed = ([key, value]: readonly [string, Json]): readonly [string, Json] =>
  ["level", "time", "msg"].includes(key) ? [`field_${key}`, value] : [key, value];

/** A single word is written without quotes. */
const bare = (value: Json): string =>
  typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);

/** Escapes terminal control sequences and invisible characters. Inside JSON the escapes mean the same text. */
function visible(line: string): string {
  return line.replace(UNSEEN, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern must match control characters.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The time of day in UTC. */
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
