// The options of `modelAgent()`, checked once. An unknown option is refused, not ignored.
import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { ControlError } from "../../core/errors.ts";
import type { Usage } from "../../core/model/event.ts";
import type { AgentMode, Turn } from "../../ports/agent.ts";
import {
  ATTEMPTS_MAX,
  FIRST_BYTE_MS,
  LOOP_REPEATS_MAX,
  LOOP_TURNS,
  PARALLEL_MAX,
  RETRY_FIRST_MS,
  RETRY_LAST_MS,
  SILENT_MS,
  TURNS_MAX,
} from "../limits.ts";
import type { Retry } from "../model/ask-model.ts";
import type { Idle } from "../model/model-request.ts";
import type { UserContent } from "../model/provider-prompt.ts";
import { isJsonObject } from "../plain-json.ts";
import type { AnyTool, Offers } from "../tools/tool-set.ts";
import type { RunProgress } from "./run-progress.ts";

/** Passed to the provider with every request. */
export type ModelSettings = Omit<LanguageModelV4CallOptions, "prompt" | "tools" | "abortSignal" | "includeRawChunks">;

export interface Budget {
  /** Default 100. */
  readonly turns?: number;
  /** Input and output tokens together. */
  readonly tokens?: number;
  readonly cost?: { readonly max: number; readonly of: (usage: Usage) => number };
}

export interface LoopGuard {
  /** How many turns may repeat one call with the same result. Default 5. */
  readonly repeatsMax?: number;
  /** How many of the last turns are compared. Default 10. */
  readonly turns?: number;
}

export interface Compaction {
  /** A request estimated above this is preceded by a summary. Set it well below the model's context window. */
  readonly aboveTokens: number;
  /** The model that writes the summary. Default: the agent's own model. */
  readonly model?: LanguageModelV4;
  /** The system prompt for the summary. */
  readonly instruction?: string;
}

export interface ModelAgentOptions {
  /** Any model of the AI SDK, or a function that chooses one for each turn. */
  readonly model: LanguageModelV4 | ((turn: Turn) => LanguageModelV4 | Promise<LanguageModelV4>);
  readonly system?: string | ((turn: Turn) => string | Promise<string>);
  readonly tools?: Readonly<Record<string, AnyTool>>;
  /** The permission modes that a session can choose from, and the one that applies if none is set. */
  readonly modes?: readonly AgentMode[];
  readonly mode?: string;
  /** Whether a mode has the tool of this name. Default: every mode has all tools. */
  readonly offers?: Offers;
  /** How many calls of a run are executed at once. Default 8. */
  readonly parallelMax?: number;
  readonly settings?: ModelSettings;
  /** Called after each round of calls; true ends the run as completed, without another request. */
  readonly stopWhen?: (soFar: RunProgress) => boolean;
  /** What a run may use. A run that exceeds it is cancelled by policy. */
  readonly budget?: Budget;
  /** When a run that repeats itself is cancelled by policy. False: never. */
  readonly loopGuard?: LoopGuard | false;
  readonly retry?: Partial<Retry>;
  readonly idle?: Partial<Idle>;
  readonly compaction?: Compaction;
  /** Turns a prompt into model input, for prompts that are more than text. */
  readonly toUser?: UserContent;
}

type Optional = "system" | "tools" | "modes" | "mode" | "offers" | "stopWhen" | "compaction" | "toUser";

/** The options with all defaults filled in. */
export interface Checked extends Pick<ModelAgentOptions, "model" | Optional> {
  readonly parallelMax: number;
  readonly settings: ModelSettings;
  readonly budget: Budget & { readonly turns: number };
  readonly loopGuard: Required<LoopGuard> | false;
  readonly retry: Retry;
  readonly idle: Idle;
}

