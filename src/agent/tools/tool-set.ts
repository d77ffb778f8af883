// The tools of an agent by name: describes them to the model, and turns the model's requests into calls.
//
// Invariants
// 1. Every request of the model becomes a call. A request that cannot be executed becomes a call that fails with a
//    message for the model; it needs no approval, and no tool runs for it.
// 2. The input is recorded and approved as the model sent it. The tool receives what the schema makes of the call's own
//    input, checked right before it runs.
import { ControlError, messageOf } from "../../core/errors.ts";
import { isUnparsable } from "../../core/json-depth.ts";
import { CALL_BYTES_MAX, JSON_DEPTH_MAX } from "../../core/limits.ts";
import type { ProviderCall } from "../../core/model/event.ts";
import { type Json, utf8Bytes } from "../../core/model/prompt.ts";
import { suggest } from "../../core/suggest.ts";
import type { ApprovalOption, CallDetails, CallRequest, LiveCall, Slots } from "../../ports/agent.ts";
import { misfit, type Tool, type ToolCallContext, type ToolDescription } from "./tool.ts";
import { type AiSdkTool, fromAiSdk, isAiSdkTool } from "./tool-ai-sdk.ts";

/** A result of `tool()`, or a tool of the AI SDK. */
export type AnyTool = Tool | AiSdkTool;

export interface ToolSet {
  /** The descriptions of the tools that a mode has. Created once; tried again after a failure. */
  describe(mode?: string): Promise<readonly ToolDescription[]>;
  /**
   * Turns a request of the model into a call request for the engine. Never rejects: what cannot be executed becomes a
   * call that fails with a message for the model.
   */
  request(requested: RequestedCall, slots: Slots, mode?: string): Promise<CallRequest>;
  /** The same for a logged call, after a restart. Undefined if the tool no longer exists. */
  resume(call: CallDetails, slots: Slots): CallRequest | undefined;
}

export interface RequestedCall {
  readonly name: string;
  readonly input: string;
  readonly provider: ProviderCall;
}

/** A name that every provider accepts, also when it reappears in a transcript. */
const NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const NAME_CHARS_MAX = 128;

/** How much of an invalid input is quoted: enough to find the mistake. */
const QUOTE_CHARS_MAX = 200;

/** How much of an invalid input is recorded. */
const INPUT_CHARS_KEPT = 65_536;

/** How many tool names the error for an unknown tool lists. The model has received all of them before. */
const NAMES_LISTED_MAX = 32;

/** Whether a mode has a tool of this name. */
export type Offers = (name: string, mode: string) => boolean;

/** Throws `invalid` for a value that is not a tool, or a name that providers reject. */
export function toolSet(tools: Readonly<Record<string, AnyTool>> | undefined, offers: Offers = () => true): ToolSet {
  // A map, because an object would also find inherited properties.
  const known = new Map(Object.entries(tools ?? {}).map(([name, given]) => [name, read(name, given)]));
  const isIn = (name: string, mode: string | undefined): boolean => mode === undefined || offers(name, mode);
  let described: Promise<readonly ToolDescription[]> | undefined;
  return {
    describe(mode) {
      described ??= describeAll(known).catch((error: unknown) => {
        described = undefined;
        throw error;
      });
      return mode === undefined ? described : described.then((all) => all.filter(({ name }) => isIn(name, mode)));
    },
    async request(requested, slots, mode) {
      const found = known.get(requested.name);
      const names = [...known.keys()].filter((name) => isIn(name, mode));
      const parsed = parse(requested);
      if (found === undefined) return refusal(requested, parsed.input, unknownTool(requested.name, names));
      if (!isIn(requested.name, mode)) return refusal(requested, parsed.input, notInMode(requested.name, mode));
      if (parsed.kind === "malformed") return refusal(requested, parsed.input, parsed.error);
      const judged = await found.judge(parsed.input, { id: requested.provider.id, mode });
      if (judged.kind === "refuses") return refusal(requested, parsed.input, misfit(requested.name, judged.issues));
      const { name, provider } = requested;
      return { ...requestOf({ tool: found, isIn }, { name, input: parsed.input }, provider.id), provider, slots };
    },
    resume(call, slots) {
      const found = known.get(call.name);
      return found === undefined ? undefined : { ...requestOf({ tool: found, isIn }, call, call.callId), slots };
    },
  };
}

