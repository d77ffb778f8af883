// What Anthropic refuses in a Messages request: one function per rule.
import { createHash } from "node:crypto";
import type { Rule } from "./format.ts";
import { field, isObject, listIn, textIn } from "./json.ts";
import { toolRules } from "./rules-anthropic-tools.ts";

export const anthropicRules = {
  maxTokensPresent,
  messagesPresent,
  knownRoles,
  firstIsUser,
  lastIsUser,
  rolesAlternate,
  contentPresent,
  textNotBlank,
  noTrailingWhitespace,
  thinkingSigned,
  thinkingUntouched,
  thinkingFirst,
  thinkingKept,
  ...toolRules,
} satisfies Record<string, Rule>;

export type AnthropicRule = keyof typeof anthropicRules;

/** What our server signs a thinking block with. Others cannot, which is the point of a signature. */
export const signatureOf = (thinking: string): string =>
  `signed-${createHash("sha256").update(thinking).digest("base64url")}`;

const messagesOf = (body: unknown): readonly unknown[] => listIn(body, "messages");
const roleOf = (message: unknown): string | undefined => textIn(message, "role");
const typeOf = (block: unknown): string | undefined => textIn(block, "type");
const isThinking = (block: unknown): boolean => /^(redacted_)?thinking$/.test(typeOf(block) ?? "");

/** A text instead of blocks means one block of text. */
function blocksOf(message: unknown): readonly unknown[] {
  const content = field(message, "content");
  return typeof content === "string" ? [{ type: "text", text: content }] : listIn(message, "content");
}

function maxTokensPresent(body: unknown): readonly string[] {
  const max = field(body, "max_tokens");
  return typeof max === "number" && max > 0 ? [] : ["max_tokens: Field required"];
}

function messagesPresent(body: unknown): readonly string[] {
  return messagesOf(body).length === 0 ? ["messages: at least one message is required"] : [];
}

function knownRoles(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) =>
    ["user", "assistant"].includes(roleOf(message) ?? "")
      ? []
      : [`messages.${index}.role: ${String(roleOf(message))} is none`],
  );
}

function firstIsUser(body: unknown): readonly string[] {
  const [first] = messagesOf(body);
  return first === undefined || roleOf(first) === "user" ? [] : ["messages: first message must use the user role"];
}

function lastIsUser(body: unknown): readonly string[] {
  const last = messagesOf(body).at(-1);
  if (last === undefined || roleOf(last) === "user") return [];
  return ["messages: This model does not support assistant message prefill; the last message must be the user's"];
}

/** The service puts neighbours of one role together. Whoever sends them has lost count of whose turn it is. */
function rolesAlternate(body: unknown): readonly string[] {
  const messages = messagesOf(body);
  return messages.flatMap((message, index) =>
    index > 0 && roleOf(message) === roleOf(messages[index - 1])
      ? [`messages.${index}: roles must alternate, but ${String(roleOf(message))} follows itself`]
      : [],
  );
}

function contentPresent(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) => {
    const content = field(message, "content");
    const present = (typeof content === "string" || Array.isArray(content)) && content.length > 0;
    return present ? [] : [`messages.${index}: all messages must have non-empty content`];
  });
}

function textNotBlank(body: unknown): readonly string[] {
  const places: (readonly [at: string, blocks: readonly unknown[]])[] = [["system", listIn(body, "system")]];
  for (const [index, message] of messagesOf(body).entries()) {
    places.push([`messages.${index}`, blocksOf(message)]);
    for (const block of blocksOf(message)) {
      if (typeOf(block) === "tool_result") places.push([`messages.${index}.tool_result`, listIn(block, "content")]);
    }
  }
  return places.flatMap(([at, blocks]) =>
    blocks.flatMap((block) =>
      typeOf(block) === "text" && (textIn(block, "text") ?? "").trim() === ""
        ? [`${at}: text content blocks must contain non-whitespace text`]
        : [],
    ),
  );
}

function noTrailingWhitespace(body: unknown): readonly string[] {
  const last = messagesOf(body).at(-1);
  const text = textIn(blocksOf(last).at(-1), "text") ?? "";
  if (roleOf(last) !== "assistant" || text === text.trimEnd()) return [];
  return ["messages: final assistant content cannot end with trailing whitespace"];
}

/** Each thinking block of the assistant's, with its place. */
function thoughts(body: unknown): readonly (readonly [at: string, block: unknown])[] {
  return messagesOf(body).flatMap((message, index) =>
    blocksOf(message).flatMap((block, which) =>
      typeOf(block) === "thinking" ? [[`messages.${index}.content.${which}`, block] as const] : [],
    ),
  );
}

function thinkingSigned(body: unknown): readonly string[] {
  return thoughts(body).flatMap(([at, block]) =>
    (textIn(block, "signature") ?? "") === "" ? [`${at}.thinking.signature: Field required`] : [],
  );
}

function thinkingUntouched(body: unknown): readonly string[] {
  return thoughts(body).flatMap(([at, block]) => {
    const signature = textIn(block, "signature") ?? "";
    if (signature === "" || signature === signatureOf(textIn(block, "thinking") ?? "")) return [];
    return [`${at}: Invalid \`signature\` in \`thinking\` block; it must be as it was received`];
  });
}

function thinkingFirst(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) => {
    const blocks = blocksOf(message);
    if (!blocks.some((block) => typeOf(block) === "tool_use") || !blocks.some(isThinking)) return [];
    return isThinking(blocks[0]) ? [] : [`messages.${index}: thinking must come first in a message that uses tools`];
  });
}

/** With thinking switched on, an answer to tools goes on where the thinking was. */
function thinkingKept(body: unknown): readonly string[] {
  if (textIn(field(body, "thinking"), "type") !== "enabled") return [];
  const messages = messagesOf(body);
  const answersTools = blocksOf(messages.at(-1)).some((block) => typeOf(block) === "tool_result");
  const before = messages.findLast((message) => roleOf(message) === "assistant");
  if (!answersTools || !isObject(before) || isThinking(blocksOf(before)[0])) return [];
  return ["messages: When `thinking` is enabled, a final `assistant` message must start with a thinking block"];
}
