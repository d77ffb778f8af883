// The demo agent: the loop that real models run in, around a script. No key, no network, and real tools to stop.
import { modelAgent } from "../agent/loop/agent.ts";
import type { Agent } from "../ports/agent.ts";
import { DemoFolder } from "./demo-folder.ts";
import { demoModel } from "./demo-model.ts";
import { demoTools } from "./demo-tools.ts";
import { DEMO_PACE, type DemoPace } from "./pace.ts";

export interface DemoAgentOptions {
  /** Where its tools work. Made when it is first used; whoever names it also removes it. */
  readonly folder: string;
  readonly pace?: DemoPace;
}

export function demoAgent({ folder, pace = DEMO_PACE }: DemoAgentOptions): Agent {
  return modelAgent({
    model: ({ clock }) => demoModel({ clock, pace }),
    system: "You are the demo agent of Belay: a script, and no model.",
    tools: demoTools({ folder: new DemoFolder(folder), pace }),
  });
}
