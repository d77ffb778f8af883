// Who may pass. Asked twice for every request: before anybody looks where it goes, and once that is known.
//
// Invariants
// 1. Nothing is trusted because of where it comes from: a proxy, a browser and a stranger all look like 127.0.0.1.
// 2. A valid token that may cancel gets its cancel through: neither a lockout nor a full bucket refuses it.
// 3. Nothing here awaits, so requests are admitted in the order in which they came.
import type { Clock } from "../../ports/clock.ts";
import { MUTATIONS_BURST, MUTATIONS_PER_SECOND, STREAM_RETRY_S, STREAMS_PER_TOKEN_MAX } from "../limits.ts";
import {
  type Actor,
  type HttpAnswer,
  type HttpRequest,
  NO_ACTOR,
  TOKEN_SCOPES,
  type TokenScope,
} from "../transport/http-exchange.ts";
import { Denial } from "./guard-denial.ts";
import { authorizationOf, bearerOf, hasNoBody, isJson, namedSecret } from "./guard-headers.ts";
import { Hosts, type Served } from "./host.ts";
import { Lockout } from "./lockout.ts";
import { configuredOrigins, standingOf } from "./origin.ts";
import { Holdings, Rates } from "./rate.ts";

/** What a route asks of whoever takes it. */
export interface Needs {
  readonly scope: TokenScope | "public";
  /** Whether it changes anything: then it needs JSON, and counts against the token's rate. */
  readonly mutation: boolean;
  /** Only for tokens of the whole house, not for those of a tenant. */
  readonly house?: true | undefined;
  /** It stops something, so the rate does not apply to it. */
  readonly stop?: true | undefined;
}

/** What becomes of a request before its route is known. */
export type FrontCheck =
  /** Goes on. `headers` belong to its answer, whatever that is: a configured origin may read it. */
  | { readonly kind: "passed"; readonly headers: Readonly<Record<string, string>> }
  /** Was a question about what is allowed (OPTIONS), and this is the answer. */
  | { readonly kind: "answered"; readonly answer: HttpAnswer }
  | { readonly kind: "denied"; readonly denial: Denial };

export type Admission =
  | { readonly kind: "admitted"; readonly actor: Actor }
  /** The actor, if its token was good and only something else was not: for the audit trail. */
  | { readonly kind: "denied"; readonly denial: Denial; readonly actor: Actor | undefined };

export type StreamPass =
  /** To be called once, when the stream has ended; further calls change nothing. */
  { readonly kind: "opened"; readonly release: () => void } | { readonly kind: "denied"; readonly denial: Denial };

/** What the server's handler asks. `Guard` is the real one. */
export interface Gatekeeper {
  front(request: HttpRequest): FrontCheck;
  admit(request: HttpRequest, needs: Needs): Admission;
  stream(actor: Actor): StreamPass;
  /** One change more, where not every request is one: refused if there were too many. */
  change(actor: Actor): Denial | undefined;
  /** Whether whoever was let in as this actor would still be. */
  still(request: HttpRequest, actor: Actor): boolean;
}

export interface GuardOptions {
  /** Whose token this is; undefined if nobody's. `Tokens` is the real one. */
  readonly tokens: {
    verify(secret: string): Actor | undefined;
    /** The same for whoever was let in before. Default `verify`. */
    again?(secret: string): Actor | undefined;
  };
  readonly clock: Clock;
  /** Names of this server besides those of the loopback: `belay.example.com`. */
  readonly names?: readonly string[];
  /** Pages of other servers that may ask, each exactly as a browser writes its origin. */
  readonly origins?: readonly string[];
  readonly mutationsPerSecond?: number;
  readonly mutationsBurst?: number;
  readonly streamsPerToken?: number;
}

const ALL_SCOPES: ReadonlySet<TokenScope> = new Set(TOKEN_SCOPES);

/** Whoever may open the private socket is whoever could read the token beside it. */
const LOCAL: Actor = { name: "local", scopes: ALL_SCOPES, tenant: undefined };

/** Who asks where nobody is asked for. May do nothing, in a tenant that no token can have. */
const NOBODY: Actor = { name: NO_ACTOR, scopes: new Set(), tenant: "-" };

