// What providers hand us, as JSON that a log can keep.
import type { Json } from "../core/model/prompt.ts";

/** Without what JSON has no word for: undefined fields go, bytes become base64. Undefined: nothing is left. */
export function plainJson(value: unknown): Json | undefined {
  try {
    const text = JSON.stringify(value, bytesAsBase64);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    // A circle, or a number too large for JSON. It was for the provider alone, who must do without.
    return undefined;
  }
}

/** The same for metadata, where an empty object says nothing. */
export function plainMetadata(value: object | undefined): Json | undefined {
  const json = value === undefined ? undefined : plainJson(value);
  return json === undefined || !isJsonObject(json) || Object.keys(json).length === 0 ? undefined : json;
}

export function isJsonObject(value: unknown): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a text says as JSON; undefined if it does not. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function bytesAsBase64(_: string, value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
}
