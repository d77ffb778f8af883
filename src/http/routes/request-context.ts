// What an actor's request means for the control: within which tenant, by whom, under which key.
import type { TenantScope } from "../../ports/control.ts";
import { Denial } from "../auth/guard-denial.ts";
import type { Actor, TokenScope } from "../transport/http-exchange.ts";

/** A reason as people send it. */
export type ReasonGiven = string | { readonly kind: "user" | "policy"; readonly note?: string; readonly by?: string };

export const within = ({ tenant }: Actor): TenantScope => (tenant === undefined ? {} : { tenant });

export const keyed = (key: string | undefined): { readonly key?: string } => (key === undefined ? {} : { key });

/**
 * A key that names a session is its asker's own: two programs that count from 1 do not meet in one. The operator's own
 * programs are one asker, and so is the command line without a server.
 */
export const ownKeyed = (actor: Actor, key: string | undefined): { readonly key?: string; readonly keyOf?: string } =>
  key === undefined ? {} : { key, ...ownKeys(actor) };

/** Whose keys the actor's requests name. */
export const ownKeys = ({ name }: Actor): { readonly keyOf?: string } => (name === LOCAL_NAME ? {} : { keyOf: name });

/** What the token is called that belongs to this user of this machine. */
const LOCAL_NAME = "local";

/** Throws unless the actor may do this too, beyond what its route asks for. */
export function requireScope({ name, scopes }: Actor, scope: TokenScope, what: string): void {
  if (scopes.has(scope) || scopes.has("admin")) return;
  throw new Denial(403, "forbidden", `${what} needs the scope "${scope}", which "${name}" does not have.`);
}

/** A reason that does not say whose it is, is the actor's. One of a policy is nobody's. */
export function reasonBy(actor: Actor, given: ReasonGiven | undefined): Exclude<ReasonGiven, string> {
  if (given === undefined) return { kind: "user", by: actor.name };
  if (typeof given === "string") return { kind: "user", note: given, by: actor.name };
  return given.kind === "policy" ? given : { by: actor.name, ...given };
}
