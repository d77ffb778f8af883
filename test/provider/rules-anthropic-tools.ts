// What Anthropic refuses about tools: each use is answered at once, once, and first of all.
import type { Rule } from "./format.ts";
import { field, isObject, listIn, textIn } from "./json.ts";

export const toolRules = {
  toolUseShaped,
  toolInputIsObject,
  toolIdsUnique,
  toolsAnswered,
  answeredOnce,
  resultsFirst,
  resultsCalled,
  errorsSayWhy,
} satisfies Record<string, Rule>;

const ID = /^[a-zA-Z0-9_-]+$/;
const NAME = /^[a-zA-Z0-9_-]{1,128}$/;

const messagesOf = (body: unknown): readonly unknown[] => listIn(body, "messages");
const isUse = (block: unknown): boolean => textIn(block, "type") === "tool_use";
const isResult = (block: unknown): boolean => textIn(block, "type") === "tool_result";
const isUser = (message: unknown): boolean => textIn(message, "role") === "user";

const usesOf = (message: unknown): readonly unknown[] => listIn(message, "content").filter(isUse);
const useIdsOf = (message: unknown): readonly string[] => usesOf(message).map((use) => textIn(use, "id") ?? "");
const resultIdsOf = (message: unknown): readonly string[] =>
  isUser(message)
    ? listIn(message, "content")
        .filter(isResult)
        .map((result) => textIn(result, "tool_use_id") ?? "")
    : [];

function toolUseShaped(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) =>
    usesOf(message).flatMap((use) => {
      const id = textIn(use, "id") ?? "";
      const name = textIn(use, "name") ?? "";
      if (isUser(message)) return [`messages.${index}: tool_use blocks can only be in assistant messages`];
      if (!ID.test(id)) return [`messages.${index}.tool_use.id: "${id}" should match pattern ${ID}`];
      return NAME.test(name) ? [] : [`messages.${index}.tool_use.name: "${name}" should match pattern ${NAME}`];
    }),
  );
}

function toolInputIsObject(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) =>
    usesOf(message).flatMap((use) =>
      isObject(field(use, "input")) ? [] : [`messages.${index}.tool_use.input: Input should be a valid dictionary`],
    ),
  );
}

function toolIdsUnique(body: unknown): readonly string[] {
  const ids = messagesOf(body).flatMap(useIdsOf);
  const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
  return twice.length === 0 ? [] : [`messages: \`tool_use\` ids must be unique: ${twice}`];
}

function toolsAnswered(body: unknown): readonly string[] {
  const messages = messagesOf(body);
  return messages.flatMap((message, index) => {
    const answered = resultIdsOf(messages[index + 1]);
    const missing = useIdsOf(message).filter((id) => !answered.includes(id));
    const were = "`tool_use` ids were found without `tool_result` blocks immediately after";
    return missing.length === 0 ? [] : [`messages.${index}: ${were}: ${missing}`];
  });
}

function answeredOnce(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) => {
    const ids = resultIdsOf(message);
    const twice = ids.filter((id, which) => ids.indexOf(id) !== which);
    const must = "each tool_use must have a single result. Found multiple `tool_result` blocks with id";
    return twice.length === 0 ? [] : [`messages.${index}: ${must} ${twice}`];
  });
}

function resultsFirst(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) => {
    const blocks = listIn(message, "content");
    const lastResult = blocks.findLastIndex(isResult);
    const firstOther = blocks.findIndex((block) => !isResult(block));
    const fine = lastResult === -1 || firstOther === -1 || lastResult < firstOther;
    return fine ? [] : [`messages.${index}: tool_result blocks must come before everything else in the message`];
  });
}

function resultsCalled(body: unknown): readonly string[] {
  const messages = messagesOf(body);
  return messages.flatMap((message, index) => {
    const called = useIdsOf(messages[index - 1]);
    const foreign = listIn(message, "content")
      .filter(isResult)
      .map((result) => textIn(result, "tool_use_id") ?? "")
      .filter((id) => !isUser(message) || !called.includes(id));
    const found = "unexpected `tool_use_id` found in `tool_result` blocks";
    return foreign.length === 0 ? [] : [`messages.${index}: ${found}: ${foreign}`];
  });
}

function errorsSayWhy(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) =>
    listIn(message, "content").flatMap((block) => {
      const content = field(block, "content");
      const says = (typeof content === "string" || Array.isArray(content)) && content.length > 0;
      if (!isResult(block) || field(block, "is_error") !== true || says) return [];
      return [`messages.${index}.tool_result: content cannot be empty if \`is_error\` is true`];
    }),
  );
}
