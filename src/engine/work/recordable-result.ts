// Converts the result of a call to JSON that the log can keep. A finished call has finished: a part that cannot be kept
// is replaced by a description, and never makes the call fail.

import { checkCallJson } from "../../core/input.ts";
import { CALL_BYTES_MAX, JSON_DEPTH_MAX, RESULT_CHARS_KEPT, RESULT_ITEMS_MAX } from "../../core/limits.ts";
import { type Json, utf8Bytes } from "../../core/model/prompt.ts";

/** The value itself, if it is JSON of an allowed size; otherwise the nearest JSON, or a sentence. Never throws. */
export function recordableResult(given: unknown, what: string): Json {
  try {
    return checkCallJson(given, what);
  } catch {
    return nearest(given, what);
  }
}

function nearest(given: unknown, what: string): Json {
  try {
    const json = new Converter().convert(given, []);
    const text = JSON.stringify(json);
    const bytes = utf8Bytes(text);
    if (bytes <= CALL_BYTES_MAX) return json;
    return shortened(typeof json === "string" ? json : text, `${what} has ${bytes} bytes; ${CALL_BYTES_MAX} are kept.`);
  } catch {
    // For example, a proxy that throws.
    return `[The call has finished. ${what} cannot be read.]`;
  }
}

/** The beginning and the end, like an excerpt of a process's output. */
function shortened(text: string, why: string): string {
  const half = RESULT_CHARS_KEPT / 2;
  const left = text.length - 2 * half;
  const head = text.slice(0, half).toWellFormed();
  const tail = text.slice(-half).toWellFormed();
  const note = `[The call has finished. ${why} ${left} characters in the middle are left out.]`;
  return `${note}\n${head}\n[… ${left} characters left out …]\n${tail}`;
}

/** Converts values without a JSON form to the nearest one. */
class Converter {
  #left = RESULT_ITEMS_MAX;

  convert(given: unknown, around: readonly object[]): Json {
    switch (typeof given) {
      case "string":
        return given.toWellFormed();
      case "boolean":
        return given;
      case "number":
        return Number.isFinite(given) ? given : String(given);
      case "bigint":
        return String(given);
      case "undefined":
        return null;
      case "object":
        return given === null ? null : this.#object(given, around);
      default:
        return `[a ${typeof given}]`;
    }
  }

  #object(given: object, around: readonly object[]): Json {
    this.#left -= 1;
    if (this.#left < 0) return `[more than ${RESULT_ITEMS_MAX} objects]`;
    if (around.includes(given)) return "[a reference to an object around it]";
    if (around.length >= JSON_DEPTH_MAX) return `[nested deeper than ${JSON_DEPTH_MAX} levels]`;
    const inside = [...around, given];
    const { toJSON } = given as { readonly toJSON?: unknown };
    if (ArrayBuffer.isView(given)) return bytesOf(given);
    if (given instanceof ArrayBuffer) return bytesOf(new Uint8Array(given));
    if (typeof toJSON === "function") return this.convert(toJSON.call(given), inside);
    if (given instanceof Error) return this.#error(given, inside);
    if (given instanceof Map) return this.#map(given, inside);
    if (Array.isArray(given) || given instanceof Set) return Array.from(given, (one) => this.convert(one, inside));
    return this.#fields(Object.entries(given), inside);
  }

  #map(given: ReadonlyMap<unknown, unknown>, inside: readonly object[]): Json {
    const entries = [...given];
    const named = (entry: readonly [unknown, unknown]): entry is [string, unknown] => typeof entry[0] === "string";
    if (entries.every(named)) return this.#fields(entries, inside);
    return entries.map(([key, value]) => [this.convert(key, inside), this.convert(value, inside)]);
  }

  /** Its name and message are not own enumerable fields. */
  #error(given: Error, inside: readonly object[]): Json {
    const { name, message, cause } = given;
    const because = cause === undefined ? [] : [["cause", cause] as const];
    return this.#fields([["name", name], ["message", message], ...because, ...Object.entries(given)], inside);
  }

  #fields(entries: readonly (readonly [string, unknown])[], inside: readonly object[]): Json {
    const copy: Record<string, Json> = Object.create(null);
    for (const [key, value] of entries) if (value !== undefined) copy[key.toWellFormed()] = this.convert(value, inside);
    return { ...copy };
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Json => ({
  bytes: byteLength,
  base64: Buffer.from(buffer, byteOffset, byteLength).toString("base64"),
});
