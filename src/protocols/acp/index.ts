// The public surface of `agent-belay/acp`, name by name: Belay for editors, and other agents behind Belay.

export type {
  AcpAgent,
  AcpClientInfo,
  AcpConnection,
  Audit,
  ConnectOptions,
  OpenedSession,
} from "./agent/acp-agent.ts";
export { type ExternalAgentOptions, externalAgent } from "./client/external-agent.ts";
export { type CreateAcpAgentOptions, createAcpAgent } from "./create-acp-agent.ts";
