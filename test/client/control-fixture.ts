// What the contract of a BelayControl is played on: somebody opens one over an agent that the test drives.
import { onTestFinished } from "vitest";
import type { Recorded } from "../../src/core/model/event.ts";
import type { Agent } from "../../src/ports/agent.ts";
import type { BelayControl, RunControl, SessionControl } from "../../src/ports/control.ts";
import { type ScriptedAgent, scriptedAgent } from "../../src/testing/scripted-agent.ts";

export interface Opened {
  readonly control: BelayControl;
  close(): Promise<void>;
}

export type Open = (agent: Agent) => Promise<Opened>;

export interface ControlFixture {
  readonly agent: ScriptedAgent;
  readonly control: BelayControl;
  readonly session: SessionControl;
}

export const MODES = [
  { id: "ask", name: "Ask", description: "People are asked." },
  { id: "auto", name: "Auto" },
] as const;

/** An open control with a session, and an agent whose turns the test drives. */
export async function staged(open: Open): Promise<ControlFixture> {
  const agent = Object.assign(scriptedAgent(), { modes: MODES, mode: "auto" });
  const { control, close } = await open(agent);
  onTestFinished(close);
  return { agent, control, session: await control.createSession() };
}

/** Everything of a run, from its acceptance to its outcome. */
export async function factsOf(run: RunControl): Promise<readonly Recorded[]> {
  const facts: Recorded[] = [];
  for await (const event of run) if ("seq" in event) facts.push(event);
  return facts;
}
