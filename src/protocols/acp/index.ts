// The public exports of `agent-belay/acp`, name by name: Belay for editors, and external agents under Belay.

export {
  type AcpAgent,
  type AcpClientInfo,
  type AcpConnection,
  type Audit,
  type ConnectOptions,
  type CreateAcpAgentOptions,
  createAcpAgent,
  type OpenedSession,
} from "./agent/acp-agent.ts";
export { type ExternalAgentOptions, externalAgent } from "./client/external-agent.ts";
