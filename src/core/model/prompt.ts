// What a client submits, and how it joins a busy session.

/** JSON, as clients and tools exchange it. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * A value to be recorded as JSON. It includes objects of an interface, or with optional fields, which TypeScript does
 * not assign to `Json`. The value is checked when it is given; fields that are undefined are omitted.
 */
export type JsonInput = Json | object;

export interface Prompt {
  readonly text: string;
  /** Any other data for the agent. Belay passes it on unread. */
  readonly data?: Json;
}

/**
 * - `queue`: runs separately, after those before it.
 * - `steer`: taken into the live run at its next turn; without a live run, queued.
 * - `interrupt`: cancels the live run, then runs before the queue.
 * - `reject`: refused if the session is busy.
 */
export type Delivery = "queue" | "steer" | "interrupt" | "reject";

/** Whether a prompt has no content: no text, and data that is absent or empty. */
export const isEmptyPrompt = ({ text, data }: { readonly text: string; readonly data?: unknown }): boolean =>
  text.trim() === "" && isVoid(data);

/** True also for fields that are empty, such as an empty list of attachments. */
function isVoid(data: unknown): boolean {
  if (data === undefined || data === null) return true;
  if (Array.isArray(data)) return data.length === 0;
  return typeof data === "object" && Object.values(data).every((one) => isNothing(one));
}

const isNothing = (one: unknown): boolean =>
  one === undefined || one === null || (typeof one === "object" && Object.keys(one).length === 0);

/** The size of a prompt in bytes of UTF-8, which counts towards the queue's limit. */
export function promptBytes(prompt: Prompt): number {
  return utf8Bytes(prompt.text) + (prompt.data === undefined ? 0 : utf8Bytes(JSON.stringify(prompt.data)));
}

/** Not TextEncoder: the core uses no platform API, and this allocates nothing. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    // A surrogate pair is two units and four bytes, so each half counts one more than its unit.
    if (unit >= 0x80) bytes += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2;
  }
  return bytes;
}
