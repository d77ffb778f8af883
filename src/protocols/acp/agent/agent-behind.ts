// The external agent behind Belay, as far as a client deals with it directly: its menus, plans, slash commands, and the
// requests that change them. Types only; `AgentSessions` in `acp/client` implements it.
import type { SessionId } from "../../../core/model/ids.ts";
import type { Json } from "../../../core/model/prompt.ts";

export interface AgentBehind {
  /** The modes, models and options from the agent's answer when it opened this session, or the last other one. */
  menus(session: SessionId): { readonly [key: string]: Json } | undefined;
  /**
   * Sends a request to the session's agent, with the agent's own session id. Undefined if its process is not running;
   * the request is then sent before the session's next prompt.
   */
  request(session: SessionId, method: string, params: { readonly [key: string]: Json }): Promise<Json> | undefined;
  /**
   * Calls `listener` with every update that Belay does not record, beginning with those that still apply. Returns a
   * disposer.
   */
  follow(session: SessionId, listener: (update: { readonly [key: string]: Json }) => void): () => void;
}
