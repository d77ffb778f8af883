// The host names of this server, checked against DNS rebinding: a web page can make its own name resolve to 127.0.0.1,
// but the browser still sends that name in `Host`. So requests for other names are denied before anything else.
import { ControlError } from "../../core/errors.ts";
import { HOST_CHARS_MAX } from "../limits.ts";

export type Scheme = "http" | "https";

/** A parsed `Host` header: a name in lower case or an IP address, and the port if there is one. */
export interface Authority {
  readonly name: string;
  readonly port: number | undefined;
}

/** The scheme and port of a listener. */
export interface Served {
  readonly scheme: Scheme;
  readonly port: number;
}

const NAME = /^[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*$/;
const ADDRESS_V6 = /^\[[0-9a-f:.]{2,45}\]$/;
const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "[::1]", "localhost"]);

/**
 * Parses a `Host` header. Undefined for anything that a correct client does not send: a trailing dot, a user, a path,
 * spaces, two values. Other spellings of an address (`127.1`, `0x7f.1`, `[0:0::1]`) are ordinary names, and not local.
 */
export function parseAuthority(text: string): Authority | undefined {
  if (text.length === 0 || text.length > HOST_CHARS_MAX) return undefined;
  const colon = text.endsWith("]") ? -1 : text.lastIndexOf(":");
  const name = asciiLowerCase(colon === -1 ? text : text.slice(0, colon));
  if (!NAME.test(name) && !ADDRESS_V6.test(name)) return undefined;
  if (colon === -1) return { name, port: undefined };
  const port = parsePort(text.slice(colon + 1));
  return port === undefined ? undefined : { name, port };
}

function parsePort(digits: string): number | undefined {
  if (!/^[1-9][0-9]{0,4}$/.test(digits)) return undefined;
  const port = Number(digits);
  return port <= 65_535 ? port : undefined;
}

/** Only ASCII: some other letters have an ASCII letter as their lower case, and must not match a name. */
const asciiLowerCase = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

export const defaultPort = (scheme: Scheme): number => (scheme === "https" ? 443 : 80);

/** Parses a configured name. With a port it matches that port only, otherwise the port of the listener, or none. */
export function configuredName(text: string): Authority {
  const authority = parseAuthority(text);
  if (authority !== undefined) return authority;
  throw new ControlError("invalid", `"${text.slice(0, HOST_CHARS_MAX)}" is not a host name this server can have.`, {
    hint: 'Use a host name or an IP address as in a URL: "belay.example.com", optionally with ":8443".',
  });
}

/**
 * The names of one server. Over TCP the port must match, too. Behind a private socket and in a host's framework the
 * public port is unknown, so any port matches: checking the name is enough against DNS rebinding.
 */
export class Hosts {
  readonly #names: readonly Authority[];
  readonly #served: Served[] = [];

  constructor(names: readonly string[]) {
    this.#names = names.map(configuredName);
  }

  /** Registers an open TCP listener. Before the first one, no name matches over TCP. */
  serves(served: Served): void {
    this.#served.push(served);
  }

  /** Returns the origin of this server under the name of a `Host` header, or undefined if it is another server's. */
  originOf(header: string | undefined, via: "tcp" | "socket" | "fetch"): string | undefined {
    const requested = header === undefined ? undefined : parseAuthority(header);
    if (requested === undefined) return undefined;
    return via === "tcp" ? this.#originOverTcp(requested) : this.#originElsewhere(requested);
  }

  #originOverTcp(requested: Authority): string | undefined {
    for (const served of this.#served) {
      const port = requested.port ?? defaultPort(served.scheme);
      const isLocal = LOOPBACK.has(requested.name) && port === served.port;
      if (isLocal || this.#isConfigured(requested, served)) return origin(served.scheme, requested);
    }
    return undefined;
  }

  /** A browser comes through a proxy with TLS, or from the same machine without. Any other name must be configured. */
  #originElsewhere(requested: Authority): string | undefined {
    if (LOOPBACK.has(requested.name)) return origin("http", requested);
    const known = this.#names.some(
      ({ name, port }) => name === requested.name && (port === undefined || port === requested.port),
    );
    return known ? origin("https", requested) : undefined;
  }

  #isConfigured(requested: Authority, served: Served): boolean {
    return this.#names.some(({ name, port }) => {
      if (name !== requested.name) return false;
      if (port !== undefined) return port === (requested.port ?? defaultPort(served.scheme));
      return requested.port === undefined || requested.port === served.port;
    });
  }
}

/** Formats an origin as browsers do: without the default port. */
const origin = (scheme: Scheme, { name, port }: Authority): string =>
  port === undefined || port === defaultPort(scheme) ? `${scheme}://${name}` : `${scheme}://${name}:${port}`;
