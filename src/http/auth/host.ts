// The names this server answers to. A page on the web can make its own name point to 127.0.0.1; it cannot make the
// browser send another name than its own. So whoever asks for a name that is not ours is refused before anything else.
import { ControlError } from "../../core/errors.ts";
import { HOST_CHARS_MAX } from "../limits.ts";

export type Scheme = "http" | "https";

/** What a `Host` header says: a name in lower case or an address, and the port if it is said. */
export interface Authority {
  readonly name: string;
  readonly port: number | undefined;
}

/** Where a listener is reached. */
export interface Served {
  readonly scheme: Scheme;
  readonly port: number;
}

const NAME = /^[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*$/;
const ADDRESS_V6 = /^\[[0-9a-f:.]{2,45}\]$/;
const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "[::1]", "localhost"]);

/**
 * Undefined for whatever a well-behaved client would not send: a dot at the end, a user, a path, spaces, two of them.
 * Other spellings of an address (`127.1`, `0x7f.1`, `[0:0::1]`) are names like any other, and not ours.
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

/** Some letters far from ASCII have an ASCII letter as their lower case; those must not turn into our name. */
const asciiLowerCase = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

export const defaultPort = (scheme: Scheme): number => (scheme === "https" ? 443 : 80);

/** A name in the configuration: with a port it is met by that port only, else by the port we listen on, or none. */
export function configuredName(text: string): Authority {
  const authority = parseAuthority(text);
  if (authority !== undefined) return authority;
  throw new ControlError("invalid", `"${text.slice(0, HOST_CHARS_MAX)}" is not a host name this server can have.`, {
    hint: 'Give a name or an address as it stands in an address bar: "belay.example.com", or with ":8443".',
  });
}

/**
 * The names of one server. Over TCP our own port has to be said too.
 *
 * Behind a private socket and inside somebody's framework we do not know the port people see, so any will do there:
 * what keeps rebinding out is the name.
 */
export class Hosts {
  readonly #names: readonly Authority[];
  readonly #served: Served[] = [];

  constructor(names: readonly string[]) {
    this.#names = names.map(configuredName);
  }

  /** A listener was opened. Until then nobody is at home on TCP. */
  serves(served: Served): void {
    this.#served.push(served);
  }

  /** The origin of whoever may be asked for by this name; undefined if that is not us. */
  originOf(header: string | undefined, via: "tcp" | "socket" | "fetch"): string | undefined {
    const asked = header === undefined ? undefined : parseAuthority(header);
    if (asked === undefined) return undefined;
    return via === "tcp" ? this.#overTcp(asked) : this.#elsewhere(asked);
  }

  #overTcp(asked: Authority): string | undefined {
    for (const served of this.#served) {
      const port = asked.port ?? defaultPort(served.scheme);
      const ours = LOOPBACK.has(asked.name) && port === served.port;
      if (ours || this.#configured(asked, served)) return origin(served.scheme, asked);
    }
    return undefined;
  }

  /** A browser gets here through a proxy, with TLS, or on the machine itself, without. Anything else is configured. */
  #elsewhere(asked: Authority): string | undefined {
    if (LOOPBACK.has(asked.name)) return origin("http", asked);
    const known = this.#names.some(
      ({ name, port }) => name === asked.name && (port === undefined || port === asked.port),
    );
    return known ? origin("https", asked) : undefined;
  }

  #configured(asked: Authority, served: Served): boolean {
    return this.#names.some(({ name, port }) => {
      if (name !== asked.name) return false;
      if (port !== undefined) return port === (asked.port ?? defaultPort(served.scheme));
      return asked.port === undefined || asked.port === served.port;
    });
  }
}

/** As browsers write it: without the port that goes without saying. */
const origin = (scheme: Scheme, { name, port }: Authority): string =>
  port === undefined || port === defaultPort(scheme) ? `${scheme}://${name}` : `${scheme}://${name}:${port}`;
