// What OpenAI refuses in a Chat Completions request, and what servers compatible with it refuse: one function per rule.
import type { Rule } from "./format.ts";
import { field, isObject, listIn, parsed, textIn } from "./json.ts";

export const chatRules = {
  messagesPresent,
  knownRoles,
  contentPresent,
  callsShaped,
  argumentsAreJson,
  callIdsUnique,
  callsAnswered,
  answeredOnce,
  resultsCalled,
} satisfies Record<string, Rule>;

export type ChatRule = keyof typeof chatRules;

const ROLES = ["system", "developer", "user", "assistant", "tool"];
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const ID_CHARS_MAX = 40;

const messagesOf = (body: unknown): readonly unknown[] => listIn(body, "messages");
const roleOf = (message: unknown): string | undefined => textIn(message, "role");
const callsOf = (message: unknown): readonly unknown[] => listIn(message, "tool_calls");
const idsOf = (message: unknown): readonly string[] => callsOf(message).flatMap((call) => textIn(call, "id") ?? []);

function messagesPresent(body: unknown): readonly string[] {
  return messagesOf(body).length === 0 ? ["messages: an array of at least one is expected"] : [];
}

function knownRoles(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) =>
    ROLES.includes(roleOf(message) ?? "") ? [] : [`messages[${index}].role: ${String(roleOf(message))} is none`],
  );
}

function contentPresent(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) => {
    const content = field(message, "content");
    const role = roleOf(message);
    if (role === "assistant" && isAbsent(content) && field(message, "tool_calls") !== undefined) return [];
    // A tool may have had nothing to say.
    if (role === "tool" && content === "") return [];
    return isAbsent(content) || isHollow(content) ? [`messages[${index}].content: ${String(role)} says nothing`] : [];
  });
}

const isAbsent = (content: unknown): boolean => content === undefined || content === null || content === "";

/** A list without parts, or with a text part without text, or no content at all. */
function isHollow(content: unknown): boolean {
  if (typeof content === "string") return false;
  if (!Array.isArray(content) || content.length === 0) return true;
  return content.some((part: unknown) => !isObject(part) || (part.type === "text" && !textIn(part, "text")));
}

function callsShaped(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) => {
    const at = `messages[${index}].tool_calls`;
    const calls = field(message, "tool_calls");
    if (calls === undefined) return [];
    if (roleOf(message) !== "assistant") return [`${at}: only the assistant calls`];
    if (!Array.isArray(calls) || calls.length === 0) return [`${at}: an array of at least one is expected`];
    return calls.flatMap((call: unknown, which) => {
      const id = textIn(call, "id") ?? "";
      if (id === "") return [`${at}[${which}].id: missing`];
      if (id.length > ID_CHARS_MAX) return [`${at}[${which}].id: longer than ${ID_CHARS_MAX}`];
      if (field(call, "type") !== "function") return [`${at}[${which}].type: function is expected`];
      const name = textIn(field(call, "function"), "name") ?? "";
      return NAME.test(name) ? [] : [`${at}[${which}].function.name: "${name}" does not match ${NAME}`];
    });
  });
}

function argumentsAreJson(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) =>
    callsOf(message).flatMap((call, which) => {
      const text = textIn(field(call, "function"), "arguments");
      if (text !== undefined && isObject(parsed(text))) return [];
      return [`messages[${index}].tool_calls[${which}].function.arguments: an object as a JSON string is expected`];
    }),
  );
}

function callIdsUnique(body: unknown): readonly string[] {
  return messagesOf(body).flatMap((message, index) => {
    const ids = idsOf(message);
    return new Set(ids).size === ids.length ? [] : [`messages[${index}].tool_calls: ids are used twice: ${ids}`];
  });
}

/** The tool messages that stand right behind a message, before any other role. */
function resultsAfter(messages: readonly unknown[], index: number): readonly string[] {
  const ids: string[] = [];
  for (const message of messages.slice(index + 1)) {
    if (roleOf(message) !== "tool") break;
    ids.push(textIn(message, "tool_call_id") ?? "");
  }
  return ids;
}

function callsAnswered(body: unknown): readonly string[] {
  const messages = messagesOf(body);
  return messages.flatMap((message, index) => {
    const answered = resultsAfter(messages, index);
    const missing = idsOf(message).filter((id) => !answered.includes(id));
    const must = "An assistant message with 'tool_calls' must be followed by tool messages responding to each one";
    return missing.length === 0 ? [] : [`messages[${index}]: ${must}; without response: ${missing}`];
  });
}

function answeredOnce(body: unknown): readonly string[] {
  const messages = messagesOf(body);
  return messages.flatMap((message, index) => {
    const answered = resultsAfter(messages, index);
    const twice = idsOf(message).filter((id) => answered.filter((one) => one === id).length > 1);
    return twice.length === 0 ? [] : [`messages[${index}]: answered more than once: ${[...new Set(twice)]}`];
  });
}

function resultsCalled(body: unknown): readonly string[] {
  let asked: readonly string[] = [];
  return messagesOf(body).flatMap((message, index) => {
    if (roleOf(message) !== "tool") {
      asked = idsOf(message);
      return [];
    }
    const id = textIn(message, "tool_call_id") ?? "";
    const must = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'";
    return asked.includes(id) ? [] : [`messages[${index}]: ${must}: "${id}" was not called`];
  });
}
