// Fields of a tool's input: how a model is told of each, and how it is read. By hand: this room brings no library.
import type { JSONSchema7 } from "@ai-sdk/provider";
import type { Json } from "../../core/model/prompt.ts";
import { isJsonObject } from "../plain-json.ts";
import type { PlainSchema } from "./tool-schema.ts";

export interface Field<T> {
  readonly json: JSONSchema7;
  /** Throws what is wrong with it. Undefined is what was not given, and is not read. */
  readonly read: (given: Json, name: string) => T;
}

export type Fields<T> = { readonly [Name in keyof T]-?: Field<NonNullable<T[Name]>> };

/** A text with something in it. */
export function words(description: string, charsMax: number): Field<string> {
  return {
    json: { type: "string", description, minLength: 1, maxLength: charsMax },
    read: (given, name) => {
      if (typeof given === "string" && given !== "" && given.length <= charsMax) return given;
      throw new Error(`${name} is a text of 1 to ${charsMax} characters`);
    },
  };
}

/** Any text, also none. How much a call takes altogether is bounded elsewhere. */
export function text(description: string): Field<string> {
  return {
    json: { type: "string", description },
    read: (given, name) => {
      if (typeof given === "string") return given;
      throw new Error(`${name} is a text`);
    },
  };
}

export function whole(description: string, min: number): Field<number> {
  return {
    json: { type: "integer", description, minimum: min },
    read: (given, name) => {
      if (typeof given === "number" && Number.isSafeInteger(given) && given >= min) return given;
      throw new Error(`${name} is a whole number from ${min}`);
    },
  };
}

export function flag(description: string): Field<boolean> {
  return {
    json: { type: "boolean", description },
    read: (given, name) => {
      if (typeof given === "boolean") return given;
      throw new Error(`${name} is true or false`);
    },
  };
}

export function inputOf<T extends object>(
  fields: Fields<T>,
  required: readonly (keyof T & string)[],
): PlainSchema<T> & { readonly validate: (input: Json) => T } {
  const known = Object.entries<Field<unknown>>(fields);
  return {
    jsonSchema: {
      type: "object",
      properties: Object.fromEntries(known.map(([name, { json }]) => [name, json])),
      required: [...required],
      additionalProperties: false,
    },
    validate: (input) => {
      if (!isJsonObject(input)) throw new Error("an object is wanted");
      const strange = Object.keys(input).find((name) => !Object.hasOwn(fields, name));
      if (strange !== undefined) {
        throw new Error(`there is no \`${strange}\`; there are ${known.map(([name]) => name).join(", ")}`);
      }
      const given = known.flatMap(([name, { read }]) => {
        const value = input[name];
        // Some providers have models say null for what they leave out.
        if (value !== undefined && value !== null) return [[name, read(value, name)] as const];
        if (required.some((one) => one === name)) throw new Error(`${name} is missing`);
        return [];
      });
      // Each field was read by its own reader above; that they are all of them is beyond what the compiler follows.
      return Object.fromEntries(given) as T;
    },
  };
}
