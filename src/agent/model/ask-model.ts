// A request to a model, with retries.
//
// Invariants
// 1. A request is not retried once any part of its answer has been emitted.
// 2. There is no further attempt after a stop.
import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { Turn } from "../../ports/agent.ts";
import type { TurnStop } from "../loop/turn-stop.ts";
import type { UsageMeter } from "../loop/usage-meter.ts";
import { classifyError, type ProviderFailure } from "./classify-error.ts";
import { ModelAnswer } from "./model-answer.ts";
import { ModelError } from "./model-error.ts";
import { type Idle, ModelRequest } from "./model-request.ts";

export interface Retry {
  /** The number of attempts in total. */
  readonly attemptsMax: number;
  readonly firstMs: number;
  /** The longest pause, even if the provider asks for a longer one. */
  readonly lastMs: number;
}

/** What a request needs from its turn. */
export interface RequestContext {
  readonly turn: Pick<Turn, "clock">;
  readonly stop: TurnStop;
  readonly meter: UsageMeter;
  readonly idle: Idle;
  readonly retry: Retry;
}

export interface ModelQuery {
  readonly model: LanguageModelV4;
  readonly options: LanguageModelV4CallOptions;
  readonly emit: Turn["emit"];
  readonly whose: "turn" | "compaction";
}

/** Returns the complete answer. The caller ends the meter. */
export async function askModel(ask: ModelQuery, means: RequestContext): Promise<ModelAnswer> {
  const { stop, meter, retry } = means;
  for (let attempt = 1; ; attempt += 1) {
    stop.throwIfRequested(); // @fault asked-again-after-the-stop:begin
    const answer = new ModelAnswer(ask.emit);
    const request = new ModelRequest(stop, means.turn.clock, means.idle);
    const model = { provider: ask.model.provider, id: ask.model.modelId };
    meter.begin({ options: ask.options, answer, model, whose: ask.whose });
    try {
      await request.read(ask.model, ask.options, answer);
      return answer;
    } catch (error) {
      // Decided by the stop itself, not by whether the error looks like an abort.
      stop.throwIfRequested();
      const failure = classifyError(error, ask.model.provider);
      // A rejected request costs nothing; one that timed out may.
      if (!request.begun && failure.code !== "model_timeout") meter.end("free"); // @fault refused-request-charged
      // @fault answered-in-part-asked-again, refused-for-good-asked-again, attempts-without-end
      if (answer.hasOutput || !failure.transient || attempt >= retry.attemptsMax)
        throw failed(failure, attempt, answer.hasOutput);
      // @fault cost-of-an-attempt-forgotten
      if (request.begun || failure.code === "model_timeout") meter.end("counted");
      // @fault backoff-not-cut, asked-again-after-the-stop:pause, no-pause-between-attempts
      await stop.pause(pauseMs(attempt, failure, retry));
    }
  }
}

/** The pause doubles each time. Without jitter, so that a seed reproduces the run. */
function pauseMs(attempt: number, { afterMs }: ProviderFailure, { firstMs, lastMs }: Retry): number {
  return Math.min(lastMs, afterMs ?? firstMs * 2 ** (attempt - 1)); // @fault retry-after-ignored
}

function failed(failure: ProviderFailure, attempts: number, hasOutput: boolean): ModelError {
  const { cause } = failure;
  // The provider was able to begin, so an interrupted answer is an ordinary error.
  const code = hasOutput && failure.code === "model_overloaded" ? "model_error" : failure.code;
  return new ModelError(code, attempts === 1 ? failure.message : `${failure.message} (${attempts} attempts)`, {
    cause,
  });
}
