// The OpenAI Agents SDK: a streamed run of an agent with a scripted Model object, tracing off. It keeps nothing.
import { Agent, type Model, type ModelRequest, Runner, type StreamEvent, tool } from "@openai/agents";
import { z } from "zod";
import type { Kind, Side } from "../turns/side.ts";
import { ANSWERS, PROMPT, quoting, TOOL_DESCRIPTION, TOOL_INPUT_JSON, TOOL_NAME, weather } from "../turns/work.ts";

type ResponseDone = Extract<StreamEvent, { type: "response_done" }>;
type Output = ResponseDone["response"]["output"];

const USAGE = { inputTokens: 20, outputTokens: 15, totalTokens: 35 };

let responses = 0;

class ScriptedModel implements Model {
  readonly #kind: Kind;

  constructor(kind: Kind) {
    this.#kind = kind;
  }

  getResponse(): Promise<never> {
    return Promise.reject(new Error("The scripted model only streams."));
  }

  async *getStreamedResponse({ input }: ModelRequest): AsyncGenerator<StreamEvent> {
    const id = `${++responses}`;
    const result = toolResultIn(input);
    yield { type: "response_started" };
    if (this.#kind === "tool" && result === undefined) {
      yield done(id, [
        {
          type: "function_call",
          callId: `call_${id}`,
          name: TOOL_NAME,
          arguments: TOOL_INPUT_JSON,
          status: "completed",
        },
      ]);
      return;
    }
    const text = result === undefined ? ANSWERS.text : quoting(result);
    yield { type: "output_text_delta", delta: text };
    yield done(id, [
      {
        type: "message",
        id: `msg_${id}`,
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text }],
      },
    ]);
  }
}

function done(id: string, output: Output): ResponseDone {
  return { type: "response_done", response: { id: `resp_${id}`, usage: USAGE, output } };
}

function toolResultIn(input: ModelRequest["input"]): string | undefined {
  const last = typeof input === "string" ? undefined : input.at(-1);
  if (last?.type !== "function_call_result") return undefined;
  const { output } = last;
  if (typeof output === "string") return output;
  if (!Array.isArray(output) && output.type === "text") return output.text;
  throw new Error(`The tool's result came back as ${JSON.stringify(output)}.`);
}

const lookUp = tool({
  name: TOOL_NAME,
  description: TOOL_DESCRIPTION,
  parameters: z.object({ city: z.string() }),
  execute: (input) => weather(input),
});

const agents = {
  text: new Agent({ name: "scripted", model: new ScriptedModel("text") }),
  tool: new Agent({ name: "scripted", model: new ScriptedModel("tool"), tools: [lookUp] }),
};
const runner = new Runner({ tracingDisabled: true });

export function open(): Promise<Side> {
  return Promise.resolve({ name: "OpenAI Agents SDK", run, close: () => Promise.resolve() });
}

async function run(kind: Kind): Promise<string> {
  const result = await runner.run(agents[kind], PROMPT, { stream: true });
  let text = "";
  for await (const event of result) {
    if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") text += event.data.delta;
  }
  await result.completed;
  return text;
}