function read(name: string, given: AnyTool): Tool {
  if (!NAME.test(name)) {
    throw new ControlError(
      "invalid",
      `\`${name.slice(0, QUOTE_CHARS_MAX)}\` is not a valid tool name: providers accept letters, digits, _ and -, ` +
        `at most ${NAME_CHARS_MAX} of them.`,
    );
  }
  if (typeof given === "object" && given !== null) {
    if ("kind" in given && given.kind === "tool") return given;
    if (isAiSdkTool(given)) return within(name, () => fromAiSdk(given));
  }
  throw new ControlError("invalid", `\`${name}\` is not a tool. Define it with tool({ … }).`);
}

async function describeAll(known: ReadonlyMap<string, Tool>): Promise<readonly ToolDescription[]> {
  return Promise.all(
    [...known].map(async ([name, one]) => {
      try {
        return await one.describe(name);
      } catch (error) {
        throw undescribed(name, error);
      }
    }),
  );
}

function within<T>(name: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw undescribed(name, error);
  }
}

const undescribed = (name: string, error: unknown): ControlError =>
  new ControlError("invalid", `The tool \`${name}\` cannot be described to the model: ${messageOf(error)}`, {
    cause: error,
  });

interface Found {
  readonly tool: Tool;
  readonly isIn: (name: string, mode: string | undefined) => boolean;
}

function requestOf(
  { tool, isIn }: Found,
  { name, input }: Pick<CallDetails, "name" | "input">,
  id: string,
): CallRequest {
  /** The approval decision at admission; undefined if none was requested. */
  let admission: { readonly mode: string | undefined; readonly wanted: ApprovalOption } | undefined;
  const approval = async (now: Json, { mode }: Pick<LiveCall, "mode">): Promise<ApprovalOption> => {
    // A call that will be refused needs no approval.
    const wanted = isIn(name, mode) && (await approvalOf(tool, now, { id, mode }));
    admission = { mode, wanted };
    return wanted;
  };
  /**
   * Checks the mode again, because the call may have waited. An approval by people stands; otherwise the current mode
   * decides.
   */
  const checkMode = ({ input: now, mode }: LiveCall): Promise<void> | undefined => {
    if (admission !== undefined && admission.wanted !== false) return undefined;
    if (!isIn(name, mode)) throw notInMode(name, mode);
    if (admission === undefined || admission.mode === mode) return undefined;
    return approvalOf(tool, now, { id, mode }).then((wanted) => {
      if (wanted !== false) throw askAgain(name, mode);
    });
  };
  return {
    name,
    input,
    ...tool.options,
    // Judged by the input that would be executed, which a hook may have changed.
    ...(tool.asks ? { approval } : {}),
    execute: async (call) => {
      const changed = checkMode(call);
      if (changed !== undefined) await changed;
      // The engine checks that the result is JSON and reports it if it is not.
      return tool.execute(call) as Promise<Json | undefined>;
    },
  };
}

const notInMode = (name: string, mode: string | undefined): ControlError =>
  new ControlError("forbidden", `Nothing was done: the current mode ${mode} has no tool \`${name}\`.`);

const askAgain = (name: string, mode: string | undefined): ControlError =>
  new ControlError(
    "forbidden",
    `Nothing was done: the mode was changed to ${mode} while \`${name}\` waited, and this mode requires approval. ` +
      "Call it again if it is still needed.",
  );

async function approvalOf(found: Tool, input: Json, context: ToolCallContext): Promise<ApprovalOption> {
  const judged = await found.judge(input, context);
  // An invalid input is refused when the call begins; it needs no approval.
  return judged.kind === "takes" ? judged.approval : false;
}

