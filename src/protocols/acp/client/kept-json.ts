// Converts data of an external agent into JSON that the log can keep. Pure.
import type { Json } from "../../../core/model/prompt.ts";
import { CALL_CHARS_MAX, DEPTH_MAX } from "./limits.ts";

export type JsonObject = { readonly [key: string]: Json };

export const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The whole value, or a note on why it was left out. */
export function keptJson(value: unknown, charsMax: number = CALL_CHARS_MAX): Json {
  const text = depthOf(value) > DEPTH_MAX ? undefined : JSON.stringify(value, wellFormed);
  if (text === undefined) return { leftOut: "It is nested too deeply to be kept." };
  if (text.length > charsMax) return { leftOut: `It has ${text.length} characters; at most ${charsMax} are kept.` };
  return JSON.parse(text);
}

const wellFormed = (_: string, value: unknown): unknown =>
  typeof value === "string" ? value.slice(0, CALL_CHARS_MAX).toWellFormed() : value;

/** The nesting depth, counted no further than the limit. */
function depthOf(value: unknown, depth = 0): number {
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return depth;
  return Object.values(value).reduce<number>((most, one) => Math.max(most, depthOf(one, depth + 1)), depth + 1);
}

/** Shortens a text. */
export const brief = (text: string, charsMax: number): string => {
  const plain = text.toWellFormed();
  return plain.length <= charsMax ? plain : `${plain.slice(0, charsMax - 1)}…`.toWellFormed();
};
