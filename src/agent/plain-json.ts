// Converts values from providers into JSON that the log can keep.
import type { Json } from "../core/model/prompt.ts";

/** Drops what JSON cannot express: undefined fields go, bytes become base64. Undefined if nothing is left. */
export function plainJson(value: unknown): Json | undefined {
  try {
    const text = JSON.stringify(value, bytesAsBase64);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    // A cycle or a bigint. Only the provider needed this value, and it must do without.
    return undefined;
  }
}

/** The same for metadata. Undefined for an empty object. */
export function plainMetadata(value: object | undefined): Json | undefined {
  const json = value === undefined ? undefined : plainJson(value);
  return json === undefined || !isJsonObject(json) || Object.keys(json).length === 0 ? undefined : json;
}

export function isJsonObject(value: unknown): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses JSON; undefined if the text is not JSON. */
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
