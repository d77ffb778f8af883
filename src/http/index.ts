// The public API of `agent-belay/server`: Belay behind HTTP, in your own program.
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
