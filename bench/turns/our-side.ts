// Belay on the same work, whatever it stores it in.
import { z } from "zod";
import { modelAgent, tool } from "../../src/agent/index.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { scriptedModels } from "./scripted-model.ts";
import { KINDS, type Kind, type Side } from "./side.ts";
import { PROMPT, TOOL_DESCRIPTION, TOOL_NAME, weather } from "./work.ts";

const INPUT = z.object({ city: z.string() });

/** One engine for each kind, as a program has one agent. */
export async function openOurs(
  name: string,
  storeOf: (kind: Kind) => string,
  kinds: readonly Kind[] = KINDS,
): Promise<Side> {
  const tools = { [TOOL_NAME]: tool({ description: TOOL_DESCRIPTION, input: INPUT, execute: weather }) };
  const belays = new Map<Kind, Belay>();
  for (const kind of kinds) {
    const agent = modelAgent({ model: scriptedModels[kind], ...(kind === "tool" ? { tools } : {}) });
    belays.set(kind, await openBelay({ store: storeOf(kind), agent }));
  }
  return {
    name,
    run(kind) {
      const belay = belays.get(kind);
      if (belay === undefined) throw new Error(`Nothing is open for ${kind}.`);
      return runOf(belay);
    },
    close: async () => {
      for (const belay of belays.values()) await belay.close();
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
