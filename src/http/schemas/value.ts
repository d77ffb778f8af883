// What people and models hand in and get back as it is: JSON, prompts, items of the inbox.
import { z } from "zod";
import { NOTE_CHARS_MAX } from "../../core/limits.ts";
import type { Json } from "../../core/model/prompt.ts";

/** Not looked into here: the library copies and bounds what it keeps. Only an absent value is none. */
export const json = z.custom<Json>((value) => value !== undefined, { error: "a JSON value is missing" });

export const prompt = z.strictObject({ text: z.string(), data: json.optional() });

/** A prompt as people write it. */
export const promptGiven = z.union([z.string(), prompt], {
  error: "a prompt is a text, or an object with `text` and, if you like, `data`",
});

export const delivery = z.enum(["queue", "steer", "interrupt", "reject"]);

export const item = z.strictObject({ kind: z.enum(["reminder", "result"]), text: z.string(), data: json.optional() });

export const note = z.string().max(NOTE_CHARS_MAX);
