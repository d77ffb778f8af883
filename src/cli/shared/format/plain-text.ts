// Sanitises text for the terminal: output of a model or a tool must not be able to control the reader's terminal.
import { stripVTControlCharacters } from "node:util";

/** Control characters, and characters that change the direction of text or are invisible, except newlines and tabs. */
const UNSAFE = /(?![\n\t])[\p{Cc}\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]/gu;

/** The text without escape sequences and unsafe characters. It may have several lines. */
export function plainText(text: string): string {
  return stripVTControlCharacters(text).replaceAll(/\r\n?/g, "\n").replaceAll(UNSAFE, "");
}

/** The text on one line, cut to a length, so that it cannot imitate a line of Belay's own. */
export function plainLine(text: string, charsMax = Number.POSITIVE_INFINITY): string {
  const line = plainText(text).replaceAll(/\s+/g, " ").trim();
  return line.length > charsMax ? `${line.slice(0, charsMax)}…` : line;
}
