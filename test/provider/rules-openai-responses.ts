// What OpenAI refuses in a Responses request: one function per rule.
import type { Memory, Rule } from "./format.ts";
import { field, isObject, listIn, parsed, textIn } from "./json.ts";

export const responsesRules = {
  inputPresent,
  knownItems,
  contentPresent,
  callsShaped,
  argumentsAreJson,
  callIdsUnique,
  callsAnswered,
  answeredOnce,
  outputsCalled,
  reasoningFollowed,
  referencesKnown,
} satisfies Record<string, Rule>;

export type ResponsesRule = keyof typeof responsesRules;

const ROLES = ["system", "developer", "user", "assistant"];
const TYPES = ["message", "function_call", "function_call_output", "reasoning", "item_reference"];
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const CALL_ID_CHARS_MAX = 64;

const itemsOf = (body: unknown): readonly unknown[] => listIn(body, "input");
/** A message may leave its type out. */
const typeOf = (item: unknown): string | undefined =>
  textIn(item, "type") ?? (textIn(item, "role") === undefined ? undefined : "message");
const callIdOf = (item: unknown): string => textIn(item, "call_id") ?? "";
const isCall = (item: unknown): boolean => typeOf(item) === "function_call";
const isOutput = (item: unknown): boolean => typeOf(item) === "function_call_output";

function inputPresent(body: unknown): readonly string[] {
  const input = field(body, "input");
  const present = (typeof input === "string" || Array.isArray(input)) && input.length > 0;
  return present ? [] : ["input: a text, or an array of at least one, is expected"];
}

function knownItems(body: unknown): readonly string[] {
  return itemsOf(body).flatMap((item, index) => {
    const type = typeOf(item);
    if (type === undefined || !TYPES.includes(type)) return [`input[${index}].type: ${String(type)} is none`];
    const role = textIn(item, "role") ?? "";
    return type === "message" && !ROLES.includes(role) ? [`input[${index}].role: "${role}" is none`] : [];
  });
}

function contentPresent(body: unknown): readonly string[] {
  return itemsOf(body).flatMap((item, index) => {
    if (typeOf(item) !== "message" && !isOutput(item)) return [];
    const content = field(item, isOutput(item) ? "output" : "content");
    // A tool may have had nothing to say.
    if (isOutput(item) && content === "") return [];
    const full = (typeof content === "string" || Array.isArray(content)) && content.length > 0;
    return full && !hasHollowPart(content) ? [] : [`input[${index}]: says nothing`];
  });
}

const hasHollowPart = (content: unknown): boolean =>
  Array.isArray(content) &&
  content.some((part: unknown) => !isObject(part) || ("text" in part && !textIn(part, "text")));

function callsShaped(body: unknown): readonly string[] {
  return itemsOf(body).flatMap((item, index) => {
    if (!isCall(item) && !isOutput(item)) return [];
    const id = callIdOf(item);
    if (id === "") return [`input[${index}].call_id: missing`];
    if (id.length > CALL_ID_CHARS_MAX) return [`input[${index}].call_id: longer than ${CALL_ID_CHARS_MAX}`];
    const name = textIn(item, "name") ?? "";
    return isOutput(item) || NAME.test(name) ? [] : [`input[${index}].name: "${name}" does not match ${NAME}`];
  });
}

function argumentsAreJson(body: unknown): readonly string[] {
  return itemsOf(body).flatMap((item, index) => {
    if (!isCall(item)) return [];
    const text = textIn(item, "arguments");
    const fine = text !== undefined && isObject(parsed(text));
    return fine ? [] : [`input[${index}].arguments: an object as a JSON string is expected`];
  });
}

function callIdsUnique(body: unknown): readonly string[] {
  const ids = itemsOf(body).filter(isCall).map(callIdOf);
  const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
  return twice.length === 0 ? [] : [`input: call_id used twice: ${twice}`];
}

/** The outputs of a call, as far as they stand where they may: behind it, and before anybody says anything else. */
function outputsAfter(items: readonly unknown[], index: number): readonly unknown[] {
  const rest = items.slice(index + 1);
  const end = rest.findIndex((item) => typeOf(item) === "message");
  const id = callIdOf(items[index]);
  return rest.slice(0, end === -1 ? undefined : end).filter((item) => isOutput(item) && callIdOf(item) === id);
}

function callsAnswered(body: unknown): readonly string[] {
  const items = itemsOf(body);
  return items.flatMap((item, index) => {
    if (!isCall(item) || outputsAfter(items, index).length > 0) return [];
    return [`input[${index}]: No tool output found for function call ${callIdOf(item)}.`];
  });
}

function answeredOnce(body: unknown): readonly string[] {
  const ids = itemsOf(body).filter(isOutput).map(callIdOf);
  const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
  return twice.length === 0 ? [] : [`input: function_call_output more than once: ${twice}`];
}

function outputsCalled(body: unknown): readonly string[] {
  const called = new Set<string>();
  return itemsOf(body).flatMap((item, index) => {
    if (isCall(item)) called.add(callIdOf(item));
    if (!isOutput(item) || called.has(callIdOf(item))) return [];
    return [`input[${index}]: No tool call found for function call output with call_id ${callIdOf(item)}.`];
  });
}

/** Reasoning belongs to what it led to. A run that was cancelled in between has the one without the other. */
function reasoningFollowed(body: unknown, memory: Memory): readonly string[] {
  const items = itemsOf(body);
  return items.flatMap((item, index) => {
    if (!isReasoning(item, memory)) return [];
    const next = items.slice(index + 1).find((one) => !isReasoning(one, memory));
    const fine = isCall(next) || typeOf(next) === "item_reference" || textIn(next, "role") === "assistant";
    const id = textIn(item, "id") ?? "";
    return fine ? [] : [`input[${index}]: Item '${id}' of type 'reasoning' was provided without its following item.`];
  });
}

const isReasoning = (item: unknown, memory: Memory): boolean =>
  typeOf(item) === "reasoning" ||
  (typeOf(item) === "item_reference" && memory.items.get(textIn(item, "id") ?? "") === "reasoning");

function referencesKnown(body: unknown, memory: Memory): readonly string[] {
  return itemsOf(body).flatMap((item, index) => {
    const id = textIn(item, "id") ?? "";
    if (typeOf(item) !== "item_reference" || memory.items.has(id)) return [];
    return [`input[${index}]: Item with id '${id}' not found.`];
  });
}
