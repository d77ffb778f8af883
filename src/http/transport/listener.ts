// Opens the listener of a server: a TCP port or a private socket.
//
// Invariants
// 1. Other machines are never served without encryption: any address but the loopback needs TLS or a trusted proxy.
// 2. A listener that fails to open leaves no file.
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
  /** Default: a free port. */
  readonly port?: number | undefined;
  readonly tls?: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly trustedProxy?: TrustedProxy | undefined;
}

/** A reverse proxy that terminates TLS. Requests without its secret are denied. */
export interface TrustedProxy {
  /** The header that it sets on every request, and removes from client requests. Default: `x-belay-proxy`. */
  readonly header?: string | undefined;
  readonly secret: string;
}

export interface SocketPlace {
  readonly kind: "socket";
  /** An absolute path. Its directory is created if it does not exist, and must belong to the same user. */
  readonly path: string;
}

export interface ListenOptions {
  readonly place: TcpPlace | SocketPlace;
  readonly clock: Clock;
  readonly limits?: Partial<NodeLimits> | undefined;
  readonly onTrouble?: ((thrown: unknown, requestId: string) => void) | undefined;
}

export type Address =
  /** `served` is for `Guard.serves`. Behind a proxy the public scheme is `https`, while the server uses plain HTTP. */
  | { readonly kind: "tcp"; readonly url: string; readonly port: number; readonly served: Served }
  | { readonly kind: "socket"; readonly path: string };

export interface Listener {
  readonly address: Address;
  /** The number of open connections. */
  readonly connections: number;
  /** Reads certificate and key again. Open connections keep theirs. Without TLS it has no effect. */
  reload(): void;
  /** Whether clients can find it. False if its socket file was removed or replaced. */
  isInPlace(): boolean;
  /** Removes its socket file, if it still is this listener's. For a process that has no time to close. */
  hide(): void;
  /** Closes gracefully: accepts no connections, closes idle ones, finishes responses; closes the rest at `limitMs`. */
  close(options?: { readonly limitMs?: number }): Promise<void>;
}

/** Default time for responses in flight when a listener is closed. */
export const CLOSE_LIMIT_MS = 10_000;
/** A shorter secret can be guessed. */
const PROXY_SECRET_CHARS_MIN = 32;
const PROXY_HEADER = "x-belay-proxy";

export async function listen(handle: Handle, options: ListenOptions): Promise<Listener> {
  const { place, clock, onTrouble } = options;
  const limits = { ...options.limits, ...connectionLimits(place.kind, options.limits?.connectionsMax) };
  if (place.kind === "socket") {
    const file = await prepareSocket(place.path, clock);
    const node = new NodeServer({ handle, clock, via: "socket", limits, onTrouble });
    try {
      await open(node, { path: file.draft });
      file.place();
    } catch (error) {
      file.remove();
      throw error;
    }
    const address = { kind: "socket", path: place.path } as const;
    return listener(node, { address, reload: () => {}, isInPlace: file.isInPlace, hide: file.remove });
  }
  const host = bindAddress(place);
  const { tls } = place;
  const read = (): { cert: Buffer; key: Buffer } | undefined => (tls === undefined ? undefined : readPair(tls));
  const guarded = place.trustedProxy === undefined ? handle : requireProxy(place.trustedProxy, handle);
  const node = new NodeServer({ handle: guarded, clock, via: "tcp", tls: read(), limits, onTrouble });
  await open(node, { host, port: place.port ?? 0 });
  const reload = (): void => {
    const pair = read();
    if (pair !== undefined && node.server instanceof TlsServer) node.server.setSecureContext(pair);
  };
  return listener(node, { address: addressOf(node, place), reload, isInPlace: () => true, hide: () => {} });
}

type ListenerParts = Pick<Listener, "address" | "reload" | "isInPlace" | "hide">;

function listener(node: NodeServer, { hide, ...rest }: ListenerParts): Listener {
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

/** The address to bind. Refuses unencrypted access from other machines. Names are not resolved. */
function bindAddress({ host = "127.0.0.1", tls, trustedProxy }: TcpPlace): string {
  const loopback = host === "localhost" ? "127.0.0.1" : host;
  if ((isIPv4(loopback) && loopback.startsWith("127.")) || loopback === "::1") return loopback;
  if (!isIPv4(host) && !isIPv6(host)) {
    throw new ControlError("invalid", `"${host.slice(0, 64)}" is not an IP address to listen on.`, {
      hint: "Use an address of this machine: 127.0.0.1, ::1, or 0.0.0.0 with TLS or behind a proxy.",
    });
  }
  if (tls !== undefined || trustedProxy !== undefined) return host;
  throw new ControlError("forbidden", `On ${host} tokens would be sent over the network without encryption.`, {
    hint:
      "Configure TLS with a certificate and a key, or a proxy that terminates TLS and shares a secret with the " +
      "server. Or listen on 127.0.0.1, which is the default.",
  });
}

function readPair({ certFile, keyFile }: { certFile: string; keyFile: string }): { cert: Buffer; key: Buffer } {
  try {
    return { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  } catch (cause) {
    const message = `The certificate or its key cannot be read: ${certFile}, ${keyFile}.`;
    throw new ControlError("invalid", message, { cause, hint: "Both must be PEM files that this user can read." });
  }
}

function open(node: NodeServer, where: NodeListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => reject(listenError(where, cause));
    node.server.once("error", onError);
    node.server.listen(where, () => {
      node.server.off("error", onError);
      resolve();
    });
  });
}

function listenError({ host, port, path }: NodeListenOptions, cause: NodeJS.ErrnoException): ControlError {
  const where = path ?? `${host}, port ${port}`;
  const taken = cause.code === "EADDRINUSE";
  const message = taken ? `Another program is listening on ${where}.` : `Cannot listen on ${where} (${cause.code}).`;
  return new ControlError(taken ? "conflict" : "unavailable", message, {
    cause,
    hint: taken ? "Stop it, or choose another port or path." : "Check that this user may listen on this address.",
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

/** Denies requests that did not pass through the proxy. */
function requireProxy({ header = PROXY_HEADER, secret }: TrustedProxy, handle: Handle): Handle {
  if (secret.length < PROXY_SECRET_CHARS_MIN) {
    throw new ControlError(
      "invalid",
      `The secret of the proxy must have at least ${PROXY_SECRET_CHARS_MIN} characters.`,
      {
        hint: "Create one with `openssl rand -base64 32`.",
      },
    );
  }
  const expected = digest(secret);
  const name = header.toLowerCase();
  return async (request) => {
    if (timingSafeEqual(digest(request.header(name) ?? ""), expected)) return handle(request);
    throw new Denial(403, "forbidden", "This server accepts requests only through its proxy.", {
      hint: "Send the request to the proxy. For the proxy: the header with the shared secret is missing or wrong.",
    });
  };
}

const digest = (text: string): Buffer => createHash("sha256").update(text, "utf8").digest();
