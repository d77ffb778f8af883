// Validates what an agent returns, before any of it is recorded.

import type { ControlError } from "../../core/errors.ts";
import { checkCallJson, checkMs, invalid, isObject } from "../../core/input.ts";
import { CALLS_LIVE_MAX, MODEL_NAME_CHARS_MAX } from "../../core/limits.ts";
import type { CallAsk } from "../../core/model/call.ts";
import type { ModelName, Next, ProviderCall, TurnFinish, TurnPart, Usage } from "../../core/model/event.ts";
import type { CallId } from "../../core/model/ids.ts";
import { suggest } from "../../core/suggest.ts";
import type { CallOptions, CallRequest } from "../../ports/agent.ts";
import { checkApproval } from "./validate-question.ts";

export interface Metered {
  readonly usage?: Usage;
  readonly parts?: readonly TurnPart[];
  readonly model?: ModelName;
}

export interface Result extends Metered {
  readonly text: string | undefined;
  readonly next: Next;
  readonly finish: TurnFinish | undefined;
  readonly requests: readonly CallRequest[];
}

const NOT_A_RESULT =
  "The agent returned something that is neither text nor { text, next, usage, model, finish, parts, calls }.";

/** Throws if it is not a result. */
export function checkResult(value: unknown): Result {
  if (value === undefined || typeof value === "string") {
    return { text: value, next: "end", finish: undefined, requests: NONE };
  }
  if (!isObject(value)) throw invalid(NOT_A_RESULT);
  const { text, next, usage, model, finish, parts, calls, ...rest } = value;
  const known =
    Object.keys(rest).length === 0 &&
    // A Map or a Date has none of these fields, and no other enumerable ones.
    (isPlain(value) || [text, next, usage, model, finish, parts, calls].some((one) => one !== undefined)) &&
    (text === undefined || typeof text === "string") &&
    (next === undefined || next === "turn" || next === "end") &&
    (finish === undefined || isFinish(finish)) &&
    (calls === undefined || Array.isArray(calls));
  if (!known) throw invalid(NOT_A_RESULT);
  const requests: readonly CallRequest[] = calls === undefined ? NONE : checkCalls(calls);
  return {
    text,
    // A turn that requests calls needs their results.
    next: requests.length > 0 ? "turn" : (next ?? "end"),
    finish,
    requests,
    ...checkMeter({ usage, parts, model }),
  };
}

export function checkMeter(value: unknown): Metered {
  if (value === undefined) return {};
  if (!isObject(value)) throw invalid(NOT_A_RESULT);
  const { usage, parts, model } = value;
  return {
    ...(usage === undefined ? {} : { usage: checkUsage(usage) }),
    ...(parts === undefined ? {} : { parts: checkParts(parts) }),
    ...(model === undefined ? {} : { model: checkModel(model) }),
  };
}

/** Validates a call that an agent requests. */
export function checkCall(given: CallRequest): CallRequest {
  if (!isObject(given)) throw invalid("A call is an object with `name`, `input` and `execute`.");
  const { name, input, execute, timeoutMs, provider, approval, idempotent, interruptible, slots, ...others } = given;
  const { signal, again, ...rest } = others as typeof others & Pick<CallOptions, "again">;
  refuseUnknown(rest);
  if (typeof name !== "string" || name === "" || name.length > 256) throw invalid("A call's name is a short string.");
  if (typeof execute !== "function") throw invalid("A call needs a function to execute.");
  if (timeoutMs !== undefined) checkMs(timeoutMs, "timeoutMs", 2 ** 40);
  checkFlags({ idempotent, interruptible });
  if (again !== undefined && again !== "recorded" && again !== "begin") {
    throw invalid('`again` of a call must be "recorded" or "begin".');
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid("`signal` of a call is an AbortSignal.");
  if (slots !== undefined && !(isObject(slots) && typeof slots.take === "function")) {
    throw invalid("`slots` of a call must be made by slots().");
  }
  return {
    ...given,
    name: name.toWellFormed(),
    input: checkCallJson(input ?? null, `The input of ${name}`),
    ...(provider === undefined ? {} : { provider: checkProvider(provider) }),
    // The return value of a function is checked after the call.
    ...(approval === undefined || typeof approval === "function" ? {} : { approval: checkApproval(approval) }),
  };
}

/** A misspelt `approval` would mean that no approval is requested. */
function refuseUnknown(rest: object): void {
  const [key] = Object.keys(rest);
  if (key === undefined) return;
  const meant = suggest(key, CALL_FIELDS);
  throw invalid(`A call has no \`${key}\`.${meant === undefined ? "" : ` Did you mean \`${meant}\`?`}`);
}

const CALL_FIELDS: readonly (keyof CallRequest | keyof CallOptions)[] = [
  ...(["name", "input", "execute", "timeoutMs", "provider", "approval"] as const),
  ...(["idempotent", "interruptible", "slots", "signal", "again"] as const),
];

function checkFlags(flags: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(flags)) {
    if (value === undefined || typeof value === "boolean") continue;
    throw invalid(`\`${name}\` of a call must be true or false (got ${typeof value}).`);
  }
}

