// Measures the usage of a turn over all its requests, and holds its partial answer.
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { ModelName, Usage } from "../../core/model/event.ts";
import type { TurnResult } from "../../ports/agent.ts";
import type { ModelAnswer } from "../model/model-answer.ts";
import { requestChars, sum, usageOf } from "../model/tokens.ts";

interface Request {
  readonly options: LanguageModelV4CallOptions;
  readonly answer: ModelAnswer;
  /** The requested model. */
  readonly model: ModelName;
  /** Whether the request produces the turn's answer or a summary. */
  readonly whose: "turn" | "compaction";
}

export class UsageMeter {
  #before: Usage | undefined = undefined;
  #live: Request | undefined = undefined;
  #model: ModelName | undefined = undefined;

  /** Counts a request from now on. */
  begin(request: Request): void {
    this.#live = request;
    if (request.whose === "turn") this.#model = request.model;
  }

  /** Ends the request. `free`: the provider rejected it and does not charge for it. */
  end(cost: "counted" | "free"): void {
    if (cost === "counted") this.#before = this.usage;
    this.#live = undefined;
  }

  /** Undefined if no request was made. */
  get usage(): Usage | undefined {
    if (this.#live === undefined) return this.#before;
    const { answer, options } = this.#live;
    return sum(
      this.#before,
      usageOf(answer.finished?.usage, () => requestChars(options), answer.chars),
    );
  }

  /** The model of the turn, as its answer names it, otherwise as it was requested. */
  get model(): ModelName | undefined {
    const requested = this.#model;
    const answered = this.#live?.whose === "turn" ? this.#live.answer.modelId : undefined;
    return requested === undefined || answered === undefined ? requested : { ...requested, id: answered };
  }

  /** What is recorded of a turn that ends without a result. Its requested calls are not made. */
  read(): Pick<TurnResult, "usage" | "parts" | "model"> {
    const { usage, model } = this;
    const parts = this.#live?.whose === "turn" ? this.#live.answer.parts() : undefined;
    return {
      ...(usage === undefined ? {} : { usage }),
      ...(parts === undefined ? {} : { parts }),
      ...(model === undefined ? {} : { model }),
    };
  }
}
