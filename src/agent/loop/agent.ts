// The model agent: one request per turn to any model of the AI SDK, through the interface that providers implement.
//
// Invariants
// 1. It keeps no state between turns: it depends only on the transcript and on what the run has used.
// 2. A stop ends the turn in the same tick, at any await, and closes the provider's connection.
// 3. The usage of a turn is reported however the turn ends.
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { ControlError } from "../../core/errors.ts";
import { type RunId, runOf } from "../../core/model/ids.ts";
import type { Message } from "../../core/read/transcript.ts";
import type { Agent, CallDetails, Turn, TurnResult } from "../../ports/agent.ts";
import { askModel, type RequestContext } from "../model/ask-model.ts";
import type { ModelAnswer } from "../model/model-answer.ts";
import { ModelError } from "../model/model-error.ts";
import { providerPrompt } from "../model/provider-prompt.ts";
import { type ToolSet, toolSet } from "../tools/tool-set.ts";
import { type Checked, checkModel, checkOptions, type ModelAgentOptions } from "./agent-options.ts";
import { compact, isTooLong } from "./compaction.ts";
import { callsToMake, finishOf, requestCalls } from "./requested-calls.ts";
import { findLoop, followsCalls, runProgress } from "./run-progress.ts";
import { slotsByKey } from "./slots.ts";
import { TurnStop } from "./turn-stop.ts";
import { UsageMeter } from "./usage-meter.ts";

/** An agent that sends each turn to a model and requests the calls that the model asks for. */
export function modelAgent(given: ModelAgentOptions): Agent {
  const options = checkOptions(given);
  return agentWith(options, toolSet(options.tools, options.offers));
}

/** The same with a tool set that exists already. */
export function agentWith(options: Checked, tools: ToolSet): Agent {
  const agent = async (turn: Turn): Promise<TurnResult> => {
    const modelTurn = new ModelTurn(options, tools, turn);
    try {
      return await modelTurn.run();
    } finally {
      modelTurn.close(); // @fault turn-listens-for-ever
    }
  };
  const { modes, mode, parallelMax } = options;
  // Calls that are resumed after a restart share the slots of their run.
  const places = slotsByKey<RunId>(parallelMax);
  return Object.assign(agent, {
    resume: (call: CallDetails) => tools.resume(call, places(runOf(call.callId))),
    ...(modes === undefined ? {} : { modes }),
    ...(mode === undefined ? {} : { mode }),
  });
}

/**
 * One turn: at most one answer of the model, and a summary before it if the conversation is too long. The run ends with
 * this turn if the model requests no calls or refuses, if `stopWhen` holds, or if the request fails. It is cancelled by
 * policy if a budget is used up or the run repeats itself. In all other cases the calls run, and another turn follows.
 */
class ModelTurn {
  readonly #options: Checked;
  readonly #tools: ToolSet;
  readonly #turn: Turn;
  readonly #context: RequestContext;
  /** Why the summary failed, if it did. */
  #uncompacted: unknown = undefined;

