// Where the server is reached: a port, or a private socket.
//
// Invariants
// 1. Beyond this machine nobody is served in the clear: a wide bind has TLS, or a proxy that proves itself.
// 2. A listener that could not be opened has left nothing behind.
import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import type { ListenOptions as NodeListenOptions } from "node:net";
import { isIPv4, isIPv6 } from "node:net";
import { Server as TlsServer } from "node:tls";
import { ControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { Denial } from "../auth/guard-denial.ts";
import type { Served } from "../auth/host.ts";
import { connectionLimits } from "./connection-limits.ts";
import { prepareSocket } from "./listener-socket.ts";
import { type Handle, type NodeLimits, NodeServer } from "./node-server.ts";

export interface TcpPlace {
  readonly kind: "tcp";
  /** Default: 127.0.0.1. */
  readonly host?: string | undefined;
  /** Default: any that is free. */
  readonly port?: number | undefined;
  readonly tls?: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly trustedProxy?: TrustedProxy | undefined;
}

/** A proxy in front of us, which does the TLS. Who comes past it, without the secret, is refused. */
export interface TrustedProxy {
  /** The header it adds to every request, and removes from those that bring it along. Default: `x-belay-proxy`. */
  readonly header?: string | undefined;
  readonly secret: string;
}

export interface SocketPlace {
  readonly kind: "socket";
  /** Absolute. Its directory is made if missing, and must be nobody else's. */
  readonly path: string;
}

export interface ListenOptions {
  readonly place: TcpPlace | SocketPlace;
  readonly clock: Clock;
  readonly limits?: Partial<NodeLimits> | undefined;
  readonly onTrouble?: ((thrown: unknown, requestId: string) => void) | undefined;
}

export type Address =
  /** `served` is for `Guard.serves`. Behind a proxy people see its `https`, and we see none of it. */
  | { readonly kind: "tcp"; readonly url: string; readonly port: number; readonly served: Served }
  | { readonly kind: "socket"; readonly path: string };

export interface Listener {
  readonly address: Address;
  /** How many are connected now. */
  readonly connections: number;
  /** Reads certificate and key again; connections that are open keep theirs. Without TLS it does nothing. */
  reload(): void;
  /** Whether clients find it. Not so if the file of its socket was removed or replaced. */
  isInPlace(): boolean;
  /** Takes the file of a socket away, if it is still this one's. For a program that has no time to close. */
  hide(): void;
  /** Takes no more connections, ends idle ones, lets answers finish; after `limitMs` ends those as well. */
  close(options?: { readonly limitMs?: number }): Promise<void>;
}

/** How long answers in flight may take to finish when a listener is closed. */
export const CLOSE_LIMIT_MS = 10_000;
/** Shorter ones are guessed. */
const PROXY_SECRET_CHARS_MIN = 32;
const PROXY_HEADER = "x-belay-proxy";

export async function listen(handle: Handle, options: ListenOptions): Promise<Listener> {
  const { place, clock, onTrouble } = options;
  const limits = { ...options.limits, ...connectionLimits(place.kind, options.limits?.connectionsMax) };
  if (place.kind === "socket") {
    const file = await prepareSocket(place.path, clock);
    const node = new NodeServer({ handle, clock, via: "socket", limits, onTrouble });
    try {
      await opened(node, { path: file.draft });
      file.place();
    } catch (error) {
      file.remove();
      throw error;
    }
    const address = { kind: "socket", path: place.path } as const;
    return listener(node, { address, reload: () => {}, isInPlace: file.isInPlace, hide: file.remove });
  }
  const host = bindable(place);
  const { tls } = place;
  const read = (): { cert: Buffer; key: Buffer } | undefined => (tls === undefined ? undefined : readPair(tls));
  const admitted = place.trustedProxy === undefined ? handle : behind(place.trustedProxy, handle);
  const node = new NodeServer({ handle: admitted, clock, via: "tcp", tls: read(), limits, onTrouble });
  await opened(node, { host, port: place.port ?? 0 });
  const reload = (): void => {
    const pair = read();
    if (pair !== undefined && node.server instanceof TlsServer) node.server.setSecureContext(pair);
  };
  return listener(node, { address: addressOf(node, place), reload, isInPlace: () => true, hide: () => {} });
}

type Listening = Pick<Listener, "address" | "reload" | "isInPlace" | "hide">;

function listener(node: NodeServer, { hide, ...rest }: Listening): Listener {
  return {
    ...rest,
    get connections() {
      return node.connections;
    },
    hide,
    close: ({ limitMs = CLOSE_LIMIT_MS } = {}) => {
      hide();
      return node.close(limitMs);
    },
  };
}

/** Where to bind; refuses what would serve strangers in the clear. A name is not looked up: it may lead anywhere. */
function bindable({ host = "127.0.0.1", tls, trustedProxy }: TcpPlace): string {
  const loopback = host === "localhost" ? "127.0.0.1" : host;
  if ((isIPv4(loopback) && loopback.startsWith("127.")) || loopback === "::1") return loopback;
  if (!isIPv4(host) && !isIPv6(host)) {
    throw new ControlError("invalid", `"${host.slice(0, 64)}" is not an address to listen on.`, {
      hint: "Give an address of this machine: 127.0.0.1, ::1, or 0.0.0.0 with TLS or behind a proxy.",
    });
  }
  if (tls !== undefined || trustedProxy !== undefined) return host;
  throw new ControlError("forbidden", `On ${host} others could reach this server, and read every token on the way.`, {
    hint:
      "Either give it a certificate and a key (TLS), or put a proxy that does the TLS in front of it and give both " +
      "the same secret. Or listen on 127.0.0.1, which is the default.",
  });
}

function readPair({ certFile, keyFile }: { certFile: string; keyFile: string }): { cert: Buffer; key: Buffer } {
  try {
    return { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  } catch (cause) {
    const message = `The certificate or its key cannot be read: ${certFile}, ${keyFile}.`;
    throw new ControlError("invalid", message, { cause, hint: "Both are files in PEM form that this user may read." });
  }
}

function opened(node: NodeServer, where: NodeListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (cause: NodeJS.ErrnoException): void => reject(notOpened(where, cause));
    node.server.once("error", failed);
    node.server.listen(where, () => {
      node.server.off("error", failed);
      resolve();
    });
  });
}

