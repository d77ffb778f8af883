// The public surface of `agent-belay/server`, name by name: Belay behind HTTP, in a program of your own.
export {
  type Actor,
  type FetchOptions,
  fetchBelay,
  type Mounted,
  type MountedRequest,
  type ServeOptions,
  type ServerAudit,
  type ServerLimits,
  type ServerLog,
  type Serving,
  type SocketPlace,
  serveBelay,
  type TcpPlace,
  type VerifiedActor,
  type Verify,
} from "./serve.ts";
