// The input schema of a tool: sent to the model as JSON Schema, and checked before the tool runs.
//
// There are four forms: a Standard Schema with JSON Schema output (zod, arktype and others), a plain JSON Schema, a
// schema of the AI SDK, and a function that creates one. None of these libraries is loaded here: each form is
// recognised by the properties that the standard or the SDK puts on it.
import type { JSONSchema7, JSONSchema7Definition } from "@ai-sdk/provider";
import { ControlError, messageOf } from "../../core/errors.ts";
import type { Json } from "../../core/model/prompt.ts";

/** The Standard Schema interface, version 1, with its JSON Schema extension. */
export interface StandardSchema<T = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
    readonly validate: (value: unknown) => Awaitable<StandardResult<T>>;
    readonly jsonSchema?:
      | { readonly input: (options: { readonly target: "draft-07" }) => Readonly<Record<string, unknown>> }
      | undefined;
  };
}

export type StandardResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A plain JSON Schema. Inputs are checked only if there is a `validate`, which throws for an invalid input. */
export interface PlainSchema<T = Json> {
  readonly jsonSchema: JSONSchema7;
  readonly validate?: StandardSchema<T> | ((input: Json) => Awaitable<T>);
}

/** What `jsonSchema()` and `zodSchema()` of the AI SDK return. Their marker is a symbol, which the type can omit. */
export interface AiSdkSchema<T = unknown> {
  readonly _type: T;
  readonly jsonSchema: JSONSchema7 | PromiseLike<JSONSchema7>;
  readonly validate?: ((value: unknown) => Awaitable<AiSdkResult<T>>) | undefined;
}

export type AiSdkResult<T> =
  | { readonly success: true; readonly value: T }
  | { readonly success: false; readonly error: Error };

export type InputSchema<T> = StandardSchema<T> | PlainSchema<T> | AiSdkSchema<T> | (() => AiSdkSchema<T>);

/** The type of the input that a tool with this schema receives. */
export type OutputOf<S> =
  S extends StandardSchema<infer T>
    ? T
    : S extends AiSdkSchema<infer T>
      ? T
      : S extends () => AiSdkSchema<infer T>
        ? T
        : S extends PlainSchema<infer T>
          ? // A bare JSON Schema carries no type.
            unknown extends T
            ? Json
            : T
          : never;

export type Awaitable<T> = T | PromiseLike<T>;

/** The result of a check: the value for the tool, or the issues. */
export type Checked<T> =
  | { readonly kind: "fits"; readonly value: T }
  | { readonly kind: "misfit"; readonly issues: readonly string[] };

/** A schema as the tools use it. `check` is synchronous where the schema is. Neither throws for a bad input. */
export interface SchemaReader<T> {
  json(): Promise<JSONSchema7>;
  check(input: Json): Awaitable<Checked<T>>;
}

const AI_SDK_SCHEMA = Symbol.for("vercel.ai.schema");

/** Throws `invalid` if this is not a schema, or one without a JSON Schema. */
export function readSchema<T>(given: InputSchema<T>): SchemaReader<T> {
  if (isStandard(given)) return readStandard(given);
  if (isLazy(given)) return readLazy(given);
  if (isAiSdk(given)) return readAiSdk(given);
  if (isPlain(given)) return readPlain(given);
  throw new ControlError(
    "invalid",
    "A tool's input must be a Standard Schema (like z.object({…})), or { jsonSchema: … } with a JSON Schema in it.",
  );
}

/** Calls `next` with the value, synchronously if it is not a promise. */
export function chain<A, B>(value: Awaitable<A>, next: (value: A) => Awaitable<B>): Awaitable<B> {
  return isPromise(value) ? value.then(next) : next(value);
}

export const isPromise = <A>(value: Awaitable<A>): value is PromiseLike<A> =>
  typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";

function readStandard<T>(schema: StandardSchema<T>): SchemaReader<T> {
  const { jsonSchema, vendor } = schema["~standard"];
  if (jsonSchema === undefined) {
    throw new ControlError(
      "invalid",
      `This schema of ${vendor} has no JSON Schema, which a model needs. Use a version of ${vendor} with ` +
        "Standard JSON Schema, or give the JSON Schema yourself: { jsonSchema: {…}, validate: schema }.",
    );
  }
  return {
    // The standard guarantees a JSON Schema, but types it as a record of anything.
    json: async () => closed(jsonSchema.input({ target: "draft-07" }) as JSONSchema7),
    check: (input) => checkStandard(schema, input),
  };
}

function checkStandard<T>(schema: StandardSchema<T>, input: Json): Awaitable<Checked<T>> {
  return attempt(() =>
    chain(schema["~standard"].validate(input), (result): Checked<T> => {
      if (result.issues === undefined) return { kind: "fits", value: result.value };
      return { kind: "misfit", issues: result.issues.map(issueText) };
    }),
  );
}

