// `belay mode SESSION [MODE]`: shows or sets how much the agent of a session may do without asking.

import { ControlError } from "../../../core/errors.ts";
import type { AgentMode } from "../../../ports/agent.ts";
import type { BelayControl, SessionControl } from "../../../ports/control.ts";
import { withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { plainLine } from "../../shared/format/plain-text.ts";
import { resolveSession } from "../../shared/id-prefix.ts";
import { print } from "../../shared/terminal/terminal.ts";

export interface ModeFlags extends ConnectionOptions {
  readonly by?: string;
  readonly json?: true;
}

/** The name and the description of a mode are cut to this length. */
const TEXT_CHARS_MAX = 100;

export function runMode(typed: string, mode: string | undefined, flags: ModeFlags): Promise<number> {
  return withControl(flags, async ({ control, kind }) => {
    if (kind === "store") throw noAgent();
    const session = control.session(await resolveSession(control, typed));
    return mode === undefined ? show(control, session, flags) : set(session, mode, flags);
  });
}

async function set(session: SessionControl, mode: string, { by, json }: ModeFlags): Promise<number> {
  const receipt = await session.setMode(mode, by === undefined ? {} : { by });
  if (json) print(JSON.stringify(receipt));
  else if (receipt.kind === "unchanged") print(`${session.id}  unchanged: the mode was ${receipt.mode} already`);
  else print(`${session.id}  changed: from now on the mode is ${receipt.mode} (recorded at position ${receipt.seq})`);
  return EXIT_OK;
}

async function show(control: BelayControl, session: SessionControl, { json }: ModeFlags): Promise<number> {
  const { mode } = await session.explain();
  const modes = await modesOf(control);
  if (json) print(JSON.stringify({ sessionId: session.id, mode: mode ?? null, modes }));
  else {
    print(`${session.id}  ${mode ?? "The agent has no modes."}`);
    for (const line of modes.map((one) => modeLine(one, mode))) print(line);
  }
  return EXIT_OK;
}

function modeLine({ id, name, description = "" }: AgentMode, current: string | undefined): string {
  const text = plainLine(description === "" ? name : `${name}: ${description}`, TEXT_CHARS_MAX);
  return `  ${id === current ? "*" : " "} ${id}  ${text}`;
}

/** The available modes. Empty for a tenant's token, which may not read the status of the server. */
async function modesOf(control: BelayControl): Promise<readonly AgentMode[]> {
  try {
    return (await control.status()).modes;
  } catch (error) {
    if (error instanceof ControlError && error.code === "forbidden") return [];
    throw error;
  }
}

const noAgent = (): ControlError =>
  new ControlError("invalid", "The agent defines the modes, and no agent works on that store.", {
    hint: "Start a server on it with `belay serve --store FILE`, and connect to that one.",
  });
