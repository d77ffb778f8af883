// Tokens that the host verifies itself: at once or later, well or badly. Nothing it does lets anyone in by mistake.
//
// Invariants
// 1. Whatever it throws, rejects with or answers that is no actor is a refusal.
// 2. Each request is verified anew. Only streams go by the last answer, and ask again in the background.
import type { Actor, HttpRequest } from "../transport/http-exchange.ts";
import { NO_ACTOR, TOKEN_SCOPES, type TokenScope } from "../transport/http-exchange.ts";
import { authorizationOf, bearerOf } from "./guard-headers.ts";

/** An actor as a host says who it is. */
export interface VerifiedActor {
  readonly name: string;
  readonly scopes: Iterable<TokenScope>;
  readonly tenant?: string | undefined;
}

/** Who asks with this token. Undefined, null or an error: nobody. */
export type Verify = (token: string) => Verified | Promise<Verified>;
type Verified = VerifiedActor | undefined | null;

/** Answers that are kept for streams. */
const KEPT_MAX = 1_024;

export class HostTokens {
  readonly #verify: Verify;
  readonly #refused: (error: unknown) => void;
  readonly #last = new Map<string, Actor | undefined>();

  constructor(verify: Verify, refused: (error: unknown) => void) {
    this.#verify = verify;
    this.#refused = refused;
  }

  /** To be called for each request before it is handled. A promise only where the host gives one. */
  prepare(request: HttpRequest): Promise<void> | undefined {
    const header = authorizationOf(request);
    const secret = header === undefined ? undefined : bearerOf(header);
    return secret === undefined || request.actor !== undefined ? undefined : this.#ask(secret);
  }

  /** By what the host has answered last. */
  verify(secret: string): Actor | undefined {
    const known = this.#last.has(secret);
    const actor = this.#last.get(secret);
    if (!known) void this.#ask(secret);
    return known ? actor : this.#last.get(secret);
  }

  /** The same for a stream that is open. */
  again(secret: string): Actor | undefined {
    const actor = this.verify(secret);
    void this.#ask(secret);
    return actor;
  }

  #ask(secret: string): Promise<void> | undefined {
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
    if (this.#last.size > KEPT_MAX && oldest !== undefined) this.#last.delete(oldest);
  }

  #refuse(secret: string, error: unknown): void {
    this.#keep(secret, undefined);
    this.#refused(error);
  }
}

const isPromise = (value: Verified | Promise<Verified>): value is Promise<Verified> =>
  typeof value === "object" && value !== null && "then" in value;

const TENANT = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** Throws if it is something else than an actor or nobody. */
export function checkedActor(given: unknown): Actor | undefined {
  if (given === undefined || given === null) return undefined;
  const { name, scopes, tenant } = given as Partial<VerifiedActor>;
  if (typeof name !== "string" || name === "") throw new TypeError("An actor has a `name`.");
  if (name === NO_ACTOR) throw new TypeError(`No actor is named "${NO_ACTOR}": requests without a valid token are.`);
  if (typeof scopes === "string" || typeof scopes?.[Symbol.iterator] !== "function") {
    throw new TypeError("An actor has `scopes`: a list or a set of them.");
  }
  const may = new Set(scopes);
  for (const scope of may) {
    if (!TOKEN_SCOPES.includes(scope)) throw new TypeError(`There is no scope ${JSON.stringify(scope)}.`);
  }
  if (tenant !== undefined && (typeof tenant !== "string" || !TENANT.test(tenant))) {
    throw new TypeError("The `tenant` of an actor has 1 to 32 small letters, digits and hyphens.");
  }
  return { name, scopes: may, tenant };
}
