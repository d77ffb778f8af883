// The audit record of one control request and its response, and its encoding as a line of the trail. Pure.
import type { Json } from "../../core/model/prompt.ts";
import { AUDIT_NAME_CHARS_MAX, AUDIT_NOTE_CHARS_MAX } from "../limits.ts";
import { previewText } from "../preview.ts";
import type { Redact } from "../redactor.ts";

/** The transport of the request. */
export type Via = "http" | "socket" | "bridge" | "acp" | "cli";

export interface AuditRecord {
  /** The id of the request, as in the response and the log. */
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The name of the caller's token, never the token itself. */
  readonly actor: string;
  readonly via: Via;
  /** The requested action: `cancel`, `prompt`, `answer`. */
  readonly action: string;
  readonly target?: string;
  /** The kind of the receipt, or `refused`. */
  readonly answer: string;
  /** The error code of a refusal. */
  readonly code?: string;
  /** The note that the caller sent with the request. */
  readonly note?: string;
  readonly tenant?: string;
}

const VIA: readonly string[] = ["http", "socket", "bridge", "acp", "cli"] satisfies readonly Via[];

/** The record without secrets and with truncated fields, as it is stored. */
export function keptRecord(record: AuditRecord, redact: Redact): AuditRecord {
  const name = (text: string): string => previewText(text, redact, AUDIT_NAME_CHARS_MAX);
  return {
    id: name(record.id),
    at: record.at,
    actor: name(record.actor),
    via: record.via,
    action: name(record.action),
    ...(record.target === undefined ? {} : { target: name(record.target) }),
    answer: name(record.answer),
    ...(record.code === undefined ? {} : { code: name(record.code) }),
    ...(record.note === undefined ? {} : { note: previewText(record.note, redact, AUDIT_NOTE_CHARS_MAX) }),
    ...(record.tenant === undefined ? {} : { tenant: name(record.tenant) }),
  };
}

/** Encodes a record as one line. JSON escapes line breaks, so no field can start a new line. */
export const recordLine = (record: AuditRecord): string => `${JSON.stringify(record)}\n`;

/** Undefined if the line is not a record: a crash has torn it, or another program wrote it. */
export function parseRecord(line: string): AuditRecord | undefined {
  const value = parsed(line);
  if (value === undefined) return undefined;
  const { id, at, actor, via, action, target, answer, code, note, tenant } = value;
  if (!isText(id) || typeof at !== "number" || !isText(actor) || !isVia(via) || !isText(action) || !isText(answer)) {
    return undefined;
  }
  return {
    ...{ id, at, actor, via, action, answer },
    ...(isText(target) ? { target } : {}),
    ...(isText(code) ? { code } : {}),
    ...(isText(note) ? { note } : {}),
    ...(isText(tenant) ? { tenant } : {}),
  };
}

function parsed(line: string): { readonly [key: string]: Json } | undefined {
  try {
    const value: Json = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isRecord = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isText = (value: Json | undefined): value is string => typeof value === "string";

const isVia = (value: Json | undefined): value is Via => isText(value) && VIA.includes(value);
