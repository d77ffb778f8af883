// One contestant: something that takes a fresh conversation from its prompt to the last word of the answer.

/** `text`: the model answers at once. `tool`: it asks for one tool call first, so there are two model turns. */
export type Kind = "text" | "tool";

export const KINDS: readonly Kind[] = ["text", "tool"];

export interface Side {
  readonly name: string;
  /**
   * One run of a conversation nobody has seen before; the agent has the tool only where the kind is `tool`. Resolves
   * to the streamed deltas, joined, once the run has ended and whatever the side keeps of it is kept.
   */
  run(kind: Kind): Promise<string>;
  close(): Promise<void>;
}

/** What the module of a side exports. */
export interface SideModule {
  open(): Promise<Side>;
}

/** One thing to measure of a side. */
export interface Cell {
  readonly kind: Kind;
  readonly concurrency: number;
  readonly ms: number;
}

export interface Measured {
  readonly runsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of all threads of the process: who is fast on a second core is seen here. */
  readonly cpuMsPerRun: number;
}

/** Where each side lives. Imported by path and in a child, so that no peer is a dependency of this repository. */
const MODULES = {
  ours: "./ours.ts",
  oursInMemory: "./ours-in-memory.ts",
  bareLoop: "./bare-loop.ts",
  durableLoop: "./durable-loop.ts",
  aiSdk: "../peers/ai-sdk.ts",
  openaiAgents: "../peers/openai-agents.ts",
  langgraphMemory: "../peers/langgraph-memory.ts",
  langgraphSqlite: "../peers/langgraph-sqlite.ts",
} as const;

export type SideName = keyof typeof MODULES;

export const PEERS = ["aiSdk", "openaiAgents", "langgraphMemory", "langgraphSqlite"] as const satisfies SideName[];
export type PeerName = (typeof PEERS)[number];

export const isSideName = (name: string): name is SideName => Object.hasOwn(MODULES, name);

export async function openSide(name: SideName): Promise<Side> {
  const module: SideModule = await import(new URL(MODULES[name], import.meta.url).href);
  return module.open();
}
