// The options of `belay run`.

import { ControlError } from "../../../core/errors.ts";
import type { Delivery } from "../../../core/model/prompt.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { givenAgent } from "../../shared/server/agent-digest.ts";
import type { AgentFlags } from "../../shared/server/agent-options.ts";

export interface RunFlags extends ConnectionOptions, AgentFlags {
  readonly session?: string;
  readonly title?: string;
  readonly cwd?: string;
  readonly key?: string;
  readonly file?: readonly string[];
  readonly delivery?: Delivery;
  readonly json?: boolean;
  readonly detach?: boolean;
  readonly timeout?: string;
  readonly patience: string;
  readonly local?: boolean;
}

/** Refuses options that select an agent if the run goes to a server, which has its own agent. */
export function refuseAgent(flags: RunFlags, where: string): void {
  const given = givenAgent(flags);
  if (given === undefined) return;
  throw new ControlError("invalid", `--${given} is for runs without a server, and this one goes to ${where}.`, {
    hint: "Start the server with it; or run without a server, on another store: --store FILE.",
  });
}
