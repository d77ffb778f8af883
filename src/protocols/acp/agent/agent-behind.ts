// The agent behind Belay, as far as a client of the protocol deals with it directly: its menus, its plans, its slash
// commands, and the requests that change them. Types only; `foreign` implements it.
import type { SessionId } from "../../../core/model/ids.ts";
import type { Json } from "../../../core/model/prompt.ts";

export interface AgentBehind {
  /** What the agent answered when it opened its session, or the last one of another session: modes, models, options. */
  menus(session: SessionId): { readonly [key: string]: Json } | undefined;
  /**
   * Sends a request to the session's agent under its own name of the session. Undefined: its process does not run yet;
   * the request is sent before the session's next prompt.
   */
  request(session: SessionId, method: string, params: { readonly [key: string]: Json }): Promise<Json> | undefined;
  /** Calls back with every update that Belay does not record. Those that still hold come first. */
  follow(session: SessionId, listener: (update: { readonly [key: string]: Json }) => void): () => void;
}
