// Tokens that a function of the host verifies, synchronously or asynchronously. A faulty function admits no request.
//
// Invariants
// 1. An error, a rejection or a result that is not an actor denies the request.
// 2. Each request is verified again. Only streams use the last result, and refresh it in the background.
import type { Actor, HttpRequest } from "../transport/http-exchange.ts";
import { NO_ACTOR, TOKEN_SCOPES, type TokenScope } from "../transport/http-exchange.ts";
import { authorizationOf, bearerOf } from "./guard-headers.ts";

/** The actor that the host's function returns for a token. */
export interface VerifiedActor {
  readonly name: string;
  readonly scopes: Iterable<TokenScope>;
  readonly tenant?: string | undefined;
}

/** Returns the actor of a token. Undefined, null or an error denies the request. */
export type Verify = (token: string) => Verified | Promise<Verified>;
type Verified = VerifiedActor | undefined | null;

/** Results that are cached for streams (LRU). */
const CACHED_MAX = 1_024;

export class HostTokens {
  readonly #verify: Verify;
  readonly #onError: (error: unknown) => void;
  readonly #last = new Map<string, Actor | undefined>();

  constructor(verify: Verify, onError: (error: unknown) => void) {
    this.#verify = verify;
    this.#onError = onError;
  }

  /** Must be called for each request before it is handled. Returns a promise only if the host's function does. */
  prepare(request: HttpRequest): Promise<void> | undefined {
    const header = authorizationOf(request);
    const secret = header === undefined ? undefined : bearerOf(header);
    return secret === undefined || request.actor !== undefined ? undefined : this.#request(secret);
  }

  /** Returns the last result for this token. */
  verify(secret: string): Actor | undefined {
    const known = this.#last.has(secret);
    const actor = this.#last.get(secret);
    if (!known) void this.#request(secret);
    return known ? actor : this.#last.get(secret);
  }

  /** Returns the last result for the token of an open stream, and refreshes it in the background. */
  again(secret: string): Actor | undefined {
    const actor = this.verify(secret);
    void this.#request(secret);
    return actor;
  }

  #request(secret: string): Promise<void> | undefined {
    try {
      const verified = this.#verify(secret);
      if (!isPromise(verified)) return void this.#keep(secret, checkedActor(verified));
      return Promise.resolve(verified)
        .then(checkedActor)
        .then(
          (actor) => this.#keep(secret, actor),
          (error: unknown) => this.#refuse(secret, error),
        );
    } catch (error) {
      this.#refuse(secret, error);
      return undefined;
    }
  }

  #keep(secret: string, actor: Actor | undefined): void {
    this.#last.delete(secret);
    this.#last.set(secret, actor);
    const [oldest] = this.#last.keys();
    if (this.#last.size > CACHED_MAX && oldest !== undefined) this.#last.delete(oldest);
  }

  #refuse(secret: string, error: unknown): void {
    this.#keep(secret, undefined);
    this.#onError(error);
  }
}

const isPromise = (value: Verified | Promise<Verified>): value is Promise<Verified> =>
  typeof value === "object" && value !== null && "then" in value;

const TENANT = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** Checks an actor from the host. Undefined or null is no actor; anything else that is not one throws a TypeError. */
export function checkedActor(given: unknown): Actor | undefined {
  if (given === undefined || given === null) return undefined;
  const { name, scopes, tenant } = given as Partial<VerifiedActor>;
  if (typeof name !== "string" || name === "") throw new TypeError("An actor must have a `name`.");
  if (name === NO_ACTOR) throw new TypeError(`"${NO_ACTOR}" is reserved for requests without a valid token.`);
  if (typeof scopes === "string" || typeof scopes?.[Symbol.iterator] !== "function") {
    throw new TypeError("An actor must have `scopes`: a list or a set.");
  }
  const checked = new Set(scopes);
  for (const scope of checked) {
    if (!TOKEN_SCOPES.includes(scope)) throw new TypeError(`There is no scope ${JSON.stringify(scope)}.`);
  }
  if (tenant !== undefined && (typeof tenant !== "string" || !TENANT.test(tenant))) {
    throw new TypeError("The `tenant` of an actor must be 1 to 32 lower-case letters, digits and hyphens.");
  }
  return { name, scopes: checked, tenant };
}
