// Our own side: a real store with full durability, the model loop, and a follower that reads the deltas as they come.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { modelAgent, tool } from "../../src/agent/index.ts";
import { type Belay, openBelay } from "../../src/library/belay.ts";
import { scriptedModels } from "./scripted-model.ts";
import type { Kind, Side } from "./side.ts";
import { PROMPT, TOOL_DESCRIPTION, TOOL_NAME, weather } from "./work.ts";

const INPUT = z.object({ city: z.string() });

export async function open(): Promise<Side> {
  const folder = await mkdtemp(join(tmpdir(), "belay-turns-"));
  const tools = { [TOOL_NAME]: tool({ description: TOOL_DESCRIPTION, input: INPUT, execute: weather }) };
  // One engine for each kind, as a program has one agent; both write and flush as they would for anybody.
  const belays: Readonly<Record<Kind, Belay>> = {
    text: await openBelay({ store: join(folder, "text.db"), agent: modelAgent({ model: scriptedModels.text }) }),
    tool: await openBelay({ store: join(folder, "tool.db"), agent: modelAgent({ model: scriptedModels.tool, tools }) }),
  };
  return {
    name: "ours",
    run: (kind) => runOf(belays[kind]),
    close: async () => {
      for (const belay of Object.values(belays)) await belay.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function runOf(belay: Belay): Promise<string> {
  const run = belay.prompt(PROMPT);
  let text = "";
  for await (const event of run) if (event.type === "delta") text += event.text;
  const outcome = await run.outcome;
  if (outcome.kind !== "completed") throw new Error(`The run ended as ${JSON.stringify(outcome)}.`);
  return text;
}