const NO_HEADERS: Readonly<Record<string, string>> = {};
const PASSED: FrontCheck = { kind: "passed", headers: NO_HEADERS };

export class Guard implements Gatekeeper {
  readonly #tokens: GuardOptions["tokens"];
  readonly #hosts: Hosts;
  readonly #origins: ReadonlySet<string>;
  readonly #lockout: Lockout;
  readonly #rates: Rates;
  readonly #streams: Holdings;

  constructor(options: GuardOptions) {
    this.#tokens = options.tokens;
    this.#hosts = new Hosts(options.names ?? []);
    this.#origins = configuredOrigins(options.origins ?? []);
    this.#lockout = new Lockout(options.clock);
    this.#rates = new Rates(options.clock, {
      perSecond: options.mutationsPerSecond ?? MUTATIONS_PER_SECOND,
      burst: options.mutationsBurst ?? MUTATIONS_BURST,
    });
    this.#streams = new Holdings(options.streamsPerToken ?? STREAMS_PER_TOKEN_MAX);
  }

  /** A listener on TCP was opened: its port is part of our names. Before that, every request over TCP is refused. */
  serves(served: Served): void {
    this.#hosts.serves(served);
  }

  front(request: HttpRequest): FrontCheck {
    const own = this.#hosts.originOf(request.header("host"), request.via);
    if (own === undefined) return denied(wrongHost());
    const origin = request.header("origin");
    const standing = standingOf({ origin, fetchSite: request.header("sec-fetch-site") }, own, this.#origins);
    if (standing === "foreign-origin" || standing === "foreign-site") return denied(wrongOrigin(standing));
    const cors = standing === "configured" && origin !== undefined ? readableBy(origin) : undefined;
    if (request.method === "OPTIONS") return options(request, cors);
    const secret = namedSecret(request.query);
    if (secret !== undefined) return denied(secretInQuery(secret));
    return cors === undefined ? PASSED : { kind: "passed", headers: cors };
  }

  admit(request: HttpRequest, needs: Needs): Admission {
    const actor = needs.scope === "public" ? NOBODY : this.#actorOf(request);
    if (actor instanceof Denial) return { kind: "denied", denial: actor, actor: undefined };
    const denial = this.#refusal(request, needs, actor);
    return denial === undefined ? { kind: "admitted", actor } : { kind: "denied", denial, actor };
  }

  stream(actor: Actor): StreamPass {
    const release = this.#streams.take(actor.name);
    if (release !== undefined) return { kind: "opened", release };
    const denial = new Denial(429, "overloaded", `"${actor.name}" has as many event streams open as one token may.`, {
      hint: "Close streams that nobody reads any more, or give each program a token of its own.",
      headers: { "retry-after": String(STREAM_RETRY_S) },
    });
    return { kind: "denied", denial };
  }

  change(actor: Actor): Denial | undefined {
    const waitMs = this.#rates.take(actor.name);
    return waitMs === undefined ? undefined : tooFast(waitMs);
  }

  /** Less than before counts as no: they ask again, and are looked at anew. Not a guess, so no lockout comes of it. */
  still(request: HttpRequest, { name, tenant, scopes }: Actor): boolean {
    // Whom the host has let in stays until the host ends the request.
    if (request.actor !== undefined) return true;
    const header = authorizationOf(request);
    if (header === undefined) return request.via === "socket";
    const secret = bearerOf(header);
    const { again = this.#tokens.verify } = this.#tokens;
    const now = secret === undefined ? undefined : again.call(this.#tokens, secret);
    return now?.name === name && now.tenant === tenant && [...scopes].every((scope) => now.scopes.has(scope));
  }

  #actorOf(request: HttpRequest): Actor | Denial {
    if (request.actor !== undefined) return request.actor;
    const header = authorizationOf(request);
    // Not sending a token is no guess.
    if (header === undefined) return request.via === "socket" ? LOCAL : unauthenticated("This needs a token.");
    const secret = bearerOf(header);
    const actor = secret === undefined ? undefined : this.#tokens.verify(secret);
    if (actor !== undefined) return actor;
    const lockedMs = this.#lockout.failed();
    return lockedMs === undefined ? unauthenticated("This token is not valid.") : lockedOut(lockedMs);
  }

  #refusal(request: HttpRequest, needs: Needs, actor: Actor): Denial | undefined {
    if (needs.scope !== "public" && !actor.scopes.has(needs.scope) && !actor.scopes.has("admin")) {
      return new Denial(
        403,
        "forbidden",
        `This needs the scope "${needs.scope}", which "${actor.name}" does not have.`,
      );
    }
    if (needs.house === true && actor.tenant !== undefined && actor !== NOBODY) {
      return new Denial(403, "forbidden", "This concerns the whole server, and the token is for one tenant.");
    }
    if (!needs.mutation) return undefined;
    if (!isJson(request) && !(needs.stop === true && hasNoBody(request))) return notJson();
    // A stop always gets through, and takes nothing from the bucket: whoever prompts too fast can still stop.
    if (needs.stop === true) return undefined;
    return this.change(actor);
  }
}