function notOpened({ host, port, path }: NodeListenOptions, cause: NodeJS.ErrnoException): ControlError {
  const where = path ?? `${host}, port ${port}`;
  const taken = cause.code === "EADDRINUSE";
  const message = taken ? `Something else is listening on ${where}.` : `Cannot listen on ${where} (${cause.code}).`;
  return new ControlError(taken ? "conflict" : "unavailable", message, {
    cause,
    hint: taken
      ? "Stop it, or choose another port or path."
      : "Check that this address is one this user may listen on.",
  });
}

function addressOf(node: NodeServer, { tls, trustedProxy }: TcpPlace): Address {
  const bound = node.server.address();
  if (bound === null || typeof bound === "string") throw new Error("A port that was opened has no address.");
  const scheme = tls === undefined ? "http" : "https";
  const host = bound.family === "IPv6" ? `[${bound.address}]` : bound.address;
  const url = `${scheme}://${host}:${bound.port}`;
  return { kind: "tcp", url, port: bound.port, served: { port: bound.port, scheme: trustedProxy ? "https" : scheme } };
}

/** Lets through what has come by way of the proxy. */
function behind({ header = PROXY_HEADER, secret }: TrustedProxy, handle: Handle): Handle {
  if (secret.length < PROXY_SECRET_CHARS_MIN) {
    throw new ControlError("invalid", `The proxy's secret has fewer than ${PROXY_SECRET_CHARS_MIN} characters.`, {
      hint: "Make one with `openssl rand -base64 32`.",
    });
  }
  const expected = digest(secret);
  const name = header.toLowerCase();
  return async (request) => {
    if (timingSafeEqual(digest(request.header(name) ?? ""), expected)) return handle(request);
    throw new Denial(403, "forbidden", "This server is reached through its proxy only.", {
      hint: "Ask the proxy. If you are the proxy: the header with the shared secret is missing or wrong.",
    });
  };
}

const digest = (text: string): Buffer => createHash("sha256").update(text, "utf8").digest();
