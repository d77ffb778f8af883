// The menus of the agent behind Belay, and the requests that change what they show: modes, models and options. They are
// the agent's own, and Belay hands them on.
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
  readonly guest: AcpClientInfo;
  readonly records: AuditRecords;
  readonly isOpen: (session: SessionId) => boolean;
}

type Params = { readonly sessionId: string };

export class AgentSettings {
  readonly #parts: AgentSettingsParts;

  constructor(parts: AgentSettingsParts) {
    this.#parts = parts;
  }

  /** Undefined: the agent has none, or has not run yet. */
  menus(id: string): { readonly [key: string]: Json } | undefined {
    return this.#parts.behind.menus(sessionOf(this.#parts.guest, id));
  }

  /** Answers `{}` for a setting that is sent to the agent when it starts. */
  async set(method: string, params: Params): Promise<object> {
    return (await this.#set<object>(method, params)) ?? {};
  }

  async setOption(params: Params): Promise<SetSessionConfigOptionResponse> {
    const answer = await this.#set<SetSessionConfigOptionResponse>("session/set_config_option", params);
    if (answer !== undefined) return answer;
    const { configOptions } = this.menus(params.sessionId) ?? {};
    // Decoding: as the agent gave them. Its own update says what holds once it runs.
    return { configOptions: (Array.isArray(configOptions) ? configOptions : []) as unknown as SessionConfigOption[] };
  }

  async #set<T>(method: string, params: Params): Promise<T | undefined> {
    const { behind, guest, records, isOpen } = this.#parts;
    let answer: Json | undefined;
    const work = async (): Promise<undefined> => {
      allow(guest, "approve");
      const session = sessionOf(guest, params.sessionId);
      if (!isOpen(session)) throw unknownSession(params.sessionId);
      // Decoding: what the protocol's schema let through is JSON.
      answer = await behind.request(session, method, params as unknown as { readonly [key: string]: Json });
    };
    try {
      await records.noted("set-mode", params.sessionId, work);
    } catch (error) {
      throw rpcError(error);
    }
    // Decoding: the agent's answer is the protocol's.
    return answer as T | undefined;
  }
}

/** Also what carries out the work of the session: an agent behind Belay, which is loaded again with the session. */
export async function endProcesses({ processes }: SessionControl): Promise<void> {
  const reason = { kind: "user", note: "The client closed the session" } as const;
  const ends = (await processes.list()).map(async ({ id }) => {
    const one = await processes.get(id);
    await one.cancel(reason);
    await one.wait({ limitMs: CLOSE_WAIT_MS });
  });
  // One that has ended meanwhile cannot be cancelled, and one that is being ended stays on record.
  await Promise.allSettled(ends);
}
