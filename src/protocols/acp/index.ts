// The public surface of `agent-belay/acp`, name by name: Belay for editors, and other agents behind Belay.

export type { AcpAgent, AcpConnection, Audit, ConnectOptions, AcpClientInfo, OpenedSession } from "./agent/acp-agent.ts";
export { type ExternalAgentOptions, externalAgent } from "./client/external-agent.ts";
export { createAcpAgent, type CreateAcpAgentOptions } from "./create-acp-agent.ts";
