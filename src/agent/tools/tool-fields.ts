// Fields of a tool's input: each has a JSON Schema for the model and a reader. Written by hand, because this folder
// does not load a schema library.
import type { JSONSchema7 } from "@ai-sdk/provider";
import type { Json } from "../../core/model/prompt.ts";
import { isJsonObject } from "../plain-json.ts";
import type { PlainSchema } from "./tool-schema.ts";

export interface Field<T> {
  readonly json: JSONSchema7;
  /** Throws if the value is invalid. Not called for an absent field. */
  readonly read: (given: Json, name: string) => T;
}

export type Fields<T> = { readonly [Name in keyof T]-?: Field<NonNullable<T[Name]>> };

/** A text that is not empty. */
export function words(description: string, charsMax: number): Field<string> {
  return {
    json: { type: "string", description, minLength: 1, maxLength: charsMax },
    read: (given, name) => {
      if (typeof given === "string" && given !== "" && given.length <= charsMax) return given;
      throw new Error(`${name} must be a text of 1 to ${charsMax} characters`);
    },
  };
}

/** Any text, also an empty one. The size of the whole input is limited elsewhere. */
export function text(description: string): Field<string> {
  return {
    json: { type: "string", description },
    read: (given, name) => {
      if (typeof given === "string") return given;
      throw new Error(`${name} must be a text`);
    },
  };
}

export function whole(description: string, min: number): Field<number> {
  return {
    json: { type: "integer", description, minimum: min },
    read: (given, name) => {
      if (typeof given === "number" && Number.isSafeInteger(given) && given >= min) return given;
      throw new Error(`${name} must be a whole number from ${min}`);
    },
  };
}

export function flag(description: string): Field<boolean> {
  return {
    json: { type: "boolean", description },
    read: (given, name) => {
      if (typeof given === "boolean") return given;
      throw new Error(`${name} must be true or false`);
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
      if (!isJsonObject(input)) throw new Error("the input must be an object");
      const strange = Object.keys(input).find((name) => !Object.hasOwn(fields, name));
      if (strange !== undefined) {
        throw new Error(`there is no \`${strange}\`; there are ${known.map(([name]) => name).join(", ")}`);
      }
      const given = known.flatMap(([name, { read }]) => {
        const value = input[name];
        // Some providers send null for an omitted field.
        if (value !== undefined && value !== null) return [[name, read(value, name)] as const];
        if (required.some((one) => one === name)) throw new Error(`${name} is missing`);
        return [];
      });
      // Every field was read by its own reader; the compiler cannot derive that all of them are present.
      return Object.fromEntries(given) as T;
    },
  };
}
