// The public surface of `agent-belay/acp`, name by name: Belay for editors, and other agents behind Belay.

export type { AcpDoor, AcpGuest, Audit, ConnectOptions, Guest, OpenedSession } from "./agent/acp-agent.ts";
export { type ForeignAgentOptions, foreignAgent } from "./client/external-agent.ts";
export { acpDoor, type DoorOptions } from "./create-acp-agent.ts";
