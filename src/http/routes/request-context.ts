// Converts the actor and the key of a request into options of the control: tenant, idempotency key, reason.
import type { TenantScope } from "../../ports/control.ts";
import { Denial } from "../auth/guard-denial.ts";
import type { Actor, TokenScope } from "../transport/http-exchange.ts";

/** A reason in a request. */
export type ReasonGiven = string | { readonly kind: "user" | "policy"; readonly note?: string; readonly by?: string };

export const within = ({ tenant }: Actor): TenantScope => (tenant === undefined ? {} : { tenant });

export const keyed = (key: string | undefined): { readonly key?: string } => (key === undefined ? {} : { key });

/**
 * The key of a new session, which belongs to its actor: two programs that both count from 1 do not share a session. The
 * local token and the command line without a server share one key space.
 */
export const ownKeyed = (actor: Actor, key: string | undefined): { readonly key?: string; readonly keyOf?: string } =>
  key === undefined ? {} : { key, ...ownKeys(actor) };

/** The owner of the keys in the actor's requests. */
export const ownKeys = ({ name }: Actor): { readonly keyOf?: string } => (name === LOCAL_NAME ? {} : { keyOf: name });

/** The name of the token for the local user. */
const LOCAL_NAME = "local";

/** Throws unless the actor has an additional scope that the route alone does not require. */
export function requireScope({ name, scopes }: Actor, scope: TokenScope, what: string): void {
  if (scopes.has(scope) || scopes.has("admin")) return;
  throw new Denial(403, "forbidden", `${what} needs the scope "${scope}", which "${name}" does not have.`);
}

/** The reason with `by` set to the actor, unless the request sets it. The reason of a policy has no `by`. */
export function reasonBy(actor: Actor, given: ReasonGiven | undefined): Exclude<ReasonGiven, string> {
  if (given === undefined) return { kind: "user", by: actor.name };
  if (typeof given === "string") return { kind: "user", note: given, by: actor.name };
  return given.kind === "policy" ? given : { by: actor.name, ...given };
}