function readPlain<T>({ jsonSchema, validate }: PlainSchema<T>): SchemaReader<T> {
  return {
    json: async () => jsonSchema,
    check: (input) => {
      // Not checked, as requested: the author of the tool vouches for the type.
      if (validate === undefined) return { kind: "fits", value: input as T };
      if (isStandard(validate)) return checkStandard(validate, input);
      return attempt(() => chain(validate(input), (value): Checked<T> => ({ kind: "fits", value })));
    },
  };
}

function readAiSdk<T>(schema: AiSdkSchema<T>): SchemaReader<T> {
  return {
    json: async () => await schema.jsonSchema,
    check: (input) => {
      // Without a validator the SDK does not check either: the author of the tool vouches for the type.
      if (schema.validate === undefined) return { kind: "fits", value: input as T };
      const { validate } = schema;
      return attempt(() =>
        chain(validate(input), (result): Checked<T> => {
          if (result.success) return { kind: "fits", value: result.value };
          return { kind: "misfit", issues: issuesOf(result.error) };
        }),
      );
    },
  };
}

/** The SDK creates some schemas lazily, because creating them is slow. */
function readLazy<T>(make: () => AiSdkSchema<T>): SchemaReader<T> {
  let made: SchemaReader<T> | undefined;
  const reading = (): SchemaReader<T> => {
    made ??= readAiSdk(make());
    return made;
  };
  return {
    json: async () => await reading().json(),
    check: (input) => attempt(() => reading().check(input)),
  };
}

/** A validator that throws rejects the input, even if it only failed on deep nesting. */
function attempt<T>(check: () => Awaitable<Checked<T>>): Awaitable<Checked<T>> {
  const misfit = (error: unknown): Checked<T> => ({ kind: "misfit", issues: issuesOf(error) });
  try {
    const checked = check();
    return isPromise(checked) ? checked.then(undefined, misfit) : checked;
  } catch (error) {
    return misfit(error);
  }
}

/** Finds the issues on an error of the SDK or on its cause. The message itself would repeat the input. */
function issuesOf(error: unknown): readonly string[] {
  if (!(error instanceof Error)) return [messageOf(error)];
  const found = [error, error.cause, { issues: error.cause }].find(hasIssues);
  return found === undefined ? [messageOf(error)] : found.issues.map(issueText);
}

function issueText({ message, path }: SchemaIssue): string {
  const place = (path ?? []).map((step) => String(typeof step === "object" ? step.key : step)).join(".");
  return place === "" ? message : `${place}: ${message}`;
}

/**
 * Closes objects that do not declare `additionalProperties`, as the AI SDK does: some providers require it, and the
 * same schema should look the same to the model in each form.
 */
function closed(schema: JSONSchema7): JSONSchema7 {
  const isObject = schema.type === "object" || (Array.isArray(schema.type) && schema.type.includes("object"));
  const { properties, definitions, items, anyOf, allOf, oneOf, additionalProperties } = schema;
  const additional = additionalProperties ?? (isObject ? false : undefined);
  return {
    ...schema,
    ...(additional === undefined ? {} : { additionalProperties: closedPart(additional) }),
    ...(properties === undefined ? {} : { properties: closedParts(properties) }),
    ...(definitions === undefined ? {} : { definitions: closedParts(definitions) }),
    ...(items === undefined ? {} : { items: Array.isArray(items) ? items.map(closedPart) : closedPart(items) }),
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(closedPart) }),
    ...(allOf === undefined ? {} : { allOf: allOf.map(closedPart) }),
    ...(oneOf === undefined ? {} : { oneOf: oneOf.map(closedPart) }),
  };
}

const closedPart = (part: JSONSchema7Definition): JSONSchema7Definition =>
  typeof part === "boolean" ? part : closed(part);

const closedParts = (parts: Readonly<Record<string, JSONSchema7Definition>>): Record<string, JSONSchema7Definition> =>
  Object.fromEntries(Object.entries(parts).map(([key, part]) => [key, closedPart(part)]));

// Schemas of some libraries (arktype) are functions with the standard's property.
const isStandard = <T>(given: unknown): given is StandardSchema<T> =>
  ((typeof given === "object" && given !== null) || typeof given === "function") &&
  "~standard" in given &&
  typeof given["~standard"] === "object" &&
  given["~standard"] !== null;

const isLazy = <T>(given: unknown): given is () => AiSdkSchema<T> => typeof given === "function";

const isAiSdk = <T>(given: unknown): given is AiSdkSchema<T> =>
  typeof given === "object" && given !== null && AI_SDK_SCHEMA in given;

const isPlain = <T>(given: unknown): given is PlainSchema<T> =>
  typeof given === "object" &&
  given !== null &&
  "jsonSchema" in given &&
  typeof given.jsonSchema === "object" &&
  given.jsonSchema !== null;

const hasIssues = (given: unknown): given is { readonly issues: readonly SchemaIssue[] } =>
  typeof given === "object" &&
  given !== null &&
  "issues" in given &&
  Array.isArray(given.issues) &&
  given.issues.every(isIssue);

const isIssue = (given: unknown): given is SchemaIssue =>
  typeof given === "object" && given !== null && "message" in given && typeof given.message === "string";
