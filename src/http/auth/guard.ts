// Authenticates and authorizes requests, in two steps: before the route is known, and with the route's requirements.
//
// Invariants
// 1. No request is trusted because of its address: a proxy, a browser and an attacker all appear as 127.0.0.1.
// 2. A cancel with a valid token that may cancel is always admitted: neither a lockout nor the rate limit refuses it.
// 3. The guard never awaits, so requests are admitted in the order in which they arrive.
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
import { configuredOrigins, pageSource } from "./origin.ts";
import { ConcurrencyLimits, Lockout, RateLimits } from "./rate.ts";

/** The requirements of a route. */
export interface Requirements {
  readonly scope: TokenScope | "public";
  /** It changes something: then it must have a JSON body, and counts against the token's rate limit. */
  readonly mutation: boolean;
  /** Only for tokens of the whole server, not for those of a tenant. */
  readonly serverWide?: true | undefined;
  /** It stops something, so it is exempt from the rate limit. */
  readonly stop?: true | undefined;
}

/** The result of the checks before the route is known. */
export type FrontCheck =
  /** The request continues. `headers` must be added to any response: a configured origin may read it. */
  | { readonly kind: "passed"; readonly headers: Readonly<Record<string, string>> }
  /** It was an OPTIONS request, and this is the response. */
  | { readonly kind: "answered"; readonly answer: HttpAnswer }
  | { readonly kind: "denied"; readonly denial: Denial };

export type Admission =
  | { readonly kind: "admitted"; readonly actor: Actor }
  /** The actor is set if its token is valid and the request was denied for another reason. For the audit trail. */
  | { readonly kind: "denied"; readonly denial: Denial; readonly actor: Actor | undefined };

export type StreamPass =
  /** `release` must be called when the stream has ended; further calls have no effect. */
  { readonly kind: "opened"; readonly release: () => void } | { readonly kind: "denied"; readonly denial: Denial };

/** The checks that the server runs on requests. Implemented by `Guard`. */
export interface Gatekeeper {
  front(request: HttpRequest): FrontCheck;
  admit(request: HttpRequest, requirements: Requirements): Admission;
  stream(actor: Actor): StreamPass;
  /** Counts one change against the actor's rate limit, for transports where one request can carry several. */
  change(actor: Actor): Denial | undefined;
  /** Whether a request that was admitted as this actor would still be admitted. */
  isStillAdmitted(request: HttpRequest, actor: Actor): boolean;
}

export interface GuardOptions {
  /** Verifies tokens. Returns undefined for an invalid token. Implemented by `Tokens`. */
  readonly tokens: {
    verify(secret: string): Actor | undefined;
    /** Verifies the token of an open stream again. Default `verify`. */
    again?(secret: string): Actor | undefined;
  };
  readonly clock: Clock;
  /** Names of this server besides those of the loopback: `belay.example.com`. */
  readonly names?: readonly string[];
  /** Origins whose pages may call this server (CORS), each exactly as a browser sends it. */
  readonly origins?: readonly string[];
  readonly mutationsPerSecond?: number;
  readonly mutationsBurst?: number;
  readonly streamsPerToken?: number;
}

const ALL_SCOPES: ReadonlySet<TokenScope> = new Set(TOKEN_SCOPES);

/** The actor of requests on the private socket: a user who may open it could also read the token beside it. */
const LOCAL: Actor = { name: "local", scopes: ALL_SCOPES, tenant: undefined };

/** The actor of public routes. It has no scopes, and a tenant that no token can have. */
const ANONYMOUS: Actor = { name: NO_ACTOR, scopes: new Set(), tenant: "-" };

const NO_HEADERS: Readonly<Record<string, string>> = {};
const PASSED: FrontCheck = { kind: "passed", headers: NO_HEADERS };

export class Guard implements Gatekeeper {
  readonly #tokens: GuardOptions["tokens"];
  readonly #hosts: Hosts;
  readonly #origins: ReadonlySet<string>;
  readonly #lockout: Lockout;
  readonly #rates: RateLimits;
  readonly #streams: ConcurrencyLimits;

