// Parses the updates of an external agent. Missing or unknown fields are ignored, because a newer agent may send more
// than Belay knows, and its work must not fail for that. Pure.
import type { Json } from "../../../core/model/prompt.ts";
import { isObject, keptJson } from "./kept-json.ts";

export type Update =
  | { readonly kind: "text" | "thought"; readonly text: string }
  | { readonly kind: "call"; readonly change: CallChange }
  | { readonly kind: "replayed" }
  /** An update that Belay does not record. */
  | { readonly kind: "other"; readonly raw: unknown };

export interface SessionUpdate {
  readonly sessionId: string;
  readonly update: Update;
}

/** The changes in one update of a call. Undefined fields have not changed. */
export interface CallChange {
  readonly id: string;
  readonly title: string | undefined;
  readonly tool: string | undefined;
  readonly sort: string | undefined;
  readonly status: CallStatus | undefined;
  readonly content: readonly CallContent[] | undefined;
  readonly paths: readonly string[] | undefined;
  /** The paths with their lines, as the agent sent them. */
  readonly locations: readonly Json[] | undefined;
  readonly input: Json | undefined;
  readonly output: Json | undefined;
}

export type CallStatus = "pending" | "in_progress" | "completed" | "failed";

/** `raw`: as the agent sent it. */
export type CallContent =
  | { readonly kind: "text" | "image"; readonly text: string; readonly raw: Json }
  | {
      readonly kind: "diff";
      readonly path: string;
      readonly before: string | undefined;
      readonly after: string;
      readonly raw: Json;
    };

const STATUSES: readonly CallStatus[] = ["pending", "in_progress", "completed", "failed"];

export function readSessionUpdate(params: unknown): SessionUpdate {
  const { sessionId, update } = isObject(params) ? params : {};
  return { sessionId: textOf(sessionId) ?? "", update: readUpdate(update) };
}

function readUpdate(given: unknown): Update {
  const other: Update = { kind: "other", raw: given };
  if (!isObject(given)) return other;
  switch (given.sessionUpdate) {
    case "agent_message_chunk":
      return { kind: "text", text: readContent(given.content) };
    case "agent_thought_chunk":
      return { kind: "thought", text: readContent(given.content) };
    case "tool_call":
    case "tool_call_update": {
      const change = readCallChange(given);
      return change === undefined ? other : { kind: "call", change };
    }
    case "user_message_chunk":
      return { kind: "replayed" };
    default:
      return other;
  }
}

/** Undefined if it names no call. */
export function readCallChange(given: unknown): CallChange | undefined {
  const fields = isObject(given) ? given : {};
  const id = textOf(fields.toolCallId);
  if (id === undefined) return undefined;
  return {
    id,
    title: textOf(fields.title),
    tool: textOf(fields.name),
    sort: textOf(fields.kind),
    status: STATUSES.find((one) => one === fields.status),
    content: Array.isArray(fields.content) ? fields.content.flatMap(readCallContent) : undefined,
    paths: Array.isArray(fields.locations) ? fields.locations.flatMap(readPath) : undefined,
    locations: Array.isArray(fields.locations) ? fields.locations.flatMap(readLocation) : undefined,
    input: fields.rawInput === undefined ? undefined : keptJson(fields.rawInput),
    output: fields.rawOutput === undefined ? undefined : keptJson(fields.rawOutput),
  };
}

/** Merges an update into the known state of a call. */
export function mergeCallChange(known: CallChange, change: CallChange): CallChange {
  return {
    id: known.id,
    title: change.title ?? known.title,
    tool: change.tool ?? known.tool,
    sort: change.sort ?? known.sort,
    status: change.status ?? known.status,
    content: change.content ?? known.content,
    paths: change.paths ?? known.paths,
    locations: change.locations ?? known.locations,
    input: change.input ?? known.input,
    output: change.output ?? known.output,
  };
}

function readCallContent(given: unknown): readonly CallContent[] {
  if (!isObject(given)) return [];
  const raw = keptJson(given);
  if (given.type === "content") {
    const isImage = isObject(given.content) && given.content.type === "image";
    return [{ kind: isImage ? "image" : "text", text: readContent(given.content), raw }];
  }
  const path = textOf(given.path);
  if (given.type !== "diff" || path === undefined) return [];
  const before = typeof given.oldText === "string" ? given.oldText : undefined;
  return [{ kind: "diff", path, before, after: typeof given.newText === "string" ? given.newText : "", raw }];
}

const readLocation = (given: unknown): readonly Json[] =>
  readPath(given).map((path) => {
    const { line } = isObject(given) ? given : {};
    return typeof line === "number" && Number.isSafeInteger(line) && line >= 0 ? { path, line } : { path };
  });

const readPath = (given: unknown): readonly string[] => {
  const path = isObject(given) ? textOf(given.path) : undefined;
  return path === undefined ? [] : [path];
};

/** Converts a content block to text; other kinds become a placeholder. */
function readContent(given: unknown): string {
  if (!isObject(given)) return "";
  switch (given.type) {
    case "text":
      return typeof given.text === "string" ? given.text : "";
    case "resource_link":
      return `[${textOf(given.name) ?? "link"}](${textOf(given.uri) ?? ""})`;
    case "resource": {
      const { uri, text } = isObject(given.resource) ? given.resource : {};
      return typeof text === "string" ? text : `[${textOf(uri) ?? "a file"}]`;
    }
    default:
      return typeof given.type === "string" ? `[${given.type.slice(0, 40)}]` : "";
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
