// Formats rows of cells in aligned columns. On a terminal they fit its width; elsewhere no cell is cut.
import { styleText } from "node:util";
import { plainLine } from "./plain-text.ts";

export interface Column {
  readonly title: string;
  /** The smallest width. A column without one is never cut: an id must stay complete. */
  readonly widthMin?: number;
}

export interface Style {
  /** Undefined: unlimited. */
  readonly width: number | undefined;
  readonly colour: "with" | "without";
}

const BETWEEN = "  ";

/** The width of a terminal that does not report one. */
const COLUMNS = 80;

/** The width and the colour of tables on this output. */
export function styleOf(output: NodeJS.WriteStream): Style {
  const terminal = output.isTTY === true;
  // A terminal that does not know its width reports 0.
  return { width: terminal ? output.columns || COLUMNS : undefined, colour: coloured(output) };
}

export const coloured = (output: NodeJS.WriteStream): "with" | "without" =>
  output.isTTY === true && process.env.TERM !== "dumb" && !process.env.NO_COLOR ? "with" : "without";

/** A heading and a line for each row. Cells are sanitised, since they may contain model text; empty ones are `-`. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[], style: Style): string[] {
  const cells = rows.map((row) => columns.map((_, at) => plainLine(row[at] ?? "") || "-"));
  const widths = fitted(columns, widest(columns, cells), style.width);
  const line = (row: readonly string[]): string =>
    row
      .map((cell, at) => padded(clip(cell, widths[at] ?? 0), at === row.length - 1 ? 0 : (widths[at] ?? 0)))
      .join(BETWEEN);
  const whole = (text: string): string => (style.width === undefined ? text : clip(text, style.width));
  const heading = whole(line(columns.map(({ title }) => title)));
  // The caller has checked the stream: the line may be printed later.
  const titles = style.colour === "with" ? styleText("bold", heading, { validateStream: false }) : heading;
  return [titles, ...cells.map((row) => whole(line(row)))];
}

const widest = (columns: readonly Column[], cells: readonly (readonly string[])[]): number[] =>
  columns.map(({ title }, at) => Math.max(displayWidth(title), ...cells.map((row) => displayWidth(row[at] ?? ""))));

/** Shrinks the widest shrinkable column, step by step, until the row fits or no column can shrink. */
function fitted(columns: readonly Column[], widths: number[], width: number | undefined): readonly number[] {
  if (width === undefined) return widths;
  let over = widths.reduce((sum, one) => sum + one, 0) + BETWEEN.length * (widths.length - 1) - width;
  while (over > 0) {
    let at = -1;
    for (const [index, { widthMin }] of columns.entries()) {
      const has = widths[index] ?? 0;
      if (widthMin !== undefined && has > widthMin && has > (widths[at] ?? 0)) at = index;
    }
    if (at === -1) break;
    widths[at] = (widths[at] ?? 0) - 1;
    over -= 1;
  }
  return widths;
}

const padded = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - displayWidth(text)));

/** Cuts a text to this many columns of a terminal; a cut ends with `…`. */
export function clip(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let kept = "";
  let used = 1;
  for (const { segment } of SEGMENTS.segment(text)) {
    used += segmentWidth(segment);
    if (used > width) break;
    kept += segment;
  }
  return width < 1 ? "" : `${kept}…`;
}

/** The number of terminal columns of a text: most Chinese, Japanese and Korean characters and most emoji take two. */
export function displayWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of SEGMENTS.segment(text)) width += segmentWidth(segment);
  return width;
}

const SEGMENTS = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const NONE = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]/u;
const WIDE = new RegExp(
  [
    "^(?:\\p{Emoji_Presentation}|.\\ufe0f",
    "[\\u1100-\\u115f\\u2e80-\\u303e\\u3041-\\ua4cf\\ua960-\\ua97c\\uac00-\\ud7a3\\uf900-\\ufaff]",
    "[\\ufe30-\\ufe6f\\uff00-\\uff60\\uffe0-\\uffe6\\u{20000}-\\u{3fffd}])",
  ].join("|"),
  "u",
);

function segmentWidth(segment: string): number {
  if (NONE.test(segment)) return 0;
  return WIDE.test(segment) ? 2 : 1;
}
