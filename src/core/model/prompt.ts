// What a client submits, and how it joins a session that is busy.

/** JSON, as clients and tools exchange it. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * What is given to be recorded as JSON: also an object of an interface, or with optional fields, which TypeScript does
 * not take for JSON. It is checked when it is given; fields that are undefined are left out.
 */
export type JsonInput = Json | object;

export interface Prompt {
  readonly text: string;
  /** Anything else for the agent. Belay carries it and does not look inside. */
  readonly data?: Json;
}

/**
 * - `queue`: a run of its own, after those before it.
 * - `steer`: taken into the live run at its next turn; without one, a queued run.
 * - `interrupt`: cancels the live run, then runs before the queue.
 * - `reject`: refused if the session is busy.
 */
export type Delivery = "queue" | "steer" | "interrupt" | "reject";

/** Whether a prompt asks for nothing: no text, and data that is absent or has nothing in it. */
export const isEmptyPrompt = ({ text, data }: { readonly text: string; readonly data?: unknown }): boolean =>
  text.trim() === "" && isVoid(data);

/** Also fields that have nothing in them, such as an empty list of attachments. */
function isVoid(data: unknown): boolean {
  if (data === undefined || data === null) return true;
  if (Array.isArray(data)) return data.length === 0;
  return typeof data === "object" && Object.values(data).every((one) => isNothing(one));
}

const isNothing = (one: unknown): boolean =>
  one === undefined || one === null || (typeof one === "object" && Object.keys(one).length === 0);

/** What a prompt costs a queue, in bytes of UTF-8. */
export function promptBytes(prompt: Prompt): number {
  return utf8Bytes(prompt.text) + (prompt.data === undefined ? 0 : utf8Bytes(JSON.stringify(prompt.data)));
}

/** Not TextEncoder: the core knows no platform, and this allocates nothing. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    // A surrogate pair is two units and four bytes, so each half counts one more than its unit.
    if (unit >= 0x80) bytes += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2;
  }
  return bytes;
}
