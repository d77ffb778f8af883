// What an actor's request means for the control: within which tenant, by whom, under which key.
import type { Within } from "../control.ts";
import type { Actor } from "./exchange.ts";

/** A reason as people send it. */
export type ReasonGiven = string | { readonly kind: "user" | "policy"; readonly note?: string; readonly by?: string };

export const within = ({ tenant }: Actor): Within => (tenant === undefined ? {} : { tenant });

export const keyed = (key: string | undefined): { readonly key?: string } => (key === undefined ? {} : { key });

/** A reason that does not say whose it is, is the actor's. One of a policy is nobody's. */
export function reasonBy(actor: Actor, given: ReasonGiven | undefined): Exclude<ReasonGiven, string> {
  if (given === undefined) return { kind: "user", by: actor.name };
  if (typeof given === "string") return { kind: "user", note: given, by: actor.name };
  return given.kind === "policy" ? given : { by: actor.name, ...given };
}
