// Turns the tool calls of an answer into call requests for the engine.
import type { LanguageModelV4ToolCall } from "@ai-sdk/provider";
import { CALLS_LIVE_MAX } from "../../core/limits.ts";
import type { TurnFinish } from "../../core/model/event.ts";
import type { CallRequest } from "../../ports/agent.ts";
import { CALLS_PER_TURN_MAX } from "../limits.ts";
import type { Finished } from "../model/model-answer.ts";
import { parseJson, plainMetadata } from "../plain-json.ts";
import type { ToolSet } from "../tools/tool-set.ts";
import { slots } from "./slots.ts";

/**
 * Selects the calls to make. A refused answer is not acted on. An answer that was cut off at its length limit may end
 * in the middle of an input; such an input is not JSON, and its call is dropped.
 */
export function callsToMake(
  calls: readonly LanguageModelV4ToolCall[],
  { reason: { unified } }: Finished,
): readonly LanguageModelV4ToolCall[] {
  if (calls.length === 0 || unified === "content-filter") return [];
  const complete = unified === "length" ? calls.filter(({ input }) => parseJson(input) !== undefined) : calls;
  return complete.length <= CALLS_LIVE_MAX ? complete : complete.slice(0, CALLS_LIVE_MAX);
}

/** Prepares the calls; at most `parallelMax` of them run at once. */
export function requestCalls(
  tools: ToolSet,
  calls: readonly LanguageModelV4ToolCall[],
  { parallelMax, mode }: { readonly parallelMax: number; readonly mode: string | undefined },
): Promise<CallRequest[]> {
  const places = slots(parallelMax);
  return Promise.all(
    calls.map(async (call, at) => {
      const { toolName: name, input, toolCallId: id } = call;
      const data = plainMetadata(call.providerMetadata);
      const request = await tools.request(
        { name, input, provider: data === undefined ? { id } : { id, data } },
        places,
        mode,
      );
      return at < CALLS_PER_TURN_MAX ? request : beyondLimit(request);
    }),
  );
}

/** A call beyond the limit: it fails, so that the provider gets the result that it expects, and needs no approval. */
function beyondLimit({ name, input, provider }: CallRequest): CallRequest {
  const execute = (): never => {
    throw new Error(`It was not executed: an answer may make at most ${CALLS_PER_TURN_MAX} calls. Make fewer at once.`);
  };
  return { name, input, execute, ...(provider === undefined ? {} : { provider }) };
}

export function finishOf({ reason: { unified } }: Finished, calls: number): TurnFinish {
  if (calls > 0) return "calls";
  switch (unified) {
    case "stop":
    case "tool-calls":
      // The provider reports pending calls, but there is no call for us to make.
      return "stop";
    case "length":
      return "length";
    case "content-filter":
      return "refusal";
    default:
      return "other";
  }
}
