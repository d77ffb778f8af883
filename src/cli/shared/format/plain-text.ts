// Text of others, made harmless: what a model or a tool says must not be able to steer the reader's terminal.
import { stripVTControlCharacters } from "node:util";

/** Control characters, and those that turn the direction of a line or hide in it. Line ends and tabs are kept. */
const UNSAFE = /(?![\n\t])[\p{Cc}\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]/gu;

/** The same without sequences that move, colour or title anything. May have several lines. */
export function plainText(text: string): string {
  return stripVTControlCharacters(text).replaceAll(/\r\n?/g, "\n").replaceAll(UNSAFE, "");
}

/** On one line, and no longer than this: words of others must not look like a line of ours. */
export function plainLine(text: string, charsMax = Number.POSITIVE_INFINITY): string {
  const line = plainText(text).replaceAll(/\s+/g, " ").trim();
  return line.length > charsMax ? `${line.slice(0, charsMax)}…` : line;
}
