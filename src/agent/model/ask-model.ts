// A request to a model, made again while that does no harm.
//
// Invariants
// 1. Once anything of an answer was told to anybody, the request is not made again.
// 2. After a stop there is no further attempt.
import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { Turn } from "../../ports/agent.ts";
import type { TurnStop } from "../loop/turn-stop.ts";
import type { UsageMeter } from "../loop/usage-meter.ts";
import { classifyError, type ProviderTrouble } from "./classify-error.ts";
import { ModelAnswer } from "./model-answer.ts";
import { ModelError } from "./model-error.ts";
import { type Idle, ModelRequest } from "./model-request.ts";

export interface Retry {
  /** How often the request is made in all. */
  readonly attemptsMax: number;
  readonly firstMs: number;
  /** No pause is longer, whatever the provider asks for. */
  readonly lastMs: number;
}

/** What a turn waits and counts with. */
export interface RequestContext {
  readonly turn: Pick<Turn, "clock">;
  readonly stop: TurnStop;
  readonly meter: UsageMeter;
  readonly idle: Idle;
  readonly retry: Retry;
}

export interface ModelAsk {
  readonly model: LanguageModelV4;
  readonly options: LanguageModelV4CallOptions;
  readonly emit: Turn["emit"];
  readonly whose: "turn" | "compaction";
}

/** The complete answer. The meter is left running for whoever uses it. */
export async function askModel(ask: ModelAsk, means: RequestContext): Promise<ModelAnswer> {
  const { stop, meter, retry } = means;
  for (let attempt = 1; ; attempt += 1) {
    stop.throwIfAsked(); // @fault asked-again-after-the-stop:begin
    const answer = new ModelAnswer(ask.emit);
    const request = new ModelRequest(stop, means.turn.clock, means.idle);
    const model = { provider: ask.model.provider, id: ask.model.modelId };
    meter.begin({ options: ask.options, answer, model, whose: ask.whose });
    try {
      await request.read(ask.model, ask.options, answer);
      return answer;
    } catch (error) {
      // Not "does this error smell of an abort?" but "had we been asked to stop?".
      stop.throwIfAsked();
      const trouble = classifyError(error, ask.model.provider);
      // A request that was turned away costs nothing; one that was left waiting may.
      if (!request.begun && trouble.code !== "model_timeout") meter.end("free"); // @fault refused-request-charged
      // @fault answered-in-part-asked-again, refused-for-good-asked-again, attempts-without-end
      if (answer.said || !trouble.transient || attempt >= retry.attemptsMax)
        throw failed(trouble, attempt, answer.said);
      // @fault cost-of-an-attempt-forgotten
      if (request.begun || trouble.code === "model_timeout") meter.end("counted");
      // @fault backoff-not-cut, asked-again-after-the-stop:pause, no-pause-between-attempts
      await stop.pause(pauseMs(attempt, trouble, retry));
    }
  }
}

/** Twice as long each time. Not by chance, which would help a herd, because the same seed must be the same run. */
function pauseMs(attempt: number, { afterMs }: ProviderTrouble, { firstMs, lastMs }: Retry): number {
  return Math.min(lastMs, afterMs ?? firstMs * 2 ** (attempt - 1)); // @fault retry-after-ignored
}

function failed(trouble: ProviderTrouble, attempts: number, said: boolean): ModelError {
  const { cause } = trouble;
  // It was not too busy to begin: what broke off is an error like any other.
  const code = said && trouble.code === "model_overloaded" ? "model_error" : trouble.code;
  return new ModelError(code, attempts === 1 ? trouble.message : `${trouble.message} (${attempts} attempts)`, {
    cause,
  });
}
