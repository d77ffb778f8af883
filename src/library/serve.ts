// Belay behind HTTP, in a program of your own: a server with its sockets, or a function to mount in one you have.
import type { BelayControl } from "../control.ts";
import { systemClock } from "../engine/system-clock.ts";
import { invalid, isObject, rejectUnknown } from "../engine/validate.ts";
import type { Actor } from "../server/exchange.ts";
import { fetchHandler } from "../server/fetch-exchange.ts";
import { Guard } from "../server/guard.ts";
import { type Handler, makeHandler } from "../server/handler.ts";
import { type Listener, listen, type SocketPlace, type TcpPlace } from "../server/listener.ts";
import type { ServerAudit, ServerLog } from "../server/observer.ts";
import { openTokens, type Tokens } from "../server/tokens.ts";
import { version } from "./version.ts";

/** Who may ask: whose token this is, or undefined if it is nobody's. */
export type Verify = (token: string) => Actor | undefined;

interface Common {
  /** A private directory: tokens are kept in it, as digests. Or a function of your own. */
  readonly tokens: string | Verify;
  /** Names of this server besides those of the loopback: `belay.example.com`. */
  readonly hosts?: readonly string[];
  /** Pages of other servers that may ask, each exactly as a browser writes its origin. */
  readonly origins?: readonly string[];
  readonly log?: ServerLog;
  readonly audit?: ServerAudit;
}

export interface FetchOptions extends Common {}

export interface ServeOptions extends Common {
  /** Default: a free port of the loopback. Anything wider needs TLS or a trusted proxy. */
  readonly at?: TcpPlace | SocketPlace;
}

/** A function from a web-standard Request to its Response, to be mounted in a server of yours. */
export interface Mounted {
  fetch(request: Request): Promise<Response>;
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
  const { handler } = inside(belay, options, []);
  return { fetch: fetchHandler(handler.handle), close: () => handler.drain() };
}

export async function serveBelay(belay: BelayControl, options: ServeOptions): Promise<Serving> {
  const { guard, handler, tokens } = inside(belay, options, ["at"]);
  const { at = { kind: "tcp" } } = options;
  const local = tokens?.ensureLocal();
  const listener: Listener = await listen(handler.handle, { place: at, clock: systemClock });
  const { address } = listener;
  if (address.kind === "tcp") guard.serves(address.served);
  return {
    at: address.kind === "tcp" ? address.url : address.path,
    tokenFile: local?.file,
    close: async () => {
      await handler.drain();
      await listener.close();
    },
  };
}

interface Inside {
  readonly guard: Guard;
  readonly handler: Handler;
  readonly tokens: Tokens | undefined;
}

function inside(belay: BelayControl, options: ServeOptions, others: readonly string[]): Inside {
  if (!isObject(options)) throw invalid("A server needs to know who may ask: { tokens }.");
  const { tokens: from, hosts = [], origins = [], log, audit, at, ...rest } = options;
  rejectUnknown(at === undefined || others.includes("at") ? rest : { ...rest, at }, "A server");
  if (typeof from !== "string" && typeof from !== "function") {
    throw invalid("`tokens` is a directory for tokens, or a function that tells whose a token is.");
  }
  const tokens = typeof from === "string" ? openTokens({ dir: from, clock: systemClock }) : undefined;
  const verify = typeof from === "string" ? (secret: string) => tokens?.verify(secret) : from;
  const guard = new Guard({ tokens: { verify }, clock: systemClock, names: hosts, origins });
  const parts = { control: belay, guard, clock: systemClock, version: version() };
  const told = { ...(log === undefined ? {} : { log }), ...(audit === undefined ? {} : { audit }) };
  return { guard, tokens, handler: makeHandler({ ...parts, ...told }) };
}

export type { Actor, ServerAudit, ServerLog, SocketPlace, TcpPlace };
