// How much memory a value takes, roughly. For bounds: what is held for a slow reader must not grow with its content.

/** Estimated bytes of a JSON value on the heap. A character counts two, as in a text that is not Latin. */
export function heapBytes(value: unknown): number {
  if (typeof value === "string") return 2 * value.length + TEXT_BYTES;
  if (typeof value !== "object" || value === null) return 0;
  let bytes = OBJECT_BYTES;
  if (Array.isArray(value)) {
    for (const one of value) bytes += FIELD_BYTES + heapBytes(one);
    return bytes;
  }
  // Counted for every event: a list of the values would cost more than looking at them.
  const fields = value as Readonly<Record<string, unknown>>;
  for (const name in fields) bytes += FIELD_BYTES + heapBytes(fields[name]);
  return bytes;
}

/** What V8 needs for a string besides its characters, for an object besides its fields, and for one field. */
const TEXT_BYTES = 16;
const OBJECT_BYTES = 32;
const FIELD_BYTES = 8;
