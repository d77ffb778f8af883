// One request to control something, and what it was answered: as a record, and as a line of the trail. Pure.
import type { Json } from "../../core/model/prompt.ts";
import { AUDIT_NAME_CHARS_MAX, AUDIT_NOTE_CHARS_MAX } from "../limits.ts";
import { previewText } from "../preview.ts";
import type { Redact } from "../redactor.ts";

/** The door it came in by. */
export type Via = "http" | "socket" | "bridge" | "acp" | "cli";

export interface AuditRecord {
  /** The id of the request, as it was answered and logged. */
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The name of whoever asked, never what they proved it with. */
  readonly actor: string;
  readonly via: Via;
  /** What was asked: `cancel`, `prompt`, `answer`. */
  readonly action: string;
  readonly target?: string;
  /** The kind of the receipt, or `refused`. */
  readonly answer: string;
  /** Why it was refused. */
  readonly code?: string;
  /** What the person said with it. */
  readonly note?: string;
  readonly tenant?: string;
}

const VIA: readonly string[] = ["http", "socket", "bridge", "acp", "cli"] satisfies readonly Via[];

/** The record as it is kept: no secrets, no field longer than it may be. */
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

/** JSON escapes every line break, so no field can begin a line of its own. */
export const recordLine = (record: AuditRecord): string => `${JSON.stringify(record)}\n`;

/** Undefined: not a record. It was torn by a crash, or somebody else wrote it. */
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
