// What a turn has cost so far, over all its requests, and what there is of its answer.
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { ModelName, Usage } from "../../core/model/event.ts";
import type { TurnResult } from "../../ports/agent.ts";
import type { ModelAnswer } from "../model/model-answer.ts";
import { requestChars, sum, usageOf } from "../model/tokens.ts";

interface Request {
  readonly options: LanguageModelV4CallOptions;
  readonly answer: ModelAnswer;
  /** The model that was asked. */
  readonly model: ModelName;
  /** Whether the answer is the turn's own, or a means to it. */
  readonly whose: "turn" | "compaction";
}

export class UsageMeter {
  #before: Usage | undefined = undefined;
  #live: Request | undefined = undefined;
  #model: ModelName | undefined = undefined;

  /** A request is about to be made: from now on it costs. */
  begin(request: Request): void {
    this.#live = request;
    if (request.whose === "turn") this.#model = request.model;
  }

  /** It is over. `free`: the provider did not take it, and does not count it. */
  end(cost: "counted" | "free"): void {
    if (cost === "counted") this.#before = this.usage;
    this.#live = undefined;
  }

  /** Undefined if nothing was asked of anybody. */
  get usage(): Usage | undefined {
    if (this.#live === undefined) return this.#before;
    const { answer, options } = this.#live;
    return sum(
      this.#before,
      usageOf(answer.finished?.usage, () => requestChars(options), answer.chars),
    );
  }

  /** The model that answers the turn: as its answer names it, otherwise as it was asked. */
  get model(): ModelName | undefined {
    const asked = this.#model;
    const answered = this.#live?.whose === "turn" ? this.#live.answer.modelId : undefined;
    return asked === undefined || answered === undefined ? asked : { ...asked, id: answered };
  }

  /** What is recorded of a turn that ends without a result of its own. Calls it asked for are not made. */
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
