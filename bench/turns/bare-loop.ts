// The floor: the same model and the same tool in a loop written by hand, which keeps nothing and can stop nothing.
import type { LanguageModelV4CallOptions, LanguageModelV4Prompt, LanguageModelV4ToolCall } from "@ai-sdk/provider";
import { scriptedModels } from "./scripted-model.ts";
import type { Kind, Side } from "./side.ts";
import { PROMPT, TOOL_DESCRIPTION, TOOL_NAME, weather } from "./work.ts";

const TOOLS: NonNullable<LanguageModelV4CallOptions["tools"]> = [
  {
    type: "function",
    name: TOOL_NAME,
    description: TOOL_DESCRIPTION,
    inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
];

export function open(): Promise<Side> {
  return Promise.resolve({ name: "a loop by hand", run, close: () => Promise.resolve() });
}

async function run(kind: Kind): Promise<string> {
  const prompt: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: PROMPT }] }];
  let text = "";
  for (;;) {
    const { stream } = await scriptedModels[kind].doStream({ prompt, ...(kind === "tool" ? { tools: TOOLS } : {}) });
    let call: LanguageModelV4ToolCall | undefined;
    for await (const part of stream) {
      if (part.type === "text-delta") text += part.delta;
      if (part.type === "tool-call") call = part;
    }
    if (call === undefined) return text;
    const value = await weather(JSON.parse(call.input));
    const { toolCallId, toolName } = call;
    prompt.push(
      { role: "assistant", content: [{ ...call, input: JSON.parse(call.input) }] },
      { role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output: { type: "text", value } }] },
    );
  }
}
