// `belay mode SESSION [MODE]`: how much the agent of a session may do by itself; shown, or set.

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

/** Of what a mode is called, and of what is said about it. */
const WORDS_CHARS_MAX = 100;

export function runMode(typed: string, wanted: string | undefined, flags: ModeFlags): Promise<number> {
  return withControl(flags, async ({ control, kind }) => {
    if (kind === "store") throw noAgent();
    const session = control.session(await resolveSession(control, typed));
    return wanted === undefined ? show(control, session, flags) : set(session, wanted, flags);
  });
}

async function set(session: SessionControl, wanted: string, { by, json }: ModeFlags): Promise<number> {
  const receipt = await session.setMode(wanted, by === undefined ? {} : { by });
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
  const said = plainLine(description === "" ? name : `${name}: ${description}`, WORDS_CHARS_MAX);
  return `  ${id === current ? "*" : " "} ${id}  ${said}`;
}

/** Only a token for the whole house may ask how it is. The mode itself is seen all the same. */
async function modesOf(control: BelayControl): Promise<readonly AgentMode[]> {
  try {
    return (await control.status()).modes;
  } catch (error) {
    if (error instanceof ControlError && error.code === "forbidden") return [];
    throw error;
  }
}

const noAgent = (): ControlError =>
  new ControlError("invalid", "Which modes there are is for the agent to say, and nobody is at work on that store.", {
    hint: "Start a server on it with `belay serve --store FILE`, and ask that one.",
  });
