// What a turn has cost so far, over all its requests, and what there is of its answer.
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { Usage } from "../core/event.ts";
import type { TurnResult } from "../ports.ts";
import type { Answer } from "./answer.ts";
import { requestChars, sum, usageOf } from "./tokens.ts";

interface Request {
  readonly options: LanguageModelV4CallOptions;
  readonly answer: Answer;
  /** Whether the answer is the turn's own, or a means to it. */
  readonly whose: "turn" | "compaction";
}

export class Meter {
  #before: Usage | undefined = undefined;
  #live: Request | undefined = undefined;

  /** A request is about to be made: from now on it costs. */
  begin(request: Request): void {
    this.#live = request;
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

  /** What is recorded of a turn that ends without a result of its own. Calls it asked for are not made. */
  read(): Pick<TurnResult, "usage" | "parts"> {
    const usage = this.usage;
    const parts = this.#live?.whose === "turn" ? this.#live.answer.parts() : undefined;
    return { ...(usage === undefined ? {} : { usage }), ...(parts === undefined ? {} : { parts }) };
  }
}
