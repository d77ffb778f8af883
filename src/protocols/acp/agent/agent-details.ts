// Details of an external agent's calls beyond Belay's own record: read from the call's record, progress and result, and
// sent to the client in the protocol's terms. Pure.
import type { ToolCallContent, ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk";
import type { Json } from "../../../core/model/prompt.ts";

export interface CallDetails {
  readonly title?: string;
  readonly status?: "pending" | "in_progress";
  readonly kind?: ToolKind;
  readonly locations?: ToolCallLocation[];
  readonly content?: ToolCallContent[];
  readonly rawInput?: Json;
}

const KINDS: readonly ToolKind[] = [
  ...(["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"] as const),
];

type JsonObject = { readonly [key: string]: Json };

/** Undefined if there are no such details. */
export function callDetails(data: Json | undefined): CallDetails | undefined {
  const given = isObject(data) ? data.acp : undefined;
  if (!isObject(given)) return undefined;
  const { title, status, rawInput } = given;
  const kind = KINDS.find((one) => one === given.kind);
  return {
    ...(typeof title === "string" && title !== "" ? { title } : {}),
    ...(status === "pending" || status === "in_progress" ? { status } : {}),
    ...(kind === undefined ? {} : { kind }),
    ...(Array.isArray(given.locations) ? { locations: given.locations.flatMap(location) } : {}),
    ...(Array.isArray(given.content) ? { content: given.content.flatMap(callContent) } : {}),
    ...(rawInput === undefined ? {} : { rawInput }),
  };
}

/** A result with diffs or pictures as content; undefined for an ordinary result. */
export function resultContent(result: Json | undefined): ToolCallContent[] | undefined {
  if (!isObject(result)) return undefined;
  const { text, diffs = [], content = [], ...rest } = result;
  if (Object.keys(rest).length > 0 || !Array.isArray(diffs) || !Array.isArray(content)) return undefined;
  if (diffs.length === 0 && content.length === 0) return undefined;
  const found = [...diffs.flatMap(recordedDiff), ...content.flatMap(callContent)];
  if (found.length !== diffs.length + content.length) return undefined;
  const words: ToolCallContent[] =
    typeof text === "string" && text !== "" ? [{ type: "content", content: { type: "text", text } }] : [];
  return [...words, ...found];
}

function recordedDiff(given: Json): readonly ToolCallContent[] {
  if (!isObject(given)) return [];
  const { path, before, after } = given;
  if (typeof path !== "string" || typeof after !== "string") return [];
  return [{ type: "diff", path, oldText: typeof before === "string" ? before : null, newText: after }];
}

function callContent(given: Json): readonly ToolCallContent[] {
  if (!isObject(given)) return [];
  if (given.type === "diff")
    return typeof given.newText === "string" && typeof given.path === "string" ? [asIs(given)] : [];
  return given.type === "content" && isBlock(given.content) ? [asIs(given)] : [];
}

/** Whether this is a content block that every client supports. */
function isBlock(given: Json | undefined): boolean {
  if (!isObject(given)) return false;
  if (given.type === "text") return typeof given.text === "string";
  if (given.type === "image" || given.type === "audio") {
    return typeof given.data === "string" && typeof given.mimeType === "string";
  }
  if (given.type === "resource_link") return typeof given.uri === "string" && typeof given.name === "string";
  return given.type === "resource" && isObject(given.resource) && typeof given.resource.uri === "string";
}

function location(given: Json): readonly ToolCallLocation[] {
  if (!isObject(given) || typeof given.path !== "string") return [];
  const { path, line } = given;
  return [typeof line === "number" ? { path, line } : { path }];
}

/** Its shape was checked. */
const asIs = (given: JsonObject): ToolCallContent => given as unknown as ToolCallContent;

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
