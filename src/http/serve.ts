// Belay behind HTTP in your own program: a server with its own listener, or handlers to mount in an existing server.
import type { IncomingMessage, ServerResponse } from "node:http";
import { resolve } from "node:path";
import { toControlError } from "../core/errors.ts";
import { invalid, isObject, rejectUnknown } from "../core/input.ts";
import { hidePaths } from "../core/own-paths.ts";
import type { BelayControl } from "../ports/control.ts";
import { systemClock } from "../system/system-clock.ts";
import { version } from "../system/version.ts";
import { Guard } from "./auth/guard.ts";
import { checkedActor, HostTokens, type VerifiedActor, type Verify } from "./auth/host-tokens.ts";
import { openTokens, type Tokens } from "./auth/tokens.ts";
import { type Handler, makeHandler } from "./handler.ts";
import type { ServerAudit, ServerLog } from "./observer.ts";
import type { Actor, HttpRequest } from "./transport/http-exchange.ts";
import { type Listener, listen, type SocketPlace, type TcpPlace } from "./transport/listener.ts";
import { socketPaths } from "./transport/listener-socket.ts";
import { Mount } from "./transport/mount.ts";
import type { Handle } from "./transport/node-server.ts";

interface Common {
  /**
   * A private directory in which Belay stores tokens, as digests. Or your own function, which may be async: an error
   * denies the request.
   */
  readonly tokens: string | Verify;
  /** Names of this server besides those of the loopback: `belay.example.com`. */
  readonly hosts?: readonly string[];
  /** Origins whose web pages may call the server (CORS), each exactly as a browser sends it. */
  readonly origins?: readonly string[];
  readonly log?: ServerLog;
  readonly audit?: ServerAudit;
  readonly limits?: ServerLimits;
}

/** Limits for each actor. A host that sends the requests of all its users as one actor needs higher ones. */
export interface ServerLimits {
  /** Open event streams. Default 32. */
  readonly streamsPerToken?: number;
  /** Mutating requests per second, not counting stops. Default 20. */
  readonly changesPerSecond?: number;
  /** Burst of mutating requests after a pause. Default 40. */
  readonly changesBurst?: number;
}

export interface FetchOptions extends Common {
  /** The path prefix of the mount, for hosts that do not strip it: `/agents`. */
  readonly basePath?: string;
}

/** What your server already knows about a request. */
export interface MountedRequest {
  /** The actor, from your own authentication. No token is needed then. */
  readonly actor?: VerifiedActor;
  /** The parsed body. */
  readonly body?: unknown;
}

export interface ServeOptions extends Common {
  /** Default: a free port on the loopback interface. Any other interface needs TLS or a trusted proxy. */
  readonly at?: TcpPlace | SocketPlace;
}

/** Handlers to mount in your own server. */
export interface Mounted {
  /** Handles a web-standard request: Hono, Next.js, Bun, Deno. */
  fetch(request: Request): Promise<Response>;
  /** The same, with what your server already knows about the request. */
  fetchAs(given: MountedRequest, request: Request): Promise<Response>;
  /** Handles a Node.js request: `node:http`, Express, Nest. Uses `request.body` if a body parser has set it. */
  node(request: IncomingMessage, response: ServerResponse): void;
  /** The same, with what your server already knows about the request: Fastify. */
  nodeAs(given: MountedRequest, request: IncomingMessage, response: ServerResponse): void;
  /** Ends streams with a `bye` event and answers waiting requests. It does not close Belay. */
  close(): Promise<void>;
}

export interface Serving {
  /** Where it listens: a URL, or the path of a socket. */
  readonly at: string;
  /** The file with the token for programs of this user. Undefined if you verify tokens yourself. */
  readonly tokenFile: string | undefined;
  /** Ends streams and connections. It does not close Belay: the caller that opened it does. */
  close(): Promise<void>;
}

