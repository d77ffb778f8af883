// Belay behind the Agent Client Protocol, in a program of your own: a door for editors, and other agents behind Belay.
import { resolve } from "node:path";
import { invalid, isObject, rejectUnknown } from "../../core/input.ts";
import type { BelayControl } from "../../ports/control.ts";
import { systemClock } from "../../system/system-clock.ts";
import { version } from "../../system/version.ts";
import { type AcpAgent, type AcpAgentOptions, acpAgent as makeDoor } from "./agent/acp-agent.ts";

export interface CreateAcpAgentOptions
  extends Pick<AcpAgentOptions, "client" | "directory" | "audit" | "notice" | "onSession"> {}

/** Belay as an agent that editors speak to, on any stream: `createAcpAgent(belay).connect(stream)`. */
export function createAcpAgent(belay: BelayControl, options: CreateAcpAgentOptions = {}): AcpAgent {
  if (!isObject(options)) throw invalid("The options of createAcpAgent() are an object.");
  const { client: guest, directory, audit, notice, onSession, ...rest } = options;
  rejectUnknown(rest, "createAcpAgent()");
  return makeDoor({ control: belay, clock: systemClock, version: version(), directory: resolve("."), ...options });
}
