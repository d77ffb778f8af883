// LangGraph with its MemorySaver: checkpoints on the heap, which keeps every one of them.
import { MemorySaver } from "@langchain/langgraph";
import type { Side } from "../turns/side.ts";
import { langgraph } from "./langgraph.ts";

export function open(): Promise<Side> {
  return Promise.resolve(langgraph("LangGraph, MemorySaver", new MemorySaver(), () => {}));
}