  constructor(options: Checked, tools: ToolSet, turn: Turn) {
    this.#options = options;
    this.#tools = tools;
    this.#turn = turn;
    const { idle, retry } = options;
    this.#context = { turn, stop: new TurnStop(turn), meter: new UsageMeter(), idle, retry };
    turn.meter(() => this.#context.meter.read()); // @fault cost-lost-with-the-stop
  }

  close(): void {
    this.#context.stop.close();
  }

  async run(): Promise<TurnResult> {
    const { stop } = this.#context;
    stop.throwIfRequested();
    const spentAll = this.#spentAll();
    if (spentAll !== undefined) return this.#stopRun(spentAll);
    const messages = await stop.until(this.#turn.transcript()); // @fault transcript-awaited-after-the-stop
    const { runId, spent } = this.#turn;
    if (followsCalls(messages, runId)) {
      const { loopGuard, stopWhen } = this.#options;
      if (stopWhen?.(runProgress(messages, runId, spent.turns)) === true) return { next: "end" };
      const found = loopGuard === false ? undefined : findLoop(messages, runId, loopGuard);
      if (found !== undefined) return this.#stopRun(loopNote(found));
    }
    return this.#ask(messages);
  }

  async #ask(messages: readonly Message[]): Promise<TurnResult> {
    const { stop } = this.#context;
    const model = await this.#model();
    const system = await this.#system();
    const prompt = await this.#compacted(messages, model, system);
    const tools =
      this.#options.tools === undefined ? [] : [...(await stop.until(this.#tools.describe(this.#turn.mode)))];
    const options = { ...this.#options.settings, prompt, ...(tools.length === 0 ? {} : { tools }) };
    return this.#result(await this.#answer(model, options));
  }

  async #answer(model: LanguageModelV4, options: LanguageModelV4CallOptions): Promise<ModelAnswer> {
    const { emit } = this.#turn;
    try {
      return await askModel({ model, options, emit, whose: "turn" }, this.#context);
    } catch (error) {
      if (this.#uncompacted === undefined || !(error instanceof ModelError) || error.code !== "model_rejected")
        throw error;
      const why = this.#uncompacted instanceof Error ? this.#uncompacted.message : String(this.#uncompacted);
      throw new ModelError(error.code, `${error.message} The conversation should have been summarised before: ${why}`, {
        cause: error,
      });
    }
  }

  async #result(answer: ModelAnswer): Promise<TurnResult> {
    const { stop, meter } = this.#context;
    // An answer without it has been rejected while it was read.
    const finished = answer.finished;
    if (finished === undefined) throw new ModelError("model_error", "The provider's answer ended without saying why.");
    const made = callsToMake(answer.calls, finished);
    const left = answer.calls.length - made.length;
    if (left > 0 && finished.reason.unified !== "content-filter")
      answer.remark(`[${left} of the calls were not made.]`);
    const how = { parallelMax: this.#options.parallelMax, mode: this.#turn.mode };
    const calls = made.length === 0 ? [] : await stop.until(requestCalls(this.#tools, made, how));
    const parts = answer.parts(made);
    const { usage, model } = meter;
    return {
      next: calls.length > 0 ? "turn" : "end",
      finish: finishOf(finished, calls.length),
      ...(usage === undefined ? {} : { usage }),
      ...(model === undefined ? {} : { model }),
      ...(parts === undefined ? {} : { parts }),
      ...(calls.length === 0 ? {} : { calls }),
    };
  }

  async #compacted(
    messages: readonly Message[],
    model: LanguageModelV4,
    system: string,
  ): Promise<LanguageModelV4Prompt> {
    const { compaction, settings } = this.#options;
    const { stop, meter } = this.#context;
    const prompt = this.#prompt(messages, system);
    if (compaction === undefined || !isTooLong(prompt, compaction.aboveTokens)) return prompt;
    const own = compaction.model === undefined && settings.headers !== undefined ? { headers: settings.headers } : {};
    const query = { model: compaction.model ?? model, instruction: compaction.instruction, ...own };
    try {
      await compact(this.#turn, prompt, query, this.#context);
    } catch (error) {
      stop.throwIfRequested();
      // The model may still accept the whole prompt. If it does not, the error gives both reasons.
      meter.end("counted");
      this.#uncompacted = error;
      return prompt;
    }
    return this.#prompt(await stop.until(this.#turn.transcript()), system);
  }

  #prompt(messages: readonly Message[], system: string): LanguageModelV4Prompt {
    const { toUser } = this.#options;
    return providerPrompt(messages, toUser === undefined ? { system } : { system, toUser });
  }

  async #model(): Promise<LanguageModelV4> {
    const { model } = this.#options;
    return typeof model === "function" ? checkModel(await this.#context.stop.until(model(this.#turn))) : model;
  }

  async #system(): Promise<string> {
    const { system = "" } = this.#options;
    return typeof system === "function" ? this.#context.stop.until(system(this.#turn)) : system;
  }

  /** The sentence that says which budget is used up; undefined while all have something left. */
  #spentAll(): string | undefined {
    const { turns, tokens, cost } = this.#options.budget;
    const { spent } = this.#turn;
    if (spent.turns >= turns) return `The run's budget of ${turns} turns is used up.`; // @fault one-turn-too-many
    // @fault answers-cost-nothing
    if (tokens !== undefined && spent.inputTokens + spent.outputTokens >= tokens) {
      return `The run's budget of ${tokens} tokens is used up.`;
    }
    if (cost === undefined) return undefined;
    const spentCost = cost.of(spent);
    if (!Number.isFinite(spentCost))
      throw new ControlError("invalid", `budget.cost.of() answered ${String(spentCost)}.`);
    return spentCost >= cost.max ? `The run's budget of ${cost.max} is used up.` : undefined;
  }

  async #stopRun(note: string): Promise<TurnResult> {
    const { stop } = this.#context;
    await stop.until(this.#turn.stop(note));
    stop.throwIfRequested();
    // A stop is refused only if the run has ended already.
    return { next: "end" };
  }
}

const loopNote = ({ name, times }: { readonly name: string; readonly times: number }): string =>
  `The run repeats itself: ${name} was called with the same input and the same result in ${times} turns.`;
