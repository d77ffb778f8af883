// The AI SDK: `streamText` with the scripted provider object that ours takes as well. It keeps nothing.
import { isStepCount, streamText, tool } from "ai";
import { z } from "zod";
import { scriptedModels } from "../turns/scripted-model.ts";
import type { Kind, Side } from "../turns/side.ts";
import { PROMPT, TOOL_DESCRIPTION, TOOL_NAME, weather } from "../turns/work.ts";

const tools = {
  [TOOL_NAME]: tool({
    description: TOOL_DESCRIPTION,
    inputSchema: z.object({ city: z.string() }),
    execute: (input) => weather(input),
  }),
};

export function open(): Promise<Side> {
  return Promise.resolve({ name: "AI SDK", run, close: () => Promise.resolve() });
}

async function run(kind: Kind): Promise<string> {
  const result =
    kind === "text"
      ? streamText({ model: scriptedModels.text, prompt: PROMPT })
      : streamText({ model: scriptedModels.tool, prompt: PROMPT, tools, stopWhen: isStepCount(5) });
  let text = "";
  for await (const delta of result.textStream) text += delta;
  return text;
}
