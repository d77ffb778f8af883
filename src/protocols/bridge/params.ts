// Checks of request parameters. Errors name the field.
import { ControlError } from "../../core/errors.ts";
import type { Json, Prompt } from "../../core/model/prompt.ts";
import { suggest } from "../../core/suggest.ts";
import type { Params } from "./message.ts";

export const invalid = (message: string, hint?: string): ControlError =>
  new ControlError("invalid", message, hint === undefined ? {} : { hint });

/** Rejects unknown fields: a misspelled field would silently have no effect. */
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
  if (given !== undefined && typeof given !== "string") throw invalid(`\`${name}\` must be a string.`);
  return given;
}

/** The first of several fields that is present and not empty. */
export function textOfOne(params: Params, names: readonly string[]): string {
  const name = names.find((one) => (params[one] ?? "") !== "");
  if (name === undefined) throw invalid(`\`${names[0]}\` is missing.`);
  return text(params, name);
}

export function optionalWhole(params: Params, name: string, max: number): number | undefined {
  const given = params[name] ?? undefined;
  if (given === undefined) return undefined;
  if (typeof given !== "number" || !Number.isInteger(given) || given < 0 || given > max) {
    throw invalid(`\`${name}\` must be a whole number from 0 to ${max}.`);
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
  if (chosen === undefined) throw invalid(`\`${name}\` must be one of ${choices.map((one) => `"${one}"`).join(", ")}.`);
  return chosen;
}

export function promptOf(params: Params): string | Prompt {
  const given = params.prompt ?? undefined;
  if (typeof given === "string") return given;
  if (!isObject(given) || typeof given.text !== "string") {
    throw invalid("`prompt` must be a string, or an object with `text`.");
  }
  const { text: promptText, data, ...rest } = given;
  rejectUnknown(rest, ["text", "data"], "A prompt");
  return data === undefined ? { text: promptText } : { text: promptText, data };
}

export type Reason = string | { readonly kind: "user" | "policy"; readonly note?: string; readonly by?: string };

export function optionalReason(params: Params): Reason | undefined {
  const given = params.reason ?? undefined;
  if (given === undefined || typeof given === "string") return given;
  if (!isObject(given)) throw invalid("`reason` must be a string, or an object with `kind`.");
  const kind = optionalChoice(given, "kind", ["user", "policy"]) ?? "user";
  return { kind, ...defined({ note: optionalText(given, "note"), by: optionalText(given, "by") }) };
}

/** Drops undefined fields, because an undefined option differs from an absent one. */
export function defined<F extends Readonly<Record<string, unknown>>>(fields: F): Defined<F> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<F>;
}

type Defined<F> = { readonly [K in keyof F]?: Exclude<F[K], undefined> };

export const isObject = (value: Json | undefined): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value);
