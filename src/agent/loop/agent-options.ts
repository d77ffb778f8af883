// What a host says about the agent over a model, checked once. A word we do not know is refused, not ignored.
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

/** Handed to the provider with every request. */
export type ModelSettings = Omit<LanguageModelV4CallOptions, "prompt" | "tools" | "abortSignal" | "includeRawChunks">;

export interface Budget {
  /** Default 100. */
  readonly turns?: number;
  /** Of input and output together. */
  readonly tokens?: number;
  readonly cost?: { readonly max: number; readonly of: (usage: Usage) => number };
}

export interface LoopGuard {
  /** In how many turns the same call may have the same result. Default 5. */
  readonly repeatsMax?: number;
  /** How many turns are looked back. Default 10. */
  readonly turns?: number;
}

export interface Compaction {
  /** A longer request, by our estimate, is preceded by a summary. Well below what the model can take. */
  readonly aboveTokens: number;
  /** Who writes the summary. Default the model itself. */
  readonly model?: LanguageModelV4;
  /** What it is told to write. */
  readonly instruction?: string;
}

export interface ModelAgentOptions {
  /** Any model of the AI SDK, or how to choose one for a turn. */
  readonly model: LanguageModelV4 | ((turn: Turn) => LanguageModelV4 | Promise<LanguageModelV4>);
  readonly system?: string | ((turn: Turn) => string | Promise<string>);
  readonly tools?: Readonly<Record<string, AnyTool>>;
  /** The ways in which it can go about its work, and which of them holds where nobody has set one. */
  readonly modes?: readonly AgentMode[];
  readonly mode?: string;
  /** Whether a mode has a tool of this name. Default: every mode has all of them. */
  readonly offers?: Offers;
  /** Calls that go on at once. Default 8. */
  readonly parallelMax?: number;
  readonly settings?: ModelSettings;
  /** Asked after each round of calls: true ends the run as completed, without another request. */
  readonly stopWhen?: (soFar: RunProgress) => boolean;
  /** What a run may use up. Then it is cancelled, by policy. */
  readonly budget?: Budget;
  /** When a run that goes round in circles is cancelled, by policy. False: never. */
  readonly loopGuard?: LoopGuard | false;
  readonly retry?: Partial<Retry>;
  readonly idle?: Partial<Idle>;
  readonly compaction?: Compaction;
  /** What a prompt is for the model, where it is more than its text. */
  readonly toUser?: UserContent;
}

type Optional = "system" | "tools" | "modes" | "mode" | "offers" | "stopWhen" | "compaction" | "toUser";

/** The same with nothing left open. */
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

/** Whether this is a model we can speak to. If not, what to do about it. */
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
  // Decoded just above: the rest of a model is its own business.
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

/** Every field is one we know, and is what it should be. A field that is undefined is as good as none. */
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
