// One text for one value: what a digest of a request is made of.

/** The same for the same JSON, in whatever order its fields were written: whoever asks again may have built it anew. */
export const canonical = (value: unknown): string => JSON.stringify(value, (_, part: unknown) => inOrder(part));

function inOrder(part: unknown): unknown {
  if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
  return Object.fromEntries(Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)));
}
