// Canonical JSON, from which the digests of requests are made.

/** Returns the same text for the same JSON, whatever the order of its fields: a retry may build its request anew. */
export const canonical = (value: unknown): string => JSON.stringify(value, (_, part: unknown) => inOrder(part));

function inOrder(part: unknown): unknown {
  if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
  return Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)));
}
