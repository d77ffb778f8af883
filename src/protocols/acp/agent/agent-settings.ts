// Modes, models and options of the agent behind Belay, and the requests that change them. Belay passes them on
// unchanged.
import type { SessionConfigOption, SetSessionConfigOptionResponse } from "@agentclientprotocol/sdk";
import type { SessionId } from "../../../core/model/ids.ts";
import type { Json } from "../../../core/model/prompt.ts";
import type { SessionControl } from "../../../ports/control.ts";
import { type AcpClientInfo, allow, sessionOf } from "./acp-client-info.ts";
import type { AgentBehind } from "./agent-behind.ts";
import type { AuditRecords } from "./audit.ts";
import { CLOSE_WAIT_MS } from "./limits.ts";
import { rpcError, unknownSession } from "./rpc-error.ts";

export interface AgentSettingsParts {
  readonly behind: AgentBehind;
  readonly client: AcpClientInfo;
  readonly records: AuditRecords;
  readonly isOpen: (session: SessionId) => boolean;
}

type Params = { readonly sessionId: string };

export class AgentSettings {
  readonly #parts: AgentSettingsParts;

  constructor(parts: AgentSettingsParts) {
    this.#parts = parts;
  }

  /** Undefined if the agent has none, or has not run yet. */
  menus(id: string): { readonly [key: string]: Json } | undefined {
    return this.#parts.behind.menus(sessionOf(this.#parts.client, id));
  }

  /** Sets a mode or a model. Returns `{}` if it is sent to the agent only when it starts. */
  async set(method: string, params: Params): Promise<object> {
    return (await this.#set<object>(method, params)) ?? {};
  }

  async setOption(params: Params): Promise<SetSessionConfigOptionResponse> {
    const answer = await this.#set<SetSessionConfigOptionResponse>("session/set_config_option", params);
    if (answer !== undefined) return answer;
    const { configOptions } = this.menus(params.sessionId) ?? {};
    // As the agent reported them. Its own update reports the result once it runs.
    return { configOptions: (Array.isArray(configOptions) ? configOptions : []) as unknown as SessionConfigOption[] };
  }

  async #set<T>(method: string, params: Params): Promise<T | undefined> {
    const { behind, client, records, isOpen } = this.#parts;
    let answer: Json | undefined;
    const work = async (): Promise<undefined> => {
      allow(client, "approve");
      const session = sessionOf(client, params.sessionId);
      if (!isOpen(session)) throw unknownSession(params.sessionId);
      // Validated by the protocol's schema, so it is JSON.
      answer = await behind.request(session, method, params as unknown as { readonly [key: string]: Json });
    };
    try {
      await records.noted("set-mode", params.sessionId, work);
    } catch (error) {
      throw rpcError(error);
    }
    // The agent's answer has the protocol's type.
    return answer as T | undefined;
  }
}

/**
 * Ends the processes of a session, including the process of an external agent, which is restarted when the session is
 * loaded again.
 */
export async function endProcesses({ processes }: SessionControl): Promise<void> {
  const reason = { kind: "user", note: "The client closed the session" } as const;
  const ends = (await processes.list()).map(async ({ id }) => {
    const one = await processes.get(id);
    await one.cancel(reason);
    await one.wait({ limitMs: CLOSE_WAIT_MS });
  });
  // A process that has ended meanwhile rejects, and one that is still ending stays on record.
  await Promise.allSettled(ends);
}
