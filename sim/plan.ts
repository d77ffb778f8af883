// What a simulated call is like. It can be read off its input, so that a later life can carry out what an earlier one
// has asked for.
import type { Json } from "../src/core/model/prompt.ts";
import type { CallRequest, Execute, Slots } from "../src/ports/agent.ts";

/** `approval`: people have an hour. `hasty`: they have four seconds. `deaf`: it is not told to stop. */
export type Trait = "approval" | "hasty" | "idempotent" | "deaf" | "slot" | "limited";

export interface Plan {
  readonly name: string;
  readonly input: Json;
  readonly traits: readonly Trait[];
}

/** Deadlines and limits that a schedule can live to see. */
export const HASTY_MS = 4_000;
export const LIMIT_MS = 3_000;

/** A call that the end of a turn asks for. No two are alike. */
export function planOf(number: number, traits: readonly Trait[]): Plan {
  return { name: number % 2 === 0 ? "read" : "write", input: { number, traits: [...traits] }, traits };
}

/** The plan of a call that the log has. */
export function planAgain({ name, input }: { readonly name: string; readonly input: Json }): Plan {
  return { name, input, traits: traitsIn(input) };
}

/** Also of an input that a hook has put something else in place of. */
export function traitsIn(input: Json): readonly Trait[] {
  if (typeof input !== "object" || input === null) return [];
  if ("instead" in input) return traitsIn(input.instead ?? null);
  // Decoded from what `planOf` has written.
  return "traits" in input ? (input.traits as readonly Trait[]) : [];
}

export const needsApproval = ({ traits }: Plan): boolean => traits.includes("approval") || traits.includes("hasty");

/** What an approval for the whole session would cover: one kind goes by its name, the other by what it touches. */
export const scopeOf = ({ name, traits }: Plan): string => (traits.includes("hasty") ? "files" : name);

export function requestOf(plan: Plan, execute: Execute, slots: Slots): CallRequest {
  return { name: plan.name, input: plan.input, execute, ...optionsOf(plan, slots) };
}

export function optionsOf({ traits }: Plan, slots: Slots): Omit<CallRequest, "name" | "input" | "execute"> {
  const approval = traits.includes("hasty") ? { scope: "files", deadlineMs: HASTY_MS } : traits.includes("approval");
  return {
    ...(traits.includes("idempotent") ? { idempotent: true } : {}),
    ...(traits.includes("deaf") ? { interruptible: false } : {}),
    ...(traits.includes("slot") ? { slots } : {}),
    ...(traits.includes("limited") ? { timeoutMs: LIMIT_MS } : {}),
    ...(approval === false ? {} : { approval }),
  };
}
