// A rough estimate of a value's memory. Used for limits: what is buffered for a slow reader must not grow with its
// content.

/** Estimated bytes of a JSON value on the heap. A character counts as two bytes, as in a string that is not Latin-1. */
export function heapBytes(value: unknown): number {
  if (typeof value === "string") return 2 * value.length + TEXT_BYTES;
  if (typeof value !== "object" || value === null) return 0;
  let bytes = OBJECT_BYTES;
  if (Array.isArray(value)) {
    for (const one of value) bytes += FIELD_BYTES + heapBytes(one);
    return bytes;
  }
  // Runs for every event: making a list of the values would cost more than reading them.
  const fields = value as Readonly<Record<string, unknown>>;
  for (const name in fields) bytes += FIELD_BYTES + heapBytes(fields[name]);
  return bytes;
}

/** What V8 needs for a string besides its characters, for an object besides its fields, and for one field. */
const TEXT_BYTES = 16;
const OBJECT_BYTES = 32;
const FIELD_BYTES = 8;