/** The provider's id of the call, and its data. */
function checkProvider(given: ProviderCall): ProviderCall {
  const { id, data } = isObject(given) ? given : {};
  if (typeof id !== "string") throw invalid("`provider.id` is the call's name on the provider's side: a string.");
  const kept = checkCallJson(id, "`provider.id`") as string;
  return { id: kept, ...(data === undefined ? {} : { data: checkCallJson(data, "`provider.data`") }) };
}

/** The request of a call as it is recorded. */
export function askOf(callId: CallId, request: CallRequest | undefined): CallAsk {
  const { name = "", input = null, idempotent, interruptible, provider } = request ?? {};
  return {
    callId,
    name,
    input,
    ...(idempotent === true ? { idempotent } : {}),
    ...(interruptible === false ? { interruptible } : {}),
    ...(provider === undefined ? {} : { provider }),
  };
}

function checkCalls(calls: readonly unknown[]): readonly CallRequest[] {
  if (calls.length > CALLS_LIVE_MAX) throw invalid(`A turn asks for at most ${CALLS_LIVE_MAX} calls.`);
  // An item of another shape is refused by the check itself.
  return calls.map((call) => checkCall(call as CallRequest));
}

function checkParts(parts: unknown): readonly TurnPart[] {
  const checked = checkCallJson(parts, "The parts of an answer");
  if (!Array.isArray(checked) || !checked.every(isPart)) throw invalid("The parts of an answer are none.");
  return checked;
}

function isPart(part: unknown): part is TurnPart {
  if (!isObject(part)) return false;
  if (part.kind === "text" || part.kind === "reasoning") return typeof part.text === "string";
  return part.kind === "call" ? Number.isInteger(part.index) : part.kind === "provider" && part.provider !== undefined;
}

/** Copies only the recorded fields; others are ignored. */
function checkUsage(usage: unknown): Usage {
  if (!isObject(usage)) throw badUsage("that is no object with `inputTokens` and `outputTokens`");
  const { inputTokens, outputTokens, estimated } = usage;
  if (!isCount(inputTokens)) throw badUsage("whose `inputTokens` is no number of 0 or more");
  if (!isCount(outputTokens)) throw badUsage("whose `outputTokens` is no number of 0 or more");
  return { inputTokens, outputTokens, estimated: estimated === true };
}

function checkModel(model: unknown): ModelName {
  const { provider, id } = isObject(model) ? model : {};
  if (typeof provider !== "string" || typeof id !== "string") {
    throw invalid("The `model` of a turn must be { provider, id }, both strings.");
  }
  const short = (text: string): string => text.slice(0, MODEL_NAME_CHARS_MAX).toWellFormed();
  return { provider: short(provider), id: short(id) };
}

const badUsage = (what: string): ControlError =>
  invalid(`The agent returned a \`usage\` ${what}. Correct it, or leave \`usage\` out where the cost is not known.`);

const isCount = (value: unknown): value is number => Number.isFinite(value) && Number(value) >= 0;

/** Not an instance of a class. The prototype of an object literal has no prototype itself, in every realm. */
function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

const FINISHES: ReadonlySet<unknown> = new Set<TurnFinish>(["stop", "calls", "length", "refusal", "other"]);
const isFinish = (value: unknown): value is TurnFinish => FINISHES.has(value);

const NONE: readonly CallRequest[] = [];
