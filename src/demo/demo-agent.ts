// The demo agent: the loop of real models around a script. It needs no key and no network, and has real tools to stop.
import { modelAgent } from "../agent/loop/agent.ts";
import type { Agent } from "../ports/agent.ts";
import { DemoFolder } from "./demo-folder.ts";
import { demoModel } from "./demo-model.ts";
import { demoTools } from "./demo-tools.ts";
import { DEMO_PACE, type DemoPace } from "./pace.ts";

export interface DemoAgentOptions {
  /** The folder of its tools. Created on first use; the caller removes it. */
  readonly folder: string;
  readonly pace?: DemoPace;
}

export function demoAgent({ folder, pace = DEMO_PACE }: DemoAgentOptions): Agent {
  return modelAgent({
    model: ({ clock }) => demoModel({ clock, pace }),
    system: "You are the demo agent of Belay: a script, not a model.",
    tools: demoTools({ folder: new DemoFolder(folder), pace }),
  });
}
