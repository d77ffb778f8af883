// The modes of a session's agent as the client shows them: a menu of modes in version 1, a configuration option in both
// versions.
import type * as v1 from "@agentclientprotocol/sdk";
import type * as v2 from "@agentclientprotocol/sdk/experimental/v2";
import type { AgentMode } from "../../../ports/agent.ts";
import type { BelayControl, SessionControl } from "../../../ports/control.ts";
import { invalidParams } from "./rpc-error.ts";

/** The available modes and the current one. */
export interface ModeChoice {
  readonly current: string;
  readonly modes: readonly AgentMode[];
}

/** The available modes, and the session's mode where the updates begin. */
export interface Modal {
  readonly modes: readonly AgentMode[];
  readonly mode: string | undefined;
}

/** A client that may not read the server's status sees no modes. */
export async function modalOf(control: BelayControl, session?: SessionControl): Promise<Modal> {
  const { modes, mode } = await control.status().catch(() => ({ modes: [], mode: undefined }));
  if (session === undefined || modes.length === 0) return { modes, mode };
  return { modes, mode: (await session.explain()).mode };
}

/** The id of the option, which clients send back. */
const OPTION = "mode";

/** Empty if the agent has no modes. */
export const v1Menus = (choice: ModeChoice | undefined): Pick<v1.NewSessionResponse, "modes" | "configOptions"> =>
  choice === undefined ? {} : { modes: modeState(choice), configOptions: v1Options(choice) };

export const v2Menus = (choice: ModeChoice | undefined): Pick<v2.NewSessionResponse, "configOptions"> =>
  choice === undefined ? {} : { configOptions: v2Options(choice) };

const modeState = ({ current, modes }: ModeChoice): v1.SessionModeState => ({
  currentModeId: current,
  availableModes: modes.map(({ id, name, description }) => ({ id, name, ...described(description) })),
});

export const v1Options = (choice: ModeChoice | undefined): v1.SessionConfigOption[] =>
  choice === undefined ? [] : [{ id: OPTION, ...select(choice) }];

export const v2Options = (choice: ModeChoice | undefined): v2.SessionConfigOption[] =>
  choice === undefined ? [] : [{ configId: OPTION, ...select(choice) }];

const select = ({ current, modes }: ModeChoice) => ({
  ...({ type: "select", category: "mode", name: "Mode" } as const),
  description: "How much the agent may do without approval.",
  currentValue: current,
  options: modes.map(({ id, name, description }) => ({ value: id, name, ...described(description) })),
});

const described = (description: string | undefined): { readonly description?: string } =>
  description === undefined ? {} : { description };

/** The mode that a configuration change requests. There is no other option. */
export function modeAsked({ configId, value }: { readonly configId: string; readonly value?: unknown }): string {
  if (configId !== OPTION) throw invalidParams(`There is no option ${configId.slice(0, 64)}.`, "There is: mode.");
  if (typeof value !== "string") throw invalidParams("The value of `mode` must be the id of a mode.");
  return value;
}
