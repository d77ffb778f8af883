// Reading JSON of which nothing is known yet: what is not there, or is something else, is undefined.

export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function field(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

export function textIn(value: unknown, name: string): string | undefined {
  const text = field(value, name);
  return typeof text === "string" ? text : undefined;
}

/** An empty list for what is none, so that the rules can walk over anything. */
export function listIn(value: unknown, name: string): readonly unknown[] {
  const list = field(value, name);
  return Array.isArray(list) ? list : [];
}

/** What the text says, or undefined if it is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
