// LangGraph.js: an agent graph of a model node and a tool node, its tokens streamed, its checkpoints in a given saver.
import { randomUUID } from "node:crypto";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { tool } from "@langchain/core/tools";
import { type BaseCheckpointSaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import type { Kind, Side } from "../turns/side.ts";
import { ANSWERS, PROMPT, quoting, TOOL_DESCRIPTION, TOOL_INPUT, TOOL_NAME, weather } from "../turns/work.ts";

// By default LangChain hands tokens to the stream through one queue for the whole process, in the background. With 32
// runs at once the stream of a run is closed before its token has had its turn, and the token is lost. Waiting for the
// handlers is LangChain's own remedy.
process.env.LANGCHAIN_CALLBACKS_BACKGROUND = "false";
// Whoever traces to LangSmith at work does not want to here.
process.env.LANGSMITH_TRACING = "false";
process.env.LANGCHAIN_TRACING_V2 = "false";

let callsAsked = 0;

class ScriptedChatModel extends BaseChatModel {
  readonly #kind: Kind;

  constructor(kind: Kind) {
    super({});
    this.#kind = kind;
  }

  override _llmType(): string {
    return "scripted";
  }

  override _generate(): Promise<ChatResult> {
    return Promise.reject(new Error("The scripted model only streams."));
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const last = messages.at(-1);
    const result = last instanceof ToolMessage ? last.text : undefined;
    if (this.#kind === "tool" && result === undefined) {
      const call = { type: "tool_call", id: `call_${++callsAsked}`, name: TOOL_NAME, args: TOOL_INPUT } as const;
      yield new ChatGenerationChunk({ text: "", message: new AIMessageChunk({ content: "", tool_calls: [call] }) });
      return;
    }
    const text = result === undefined ? ANSWERS.text : quoting(result);
    const chunk = new ChatGenerationChunk({ text, message: new AIMessageChunk({ content: text }) });
    yield chunk;
    await runManager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
  }
}

const lookUp = tool((input: { readonly city: string }) => weather(input), {
  name: TOOL_NAME,
  description: TOOL_DESCRIPTION,
  schema: z.object({ city: z.string() }),
});

function graphOf(kind: Kind, checkpointer: BaseCheckpointSaver) {
  const model = new ScriptedChatModel(kind);
  return new StateGraph(MessagesAnnotation)
    .addNode("model", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addNode("tools", new ToolNode([lookUp]))
    .addEdge(START, "model")
    .addConditionalEdges("model", toolsCondition)
    .addEdge("tools", "model")
    .compile({ checkpointer });
}

export function langgraph(name: string, checkpointer: BaseCheckpointSaver, close: () => void): Side {
  const graphs = { text: graphOf("text", checkpointer), tool: graphOf("tool", checkpointer) };
  return {
    name,
    run: async (kind) => {
      const stream = await graphs[kind].stream(
        { messages: [{ role: "user", content: PROMPT }] },
        { configurable: { thread_id: randomUUID() }, streamMode: "messages" },
      );
      let text = "";
      for await (const [message] of stream) if (message.getType() === "ai") text += message.text;
      return text;
    },
    close: async () => close(),
  };
}
