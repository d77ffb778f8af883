// The schemas of JSON values, prompts and inbox items.
import { z } from "zod";
import { NOTE_CHARS_MAX } from "../../core/limits.ts";
import type { Json } from "../../core/model/prompt.ts";

/** Opaque JSON: the library copies and limits what it keeps. Only a missing value is refused. */
export const json = z.custom<Json>((value) => value !== undefined, { error: "a JSON value is missing" });

export const prompt = z.strictObject({ text: z.string(), data: json.optional() });

/** A prompt in a request. */
export const promptGiven = z.union([z.string(), prompt], {
  error: "a prompt must be a text, or an object with `text` and optional `data`",
});

export const delivery = z.enum(["queue", "steer", "interrupt", "reject"]);

export const item = z.strictObject({ kind: z.enum(["reminder", "result"]), text: z.string(), data: json.optional() });

export const note = z.string().max(NOTE_CHARS_MAX);