  constructor(options: GuardOptions) {
    this.#tokens = options.tokens;
    this.#hosts = new Hosts(options.names ?? []);
    this.#origins = configuredOrigins(options.origins ?? []);
    this.#lockout = new Lockout(options.clock);
    this.#rates = new RateLimits(options.clock, {
      perSecond: options.mutationsPerSecond ?? MUTATIONS_PER_SECOND,
      burst: options.mutationsBurst ?? MUTATIONS_BURST,
    });
    this.#streams = new ConcurrencyLimits(options.streamsPerToken ?? STREAMS_PER_TOKEN_MAX);
  }

  /** Registers an open TCP listener, whose port is part of the server's names. Before, every TCP request is denied. */
  serves(served: Served): void {
    this.#hosts.serves(served);
  }

  front(request: HttpRequest): FrontCheck {
    const own = this.#hosts.originOf(request.header("host"), request.via);
    if (own === undefined) return deny(wrongHost());
    const origin = request.header("origin");
    const source = pageSource({ origin, fetchSite: request.header("sec-fetch-site") }, own, this.#origins);
    if (source === "foreign-origin" || source === "foreign-site") return deny(wrongOrigin(source));
    const cors = source === "configured" && origin !== undefined ? corsHeaders(origin) : undefined;
    if (request.method === "OPTIONS") return options(request, cors);
    const secret = namedSecret(request.query);
    if (secret !== undefined) return deny(secretInQuery(secret));
    return cors === undefined ? PASSED : { kind: "passed", headers: cors };
  }

  admit(request: HttpRequest, requirements: Requirements): Admission {
    const actor = requirements.scope === "public" ? ANONYMOUS : this.#actorOf(request);
    if (actor instanceof Denial) return { kind: "denied", denial: actor, actor: undefined };
    const denial = this.#denialOf(request, requirements, actor);
    return denial === undefined ? { kind: "admitted", actor } : { kind: "denied", denial, actor };
  }

  stream(actor: Actor): StreamPass {
    const release = this.#streams.take(actor.name);
    if (release !== undefined) return { kind: "opened", release };
    const denial = new Denial(429, "overloaded", `"${actor.name}" has the maximum number of open event streams.`, {
      hint: "Close unused streams, or give each program its own token.",
      headers: { "retry-after": String(STREAM_RETRY_S) },
    });
    return { kind: "denied", denial };
  }

  change(actor: Actor): Denial | undefined {
    const waitMs = this.#rates.take(actor.name);
    return waitMs === undefined ? undefined : rateLimited(waitMs);
  }

  /** An actor with fewer scopes than before is not admitted: it must send a new request. Does not count as a guess. */
  isStillAdmitted(request: HttpRequest, { name, tenant, scopes }: Actor): boolean {
    // An actor that the host has set is valid until the host ends the request.
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
    // A request without a token does not count as a guess.
    if (header === undefined) return request.via === "socket" ? LOCAL : unauthenticated("This needs a token.");
    const secret = bearerOf(header);
    const actor = secret === undefined ? undefined : this.#tokens.verify(secret);
    if (actor !== undefined) return actor;
    const lockedMs = this.#lockout.failed();
    return lockedMs === undefined ? unauthenticated("This token is not valid.") : lockedOut(lockedMs);
  }

  #denialOf(
    request: HttpRequest,
    { scope, mutation, serverWide, stop }: Requirements,
    actor: Actor,
  ): Denial | undefined {
    if (scope !== "public" && !actor.scopes.has(scope) && !actor.scopes.has("admin")) {
      return new Denial(403, "forbidden", `This needs the scope "${scope}", which "${actor.name}" does not have.`);
    }
    if (serverWide === true && actor.tenant !== undefined && actor !== ANONYMOUS) {
      return new Denial(403, "forbidden", "This concerns the whole server, but the token is for one tenant.");
    }
    if (!mutation) return undefined;
    if (!isJson(request) && !(stop === true && hasNoBody(request))) return notJson();
    // A stop is always admitted and does not count: a client that prompts too fast can still stop.
    if (stop === true) return undefined;
    return this.change(actor);
  }
}

const deny = (denial: Denial): FrontCheck => ({ kind: "denied", denial });

const seconds = (ms: number): string => String(Math.max(1, Math.ceil(ms / 1000)));

/** The CORS headers for a page of a configured origin. Never `*`, and never with credentials: there are no cookies. */
const corsHeaders = (origin: string): Readonly<Record<string, string>> => ({
  "access-control-allow-origin": origin,
  "access-control-expose-headers": "x-request-id, retry-after, acp-connection-id",
  // Responses are readable by the same origin only; this lifts it for the configured origin.
  "cross-origin-resource-policy": "cross-origin",
  vary: "Origin",
});

/** Answers an OPTIONS request. It never reaches a route, so it has no effect. */
function options(request: HttpRequest, cors: Readonly<Record<string, string>> | undefined): FrontCheck {
  if (request.header("access-control-request-method") === undefined) {
    return { kind: "answered", answer: { status: 204, headers: { ...cors, allow: METHODS }, body: undefined } };
  }
  // A page on a public network may not access a private network, whatever its origin.
  if (cors === undefined || request.header("access-control-request-private-network") !== undefined) {
    return deny(wrongOrigin("foreign-origin"));
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
    hint: "Use 127.0.0.1, [::1] or localhost with the server's port, or configure the host name of the server.",
  });

const wrongOrigin = (source: "foreign-origin" | "foreign-site"): Denial =>
  new Denial(403, "forbidden", "This request comes from a web page that may not call this server.", {
    hint:
      source === "foreign-origin"
        ? "If the page is yours, configure its exact origin."
        : "The browser reports that another site caused this request (Sec-Fetch-Site). Open it from its own origin.",
  });

const secretInQuery = (name: string): Denial =>
  new Denial(400, "invalid", `Do not send tokens in the URL (found query parameter "${name}").`, {
    hint: "Send it as `Authorization: Bearer …`. URLs are logged: rotate a token that was in one.",
  });

const unauthenticated = (message: string): Denial =>
  new Denial(401, "unauthenticated", message, { headers: { "www-authenticate": "Bearer" } });

const lockedOut = (ms: number): Denial =>
  new Denial(429, "unauthenticated", "There were too many invalid tokens, and this one is not valid either.", {
    hint: "Wait before you try another one. A valid token is accepted at any time.",
    headers: { "retry-after": seconds(ms), "www-authenticate": "Bearer" },
  });

const notJson = (): Denial =>
  new Denial(415, "invalid", "Content-Type must be application/json.", {
    hint: "Send `Content-Type: application/json`.",
  });

const rateLimited = (ms: number): Denial =>
  new Denial(429, "overloaded", "This token has exceeded its rate limit for changes.", {
    hint: "Wait as long as Retry-After says. The rate limit does not apply to cancels.",
    headers: { "retry-after": seconds(ms) },
  });