export function checkOptions(given: ModelAgentOptions): Checked {
  only(given, "modelAgent()", TOP);
  const { budget = {}, loopGuard = {}, retry = {}, idle = {}, compaction, settings = {} } = given;
  only(settings, "settings", SETTINGS);
  only(budget, "budget", { turns: count, tokens: count, cost: isObject });
  if (budget.cost !== undefined) only(budget.cost, "budget.cost", { max: isAmount, of: isFunction });
  if (loopGuard !== false) only(loopGuard, "loopGuard", { repeatsMax: count, turns: count });
  only(retry, "retry", { attemptsMax: count, firstMs: isAmount, lastMs: isAmount });
  only(idle, "idle", { firstByteMs: count, silentMs: count });
  if (compaction !== undefined) checkCompaction(compaction);
  if (typeof given.model !== "function") checkModel(given.model);
  return {
    ...given,
    parallelMax: given.parallelMax ?? PARALLEL_MAX,
    settings,
    budget: { ...budget, turns: budget.turns ?? TURNS_MAX },
    loopGuard: loopGuard === false ? false : { repeatsMax: LOOP_REPEATS_MAX, turns: LOOP_TURNS, ...loopGuard },
    retry: { attemptsMax: ATTEMPTS_MAX, firstMs: RETRY_FIRST_MS, lastMs: RETRY_LAST_MS, ...retry },
    idle: { firstByteMs: FIRST_BYTE_MS, silentMs: SILENT_MS, ...idle },
  };
}

function checkCompaction(compaction: Compaction): void {
  only(compaction, "compaction", { aboveTokens: count, model: isObject, instruction: isString });
  if (compaction.aboveTokens === undefined) throw invalid("compaction needs aboveTokens.");
  if (compaction.model !== undefined) checkModel(compaction.model);
}

/** Checks that this is a model that Belay supports. The error says what to install if it is not. */
export function checkModel(model: unknown): LanguageModelV4 {
  if (!isObject(model)) {
    throw invalid(
      'model is a model object of an AI SDK provider, such as anthropic("claude-…") of @ai-sdk/anthropic; got ' +
        `${model === null ? "null" : typeof model}.`,
    );
  }
  const version = Reflect.get(model, "specificationVersion");
  if (version !== "v4" || !isFunction(Reflect.get(model, "doStream"))) {
    throw invalid(
      `The model ${String(Reflect.get(model, "modelId"))} speaks version ${String(version)} of the AI SDK's language ` +
        "model interface; Belay speaks v4. Install a provider package that is built on @ai-sdk/provider 4, such as " +
        "@ai-sdk/anthropic@4, @ai-sdk/openai@4 or @ai-sdk/openai-compatible@3.",
    );
  }
  // Checked above; the other fields are the provider's business.
  return model as LanguageModelV4;
}

type Check = (value: unknown) => boolean;

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
const isString: Check = (value) => typeof value === "string";
const isFunction: Check = (value) => typeof value === "function";
const isAmount: Check = (value) => typeof value === "number" && value >= 0 && value < Infinity;
const count: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 1;
const anything: Check = () => true;

const TOP: Readonly<Record<keyof ModelAgentOptions, Check>> = {
  model: anything,
  system: (value) => isString(value) || isFunction(value),
  tools: isObject,
  modes: Array.isArray,
  mode: isString,
  offers: isFunction,
  parallelMax: count,
  settings: isObject,
  stopWhen: isFunction,
  budget: isObject,
  loopGuard: (value) => value === false || isObject(value),
  retry: isObject,
  idle: isObject,
  compaction: isObject,
  toUser: isFunction,
};

const SETTINGS: Readonly<Record<keyof ModelSettings, Check>> = {
  maxOutputTokens: count,
  temperature: isAmount,
  stopSequences: Array.isArray,
  topP: isAmount,
  topK: isAmount,
  presencePenalty: Number.isFinite,
  frequencyPenalty: Number.isFinite,
  responseFormat: isObject,
  seed: Number.isSafeInteger,
  toolChoice: isObject,
  headers: isObject,
  reasoning: isString,
  providerOptions: isObject,
};

/** Throws unless every field is known and valid. An undefined field counts as absent. */
function only(given: object, what: string, fields: Readonly<Record<string, Check>>): void {
  if (!isJsonObject(given)) throw invalid(`${what} takes an object.`);
  for (const [name, value] of Object.entries(given)) {
    const check = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (check === undefined) {
      throw invalid(`${what} does not know ${JSON.stringify(name)}. It knows ${Object.keys(fields).join(", ")}.`);
    }
    if (value !== undefined && !check(value)) throw invalid(`${what}: ${name} is not what it should be.`);
  }
}

const invalid = (message: string): ControlError => new ControlError("invalid", message);
