// A digest of the agent that the options of a command name. Programs with the same digest can share a host.
import { resolve } from "node:path";
import { randomIds } from "../../../system/random-ids.ts";
import { systemClock } from "../../../system/system-clock.ts";
import type { AgentFlags } from "./agent-options.ts";

export const AGENT_FLAGS = [
  ...(["model", "agent", "tools", "instructions", "workspace"] as const),
  ...(["directories", "mode", "modes", "config", "require"] as const),
];

/** The first option that selects an agent. `--no-config` does not: a server does not read the configuration here. */
export const givenAgent = (flags: AgentFlags): (typeof AGENT_FLAGS)[number] | undefined =>
  AGENT_FLAGS.find((name) => flags[name] !== undefined && flags[name] !== false);

/** The digest of the options. Paths are absolute, since editors start in different directories. */
export function agentDigestOf(flags: AgentFlags): string {
  const named = ["agent", "tools", "instructions", "workspace", "config"];
  const given = AGENT_FLAGS.flatMap((name) => {
    const value = flags[name];
    if (value === undefined) return [];
    return [[name, typeof value === "string" && named.includes(name) ? resolve(value) : value]];
  });
  return digestOf(given);
}

export const digestOf = (value: unknown): string => randomIds(systemClock).digest(JSON.stringify(value)).slice(0, 16);
