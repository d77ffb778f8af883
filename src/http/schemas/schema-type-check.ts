// Checks at compile time that a schema matches a type: a schema that deviates from its type does not compile.
import type { z } from "zod";
import type { Json } from "../../core/model/prompt.ts";

/** The type of a value's JSON: undefined fields are optional, and nothing is readonly. */
export type Wire<T> = [Json] extends [T]
  ? T
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends readonly (infer Item)[]
      ? Wire<Item>[]
      : T extends object
        ? Flat<Always<T> & Sometimes<T>>
        : T;

/** The type that a handler may return for a schema: everything may be readonly. */
export type InputType<T> = [Json] extends [T]
  ? T
  : T extends readonly (infer Item)[]
    ? readonly InputType<Item>[]
    : T extends object
      ? { readonly [K in keyof T]: InputType<T[K]> }
      : T;

/** True, or a message that the compiler shows. */
export type SchemaTypeCheck<Schema extends z.ZodType, T> = [Wire<z.output<Schema>>] extends [Wire<T>]
  ? [Wire<T>] extends [Wire<z.output<Schema>>]
    ? true
    : "the schema refuses what the type allows"
  : "the schema allows what the type does not";

type Always<T> = { -readonly [K in keyof T as undefined extends T[K] ? never : K]-?: Wire<T[K]> };
type Sometimes<T> = { -readonly [K in keyof T as undefined extends T[K] ? K : never]?: Wire<Exclude<T[K], undefined>> };
type Flat<T> = { [K in keyof T]: T[K] };
