// The calls an answer asks for, as the engine is to make them.
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
 * Which of the calls are made. An answer that was refused is not acted upon. One that was cut off at its length may end
 * in half an input; halves are not JSON, and whoever cut them off did not ask for that.
 */
export function callsToMake(
  calls: readonly LanguageModelV4ToolCall[],
  { reason: { unified } }: Finished,
): readonly LanguageModelV4ToolCall[] {
  if (calls.length === 0 || unified === "content-filter") return [];
  const complete = unified === "length" ? calls.filter(({ input }) => parseJson(input) !== undefined) : calls;
  return complete.length <= CALLS_LIVE_MAX ? complete : complete.slice(0, CALLS_LIVE_MAX);
}

/** No more than `parallelMax` of them go on at once. */
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
      return at < CALLS_PER_TURN_MAX ? request : oneTooMany(request);
    }),
  );
}

/** Made all the same, so that it gets the one result that its provider expects. Nobody is asked to approve it. */
function oneTooMany({ name, input, provider }: CallRequest): CallRequest {
  const execute = (): never => {
    throw new Error(
      `It was not carried out: an answer may ask for ${CALLS_PER_TURN_MAX} calls. Ask for fewer at once.`,
    );
  };
  return { name, input, execute, ...(provider === undefined ? {} : { provider }) };
}

export function finishOf({ reason: { unified } }: Finished, calls: number): TurnFinish {
  if (calls > 0) return "calls";
  switch (unified) {
    case "stop":
    case "tool-calls":
      // It says that it waits for results, but there is nothing to be done that is ours.
      return "stop";
    case "length":
      return "length";
    case "content-filter":
      return "refusal";
    default:
      return "other";
  }
}
