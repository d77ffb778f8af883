// Validates messages against the schemas of the SDK, selected by method and direction.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { Said, Version } from "./transcript.ts";

const require = createRequire(import.meta.url);

interface Definition {
  readonly "x-method"?: string;
  readonly "x-side"?: string;
}

/**
 * `asks` are the parameters of requests and notifications, `answers` the results; by the side that receives the
 * request.
 */
interface Book {
  readonly ajv: Ajv2020;
  readonly asks: ReadonlyMap<string, ValidateFunction>;
  readonly answers: ReadonlyMap<string, ValidateFunction>;
  readonly error: ValidateFunction;
}

const INTEGERS = ["int32", "int64", "uint16", "uint32", "uint64"] as const;

function openBook(version: Version): Book {
  const file = require.resolve(`@agentclientprotocol/sdk/schema/v${version}/schema.json`);
  const schema = JSON.parse(readFileSync(file, "utf8")) as { readonly $defs: Readonly<Record<string, Definition>> };
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  for (const format of INTEGERS) {
    ajv.addFormat(format, { type: "number", validate: (value: number) => Number.isInteger(value) });
  }
  ajv.addSchema(schema, "acp");
  const of = (name: string): ValidateFunction => {
    const found = ajv.getSchema(`acp#/$defs/${name}`);
    if (found === undefined) throw new Error(`the schema has no ${name}`);
    return found as ValidateFunction;
  };
  const named = (isMeant: (name: string) => boolean): ReadonlyMap<string, ValidateFunction> =>
    new Map(
      Object.entries(schema.$defs)
        .filter(([name, { "x-method": method }]) => method !== undefined && isMeant(name))
        .map(([name, about]) => [`${about["x-side"]} ${about["x-method"]}`, of(name)]),
    );
  const isAnswer = (name: string): boolean => name.endsWith("Response");
  return { ajv, asks: named((name) => !isAnswer(name)), answers: named(isAnswer), error: of("Error") };
}

const books = new Map<Version, Book>();

function bookOf(version: Version): Book {
  const book = books.get(version) ?? openBook(version);
  books.set(version, book);
  return book;
}

/** The validation errors of the messages of one connection. */
export function invalidMessages(said: readonly Said[], version: Version): readonly string[] {
  const book = bookOf(version);
  const asked = new Map<string, string>();
  return said.flatMap((one) => {
    const { by, message } = one;
    const key = (from: Said["by"]): string => `${from} ${JSON.stringify(message.id)}`;
    if (message.method !== undefined && message.id !== undefined) asked.set(key(by), message.method);
    const method = message.method ?? asked.get(key(by === "client" ? "agent" : "client"));
    return wrongWith(book, one, method).map((what) => `${by} ${method ?? "?"}: ${what}: ${JSON.stringify(message)}`);
  });
}

const ENVELOPE = new Set(["jsonrpc", "id", "method", "params", "result", "error"]);

function wrongWith(book: Book, { by, message }: Said, method: string | undefined): readonly string[] {
  if (typeof message !== "object" || message === null || message.jsonrpc !== "2.0") return ["no JSON-RPC"];
  const stray = Object.keys(message).filter((name) => !ENVELOPE.has(name));
  if (stray.length > 0) return [`stray ${stray.join(", ")}`];
  const isAsk = message.method !== undefined;
  if ([isAsk, "result" in message, message.error !== undefined].filter(Boolean).length !== 1) return ["two in one"];
  if (message.error !== undefined) return checked(book, book.error, message.error);
  // An answer to an unknown request, or to an extension method.
  if (method === undefined) return ["answers nothing"];
  const side = (by === "client") === isAsk ? "agent" : "client";
  const map = isAsk ? book.asks : book.answers;
  const validate = map.get(`${side} ${method}`) ?? map.get(`protocol ${method}`);
  if (validate !== undefined) return checked(book, validate, isAsk ? message.params : message.result);
  return isOwn(method) ? [] : ["not a method of the protocol in this direction"];
}

/**
 * Extension methods start with an underscore, except for the alias from other agents. A stop is a notification in the
 * protocol; sent as a request it is answered all the same.
 */
const isOwn = (method: string): boolean =>
  method.startsWith("_") || method === "session/cancel_tool_call" || method === "session/cancel";

const checked = ({ ajv }: Book, validate: ValidateFunction, value: unknown): readonly string[] =>
  validate(value) ? [] : [ajv.errorsText(validate.errors)];
