// Belay behind HTTP, in a program of your own: a server with its sockets, or functions to mount in one you have.
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
   * A private directory: tokens are kept in it, as digests. Or a function of your own, which may be async: what it
   * throws is a refusal.
   */
  readonly tokens: string | Verify;
  /** Names of this server besides those of the loopback: `belay.example.com`. */
  readonly hosts?: readonly string[];
  /** Pages of other servers that may ask, each exactly as a browser writes its origin. */
  readonly origins?: readonly string[];
  readonly log?: ServerLog;
  readonly audit?: ServerAudit;
  readonly limits?: ServerLimits;
}

/** For one actor each. A host that asks in the name of all its users needs more than one user does. */
export interface ServerLimits {
  /** Event streams that are open at once. Default 32. */
  readonly streamsPerToken?: number;
  /** Default 20. Stops are never counted. */
  readonly changesPerSecond?: number;
  /** How many at once after a pause. Default 40. */
  readonly changesBurst?: number;
}

export interface FetchOptions extends Common {
  /** Where it is mounted, for hosts that leave that in the path: `/agents`. */
  readonly basePath?: string;
}

/** What your server knows of a request already. */
export interface MountedRequest {
  /** Who asks, by your own sessions. Then no token is looked for. */
  readonly actor?: VerifiedActor;
  /** The body, as your parser has left it. */
  readonly body?: unknown;
}

export interface ServeOptions extends Common {
  /** Default: a free port of the loopback. Anything wider needs TLS or a trusted proxy. */
  readonly at?: TcpPlace | SocketPlace;
}

/** Belay to be mounted in a server of yours. */
export interface Mounted {
  /** From a web-standard request to its response: Hono, Next.js, Bun, Deno. */
  fetch(request: Request): Promise<Response>;
  /** The same, with what your server knows already. */
  fetchAs(given: MountedRequest, request: Request): Promise<Response>;
  /** For requests of Node: `node:http`, Express, Nest. Takes `request.body`, if a parser has left one there. */
  node(request: IncomingMessage, response: ServerResponse): void;
  /** The same, with what your server knows already: Fastify. */
  nodeAs(given: MountedRequest, request: IncomingMessage, response: ServerResponse): void;
  /** Ends the streams with a last word, and keeps nobody waiting. Belay itself goes on. */
  close(): Promise<void>;
}

export interface Serving {
  /** Where it listens: an address, or the path of a socket. */
  readonly at: string;
  /** The file with the token for programs of this user. Undefined if you verify tokens yourself. */
  readonly tokenFile: string | undefined;
  /** Ends streams and connections. Belay itself goes on, and is closed by whoever opened it. */
  close(): Promise<void>;
}

export function fetchBelay(belay: BelayControl, options: FetchOptions): Mounted {
  const { handler, handle, tokens } = inside(belay, options, ["basePath"]);
  const { basePath, log } = options;
  const onTrouble = (error: unknown, requestId: string): void =>
    log?.error("a request has failed", { requestId, error: toControlError(error) });
  const mount = new Mount(handle, { clock: systemClock, basePath, onTrouble });
  const known = ({ actor, body }: MountedRequest) => ({ actor: checkedActor(actor), body });
  return {
    fetch: (request) => mount.fetch(request),
    fetchAs: async (given, request) => mount.fetch(request, known(given)),
    node: (request, response) => void mount.node(request, response),
    nodeAs: (given, request, response) => void mount.node(request, response, known(given)),
    close: async () => {
      await handler.drain();
      tokens?.close();
    },
  };
}

export async function serveBelay(belay: BelayControl, options: ServeOptions): Promise<Serving> {
  const { guard, handler, handle, tokens } = inside(belay, options, ["at"]);
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

interface Inside {
  readonly guard: Guard;
  readonly handler: Handler;
  readonly handle: Handle;
  readonly tokens: Tokens | undefined;
}

function inside(belay: BelayControl, options: ServeOptions & FetchOptions, others: readonly string[]): Inside {
  if (!isObject(options)) throw invalid("A server needs to know who may ask: { tokens }.");
  const { tokens: from, hosts = [], origins = [], log, audit, limits, ...rest } = options;
  rejectUnknown(Object.fromEntries(Object.entries(rest).filter(([name]) => !others.includes(name))), "A server");
  if (typeof from !== "string" && typeof from !== "function") {
    throw invalid("`tokens` is a directory for tokens, or a function that tells whose a token is.");
  }
  const refused = (error: unknown): void =>
    log?.warn("a token could not be verified, and is refused", { error: toControlError(error) });
  const kept = typeof from === "string" ? openTokens({ dir: from, clock: systemClock }) : undefined;
  // A command that reads them could speak as their owner.
  if (typeof from === "string") hidePaths(belay, [resolve(from)]);
  const asked = typeof from === "string" ? undefined : new HostTokens(from, refused);
  const tokens = kept ?? asked ?? NOBODY;
  const guard = new Guard({ tokens, clock: systemClock, names: hosts, origins, ...limitsOf(limits) });
  const parts = { control: belay, guard, clock: systemClock, version: version() };
  const told = { ...(log === undefined ? {} : { log }), ...(audit === undefined ? {} : { audit }) };
  const handler = makeHandler({ ...parts, ...told });
  return { guard, tokens: kept, handler, handle: verifiedBefore(handler, asked) };
}

const NOBODY = { verify: () => undefined };

/** Not a tick later where the host answers at once: requests are handled in the order in which they came. */
function verifiedBefore(handler: Handler, tokens: HostTokens | undefined): Handle {
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
    if (!Number.isInteger(limit) || limit < 1) throw invalid(`\`limits.${name}\` is a whole number from 1 on.`);
  }
  return {
    ...(streamsPerToken === undefined ? {} : { streamsPerToken }),
    ...(changesPerSecond === undefined ? {} : { mutationsPerSecond: changesPerSecond }),
    ...(changesBurst === undefined ? {} : { mutationsBurst: changesBurst }),
  };
}

export type { Actor, ServerAudit, ServerLog, SocketPlace, TcpPlace, VerifiedActor, Verify };
