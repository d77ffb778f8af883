// Parameters of a request, field by field. What is wrong is said with the name of the field.
import { ControlError } from "../../core/errors.ts";
import type { Json, Prompt } from "../../core/model/prompt.ts";
import { suggest } from "../../core/suggest.ts";
import type { Params } from "./message.ts";

export const invalid = (message: string, hint?: string): ControlError =>
  new ControlError("invalid", message, hint === undefined ? {} : { hint });

/** A field nobody reads is a misspelt one: what it was to do would silently not happen. */
export function rejectUnknown(params: Params, known: readonly string[], method: string): void {
  for (const name of Object.keys(params)) {
    if (known.includes(name)) continue;
    const meant = suggest(name, known);
    const shown = name.slice(0, 40);
    throw invalid(`${method} has no \`${shown}\`.`, meant === undefined ? undefined : `Did you mean \`${meant}\`?`);
  }
}

export function text(params: Params, name: string): string {
  const given = optionalText(params, name);
  if (given === undefined || given === "") throw invalid(`\`${name}\` is missing.`);
  return given;
}

export function optionalText(params: Params, name: string): string | undefined {
  const given = params[name] ?? undefined;
  if (given !== undefined && typeof given !== "string") throw invalid(`\`${name}\` is a string.`);
  return given;
}

/** The first of several names that is given and not empty. */
export function textOfOne(params: Params, names: readonly string[]): string {
  const name = names.find((one) => (params[one] ?? "") !== "");
  if (name === undefined) throw invalid(`\`${names[0]}\` is missing.`);
  return text(params, name);
}

export function optionalWhole(params: Params, name: string, max: number): number | undefined {
  const given = params[name] ?? undefined;
  if (given === undefined) return undefined;
  if (typeof given !== "number" || !Number.isInteger(given) || given < 0 || given > max) {
    throw invalid(`\`${name}\` is a whole number from 0 to ${max}.`);
  }
  return given;
}

export function optionalChoice<const C extends string>(
  params: Params,
  name: string,
  choices: readonly C[],
): C | undefined {
  const given = params[name] ?? undefined;
  if (given === undefined) return undefined;
  const chosen = choices.find((one) => one === given);
  if (chosen === undefined) throw invalid(`\`${name}\` is one of ${choices.map((one) => `"${one}"`).join(", ")}.`);
  return chosen;
}

export function promptOf(params: Params): string | Prompt {
  const given = params.prompt ?? undefined;
  if (typeof given === "string") return given;
  if (!isObject(given) || typeof given.text !== "string") {
    throw invalid("`prompt` is a string, or an object with `text`.");
  }
  const { text: said, data, ...rest } = given;
  rejectUnknown(rest, ["text", "data"], "A prompt");
  return data === undefined ? { text: said } : { text: said, data };
}

export type Reason = string | { readonly kind: "user" | "policy"; readonly note?: string; readonly by?: string };

export function optionalReason(params: Params): Reason | undefined {
  const given = params.reason ?? undefined;
  if (given === undefined || typeof given === "string") return given;
  if (!isObject(given)) throw invalid("`reason` is a string, or an object with `kind`.");
  const kind = optionalChoice(given, "kind", ["user", "policy"]) ?? "user";
  return { kind, ...defined({ note: optionalText(given, "note"), by: optionalText(given, "by") }) };
}

/** Without the fields that were not given: an option that is undefined is not the same as none. */
export function defined<F extends Readonly<Record<string, unknown>>>(fields: F): Defined<F> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<F>;
}

type Defined<F> = { readonly [K in keyof F]?: Exclude<F[K], undefined> };

export const isObject = (value: Json | undefined): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);