/** Creates handlers to mount in your own server. */
export function fetchBelay(belay: BelayControl, options: FetchOptions): Mounted {
  const { handler, handle, tokens } = compose(belay, options, ["basePath"]);
  const { basePath, log } = options;
  const onTrouble = (error: unknown, requestId: string): void =>
    log?.error("a request has failed", { requestId, error: toControlError(error) });
  const mount = new Mount(handle, { clock: systemClock, basePath, onTrouble });
  const checked = ({ actor, body }: MountedRequest) => ({ actor: checkedActor(actor), body });
  return {
    fetch: (request) => mount.fetch(request),
    fetchAs: async (given, request) => mount.fetch(request, checked(given)),
    node: (request, response) => void mount.node(request, response),
    nodeAs: (given, request, response) => void mount.node(request, response, checked(given)),
    close: async () => {
      await handler.drain();
      tokens?.close();
    },
  };
}

/** Starts an HTTP server with its own listener. */
export async function serveBelay(belay: BelayControl, options: ServeOptions): Promise<Serving> {
  const { guard, handler, handle, tokens } = compose(belay, options, ["at"]);
  const { at = { kind: "tcp" } } = options;
  const local = tokens?.ensureLocal();
  if (at.kind === "socket") hidePaths(belay, socketPaths(at.path));
  const listener: Listener = await listen(handle, { place: at, clock: systemClock });
  const { address } = listener;
  if (address.kind === "tcp") guard.serves(address.served);
  return {
    at: address.kind === "tcp" ? address.url : address.path,
    tokenFile: local?.file,
    close: async () => {
      await handler.drain();
      await listener.close();
      tokens?.close();
    },
  };
}

interface ServerComponents {
  readonly guard: Guard;
  readonly handler: Handler;
  readonly handle: Handle;
  readonly tokens: Tokens | undefined;
}

function compose(
  belay: BelayControl,
  options: ServeOptions & FetchOptions,
  others: readonly string[],
): ServerComponents {
  if (!isObject(options)) throw invalid("The options of a server must be an object with `tokens`.");
  const { tokens: from, hosts = [], origins = [], log, audit, limits, ...rest } = options;
  rejectUnknown(Object.fromEntries(Object.entries(rest).filter(([name]) => !others.includes(name))), "A server");
  if (typeof from !== "string" && typeof from !== "function") {
    throw invalid("`tokens` must be a directory for tokens, or a function that returns the actor of a token.");
  }
  const onError = (error: unknown): void =>
    log?.warn("a token could not be verified; its request is denied", { error: toControlError(error) });
  const stored = typeof from === "string" ? openTokens({ dir: from, clock: systemClock }) : undefined;
  // An agent's command that could read the tokens could act as their owner.
  if (typeof from === "string") hidePaths(belay, [resolve(from)]);
  const fromHost = typeof from === "string" ? undefined : new HostTokens(from, onError);
  const tokens = stored ?? fromHost ?? NO_TOKENS;
  const guard = new Guard({ tokens, clock: systemClock, names: hosts, origins, ...limitsOf(limits) });
  const parts = { control: belay, guard, clock: systemClock, version: version() };
  const observers = { ...(log === undefined ? {} : { log }), ...(audit === undefined ? {} : { audit }) };
  const handler = makeHandler({ ...parts, ...observers });
  return { guard, tokens: stored, handler, handle: withVerification(handler, fromHost) };
}

const NO_TOKENS = { verify: () => undefined };

/** If the host's function is synchronous, it adds no tick: requests are handled in their order of arrival. */
function withVerification(handler: Handler, tokens: HostTokens | undefined): Handle {
  if (tokens === undefined) return handler.handle;
  return async (request: HttpRequest) => {
    const verified = tokens.prepare(request);
    if (verified !== undefined) await verified;
    return handler.handle(request);
  };
}

function limitsOf(limits: ServerLimits = {}) {
  const { streamsPerToken, changesPerSecond, changesBurst, ...rest } = limits;
  rejectUnknown(rest, "`limits`");
  for (const [name, limit] of Object.entries(limits)) {
    if (!Number.isInteger(limit) || limit < 1)
      throw invalid(`\`limits.${name}\` must be a whole number of at least 1 (got ${String(limit)}).`);
  }
  return {
    ...(streamsPerToken === undefined ? {} : { streamsPerToken }),
    ...(changesPerSecond === undefined ? {} : { mutationsPerSecond: changesPerSecond }),
    ...(changesBurst === undefined ? {} : { mutationsBurst: changesBurst }),
  };
}

export type { Actor, ServerAudit, ServerLog, SocketPlace, TcpPlace, VerifiedActor, Verify };