const denied = (denial: Denial): FrontCheck => ({ kind: "denied", denial });

const seconds = (ms: number): string => String(Math.max(1, Math.ceil(ms / 1000)));

/**
 * For a page of a configured origin. Never `*`, and never with credentials: there are no cookies to send along.
 */
const readableBy = (origin: string): Readonly<Record<string, string>> => ({
  "access-control-allow-origin": origin,
  "access-control-expose-headers": "x-request-id, retry-after, acp-connection-id",
  // Our answers let no other origin in by default; for this one, that is lifted.
  "cross-origin-resource-policy": "cross-origin",
  vary: "Origin",
});

/** No question about what is allowed reaches a route, so none has an effect. */
function options(request: HttpRequest, cors: Readonly<Record<string, string>> | undefined): FrontCheck {
  if (request.header("access-control-request-method") === undefined) {
    return { kind: "answered", answer: { status: 204, headers: { ...cors, allow: METHODS }, body: undefined } };
  }
  // A page on a public network asks whether it may reach into a private one. It may not, whoever it is.
  if (cors === undefined || request.header("access-control-request-private-network") !== undefined) {
    return denied(wrongOrigin("foreign-origin"));
  }
  const headers = {
    ...cors,
    "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
    "access-control-allow-headers":
      "authorization, content-type, idempotency-key, last-event-id, acp-connection-id, acp-session-id",
    "access-control-max-age": "600",
  };
  return { kind: "answered", answer: { status: 204, headers, body: undefined } };
}

const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

const wrongHost = (): Denial =>
  new Denial(421, "forbidden", "The Host header does not name this server.", {
    hint: "Use 127.0.0.1, [::1] or localhost with the server's port, or configure the name it is reached by.",
  });

const wrongOrigin = (standing: "foreign-origin" | "foreign-site"): Denial =>
  new Denial(403, "forbidden", "This request comes from a web page that may not ask this server.", {
    hint:
      standing === "foreign-origin"
        ? "If the page is yours, configure its exact origin."
        : "A browser says that another site caused this request (Sec-Fetch-Site). Open it from its own origin.",
  });

const secretInQuery = (name: string): Denial =>
  new Denial(400, "invalid", `A token does not belong into an address, and this one has "${name}".`, {
    hint: "Send it as `Authorization: Bearer …`. Addresses end up in logs: rotate a token that was in one.",
  });

const unauthenticated = (message: string): Denial =>
  new Denial(401, "unauthenticated", message, { headers: { "www-authenticate": "Bearer" } });

const lockedOut = (ms: number): Denial =>
  new Denial(429, "unauthenticated", "There were too many wrong tokens, and this one is not valid either.", {
    hint: "Wait before you try another one. A valid token is let through at any time.",
    headers: { "retry-after": seconds(ms), "www-authenticate": "Bearer" },
  });

const notJson = (): Denial =>
  new Denial(415, "invalid", "The body of this request is not said to be JSON.", {
    hint: "Send `Content-Type: application/json`.",
  });

const tooFast = (ms: number): Denial =>
  new Denial(429, "overloaded", "This token changes things faster than the server lets it.", {
    hint: "Wait as long as Retry-After says. Cancelling is never refused for this.",
    headers: { "retry-after": seconds(ms) },
  });
