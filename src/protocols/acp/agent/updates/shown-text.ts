// Formats results and inputs for display: complete if they are short, otherwise cut with a remark.
import type { Json } from "../../../../core/model/prompt.ts";
import { PIECE_CHARS_MAX, SHOWN_CHARS_MAX, TITLE_CHARS_MAX } from "../limits.ts";

export function shownText(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return cut(typeof value === "string" ? value : JSON.stringify(value, undefined, 2));
}

export const isShownWhole = (value: Json): boolean => JSON.stringify(value).length <= SHOWN_CHARS_MAX;

/** Cuts the text, but not within a character. */
function cut(text: string): string {
  if (text.length <= SHOWN_CHARS_MAX) return text;
  const more = text.length - SHOWN_CHARS_MAX;
  return `${text.slice(0, SHOWN_CHARS_MAX).toWellFormed()}\n… (${more} more characters in the log)`;
}

/** Splits a long text, so that no update is large. No character is cut in two. */
export function pieces(text: string): readonly string[] {
  const cutAt = (from: number): number => {
    const to = from + PIECE_CHARS_MAX;
    return to < text.length && /[\uD800-\uDBFF]/.test(text.charAt(to - 1)) ? to - 1 : to;
  };
  const found: string[] = [];
  for (let from = 0; from < text.length; ) {
    const to = cutAt(from);
    found.push(text.slice(from, to));
    from = to;
  }
  return found;
}

/** The text as one line. */
export function shownLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= TITLE_CHARS_MAX ? line : `${line.slice(0, TITLE_CHARS_MAX - 1).toWellFormed()}…`;
}
