// The nesting depth of a JSON text, checked before it is parsed: parsing megabytes of brackets takes seconds, during
// which the event loop is blocked and no stop is received.

/**
 * Maximum depth of a text that is parsed. Far more than any protocol or tool uses, so that a text that is merely too
 * deep is refused by its own limit.
 */
export const PARSED_LEVELS_MAX = 256;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LIST = 0x5b;
const LIST_END = 0x5d;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;

/** Whether the text is nested more deeply than that. One pass, without a stack. Invalid JSON is left to the parser. */
export function isUnparsable(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at);
    else if (char === LIST || char === OBJECT) depth += 1;
    else if (char === LIST_END || char === OBJECT_END) depth -= 1;
    if (depth > PARSED_LEVELS_MAX) return true;
  }
  return false;
}

/** The position of the closing quote of the string that begins here, or the end of the text. */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return at;
  }
  return text.length;
}