/**
 * A call that fails. It is not idempotent even if its tool is: restarted after a crash it would run the tool with an
 * input that the model never sent. It fails even if a hook replaces the input, because the approval was never judged.
 */
function refusal({ name, provider }: RequestedCall, input: Json, error: ControlError): CallRequest {
  return { name: recordable(name), input, provider, execute: () => Promise.reject(error) };
}

/** Makes an invented name acceptable: it enters the transcript, and a provider that rejects it would end the run. */
function recordable(name: string): string {
  return name.slice(0, NAME_CHARS_MAX).replace(/[^a-zA-Z0-9_-]/g, "_") || "unnamed";
}

function unknownTool(name: string, known: readonly string[]): ControlError {
  const meant = suggest(name, known);
  const some = known.slice(0, NAMES_LISTED_MAX).join(", ");
  const list =
    known.length > NAMES_LISTED_MAX ? `${some}, and ${known.length - NAMES_LISTED_MAX} more` : some || "none";
  const advice = meant === undefined ? "" : ` Did you mean \`${meant}\`?`;
  return new ControlError(
    "not_found",
    `There is no tool \`${name.slice(0, NAME_CHARS_MAX)}\`.${advice} The tools are: ${list}.`,
  );
}

type Parsed =
  | { readonly kind: "json"; readonly input: Json }
  /** `input` is the text, because that is what the model sent. */
  | { readonly kind: "malformed"; readonly input: string; readonly error: ControlError };

function parse({ name, input: text }: RequestedCall): Parsed {
  const malformed = (message: string): Parsed => ({
    kind: "malformed",
    input: recordedText(text),
    error: new ControlError(
      "invalid",
      `${message} Nothing was done. Call \`${name}\` again with an input it can take.`,
    ),
  });
  // Models send an empty text for a tool without input.
  if (text.trim() === "") return { kind: "json", input: {} };
  if (isUnparsable(text)) return malformed(TOO_DEEP);
  let input: Json;
  try {
    input = JSON.parse(text);
  } catch (error) {
    const cut = text.length > QUOTE_CHARS_MAX ? `… (${text.length} characters)` : "";
    return malformed(
      `The input is not JSON (${messageOf(error).slice(0, QUOTE_CHARS_MAX)}): ${text.slice(0, QUOTE_CHARS_MAX)}${cut}.`,
    );
  }
  const problem = problemOf(input);
  return problem === undefined ? { kind: "json", input } : malformed(problem);
}

/** The recorded form of an invalid input: its text, shortened. */
function recordedText(text: string): string {
  const left = text.length - INPUT_CHARS_KEPT;
  if (left <= 0) return text.toWellFormed();
  return `${text.slice(0, INPUT_CHARS_KEPT).toWellFormed()}… (${left} more characters were not kept)`;
}

const TOO_DEEP = `The input is nested deeper than ${JSON_DEPTH_MAX} levels.`;

/** Why an input cannot be recorded, or is unsafe to copy. Iterative, because it may be deeply nested. */
function problemOf(input: Json): string | undefined {
  const left: { readonly value: Json; readonly depth: number }[] = [{ value: input, depth: 0 }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value, depth } = next;
    if (typeof value !== "object" || value === null) continue;
    if (depth >= JSON_DEPTH_MAX) return TOO_DEEP;
    // `JSON.parse` makes it an ordinary key; assigning it to another object would change the prototype.
    if (Object.hasOwn(value, "__proto__")) return "The input has a key `__proto__`, which no tool takes.";
    for (const inner of Object.values(value)) left.push({ value: inner, depth: depth + 1 });
  }
  const bytes = utf8Bytes(JSON.stringify(input));
  return bytes > CALL_BYTES_MAX ? `The input has ${bytes} bytes; the limit is ${CALL_BYTES_MAX}.` : undefined;
}
