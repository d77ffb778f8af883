// How a call is displayed: a title, a kind, and its files.
import { isAbsolute, join } from "node:path";
import type { ToolKind } from "@agentclientprotocol/sdk";
import type { Json } from "../../../../core/model/prompt.ts";
import { shownLine } from "./shown-text.ts";

export interface ToolTitle {
  readonly title: string;
  readonly kind: ToolKind;
  readonly locations: readonly { readonly path: string }[];
}

/** Fields that usually name the subject of a call; the first present one is shown. */
const SUBJECTS = ["command", "path", "file", "pattern", "query", "url", "name", "text"] as const;

const KINDS: readonly (readonly [RegExp, ToolKind])[] = [
  [/(^|_)(shell|bash|exec|run|start|stop|wait|kill)/i, "execute"],
  [/(write|edit|patch|replace|create)/i, "edit"],
  [/(delete|remove)/i, "delete"],
  [/(move|rename)/i, "move"],
  [/(search|grep|find|glob|list)/i, "search"],
  [/(fetch|http|browse|download)/i, "fetch"],
  [/(read|view|cat|open)/i, "read"],
  [/(think|plan)/i, "think"],
];

export function toolTitle(name: string, input: Json, cwd: string | undefined): ToolTitle {
  const fields: Readonly<Record<string, Json>> = isObject(input) ? input : {};
  const key = SUBJECTS.find((one) => fields[one] !== undefined);
  const subject = key === undefined ? undefined : fields[key];
  const shown = Array.isArray(subject) ? subject.join(" ") : typeof subject === "string" ? subject : "";
  const path = [fields.path, fields.file].find((one) => typeof one === "string" && one !== "");
  return {
    title: shownLine(shown === "" ? name : `${name}: ${shown}`),
    kind: KINDS.find(([pattern]) => pattern.test(name))?.[1] ?? "other",
    locations: typeof path === "string" ? located(path, cwd) : [],
  };
}

/** The protocol requires absolute paths. */
function located(path: string, cwd: string | undefined): readonly { readonly path: string }[] {
  if (isAbsolute(path)) return [{ path }];
  return cwd === undefined ? [] : [{ path: join(cwd, path) }];
}

const isObject = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);
