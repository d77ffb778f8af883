// Converts program output for a person or a model: the lines as a terminal would show them, without control characters.
//
// One pass in linear time, each line kept as cells, so no input takes more memory than its length. Lines are shown in
// their final state: a progress bar that was drawn a hundred times is one line. Cursor movements between lines are
// dropped.

/** All control characters except line ends and tabs. */
const CONTROL = /(?![\n\t])\p{Cc}/u;

const BACKSPACE = 0x08;
const TAB = 0x09;
const LINE_END = 0x0a;
const RETURN = 0x0d;
const ESCAPE = 0x1b;
const SPACE = 0x20;
const DELETE = 0x7f;

/** The second character of an escape that begins a control sequence, and its single-character (C1) form. */
const SEQUENCE = 0x5b;
const SEQUENCE_C1 = 0x9b;
/** Characters that begin a string for the terminal itself: its title, its clipboard, an image. */
const STRINGS: ReadonlySet<number> = new Set([0x50, 0x58, 0x5d, 0x5e, 0x5f]);
const STRINGS_C1: ReadonlySet<number> = new Set([0x90, 0x98, 0x9d, 0x9e, 0x9f]);
/** Characters that end such a string. Any escape ends it too. */
const STRING_ENDS: ReadonlySet<number> = new Set([0x07, 0x18, 0x1a, 0x9c]);

export function plain(text: string): string {
  if (!CONTROL.test(text)) return text;
  const page = new Page();
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at) as number;
    if (code === ESCAPE) at = escapeAt(text, at + 1, page);
    else if (code === SEQUENCE_C1) at = sequenceAt(text, at + 1, page);
    else if (STRINGS_C1.has(code)) at = behindString(text, at + 1);
    else {
      put(code, page);
      at += code > 0xffff ? 2 : 1;
    }
  }
  return page.text();
}

/** The current line, and the lines before it. */
class Page {
  #lines = "";
  #cells: string[] = [];
  #column = 0;

  put(cell: string): void {
    this.#cells[this.#column] = cell;
    this.#column += 1;
  }

  /** Never beyond the end of the line: lines are not padded, so no input can request a line of a gigabyte. */
  moveTo(column: number): void {
    this.#column = Math.min(Math.max(0, column), this.#cells.length);
  }

  moveBack(columns: number): void {
    this.moveTo(this.#column - columns);
  }

  clear(from: "cursor" | "start"): void {
    if (from === "start") this.#column = 0;
    this.#cells.length = this.#column;
  }

  endLine(): void {
    this.#lines += `${this.#cells.join("")}\n`;
    this.#cells = [];
    this.#column = 0;
  }

  text(): string {
    return this.#lines + this.#cells.join("");
  }
}

function put(code: number, page: Page): void {
  if (code === LINE_END) page.endLine();
  else if (code === RETURN) page.moveTo(0);
  else if (code === BACKSPACE) page.moveBack(1);
  else if (code === TAB || (code >= SPACE && code < DELETE) || code > 0x9f) page.put(String.fromCodePoint(code));
}

/** Returns the position behind an escape; `at` is its second character. */
function escapeAt(text: string, at: number, page: Page): number {
  const code = text.charCodeAt(at);
  if (code === SEQUENCE) return sequenceAt(text, at + 1, page);
  if (STRINGS.has(code)) return behindString(text, at + 1);
  const last = behindRange(text, at, 0x20, 0x2f);
  return isWithin(text, last, 0x30, 0x7e) ? last + 1 : last;
}

/**
 * Parameters, intermediate characters, then one final character for the function. Without it the sequence has no
 * effect.
 */
function sequenceAt(text: string, at: number, page: Page): number {
  const between = behindRange(text, at, 0x30, 0x3f);
  const last = behindRange(text, between, 0x20, 0x2f);
  if (!isWithin(text, last, 0x40, 0x7e)) return last;
  if (between === last) applyControl(text.charAt(last), text.slice(at, between), page);
  return last + 1;
}

/** The few functions that programs use to redraw a line. */
function applyControl(final: string, parameters: string, page: Page): void {
  const count = /^\d{0,9}$/.test(parameters) ? Number(parameters) : undefined;
  if (count === undefined) return;
  if (final === "G") page.moveTo(count - 1);
  else if (final === "D") page.moveBack(Math.max(1, count));
  else if (final === "K" && count === 0) page.clear("cursor");
  else if (final === "K" && count === 2) page.clear("start");
}

/** A line end also ends a string: if a program forgets to end it, or wants to hide text, the next line is shown. */
function behindString(text: string, from: number): number {
  let at = from;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (STRING_ENDS.has(code)) return at + 1;
    if (code === ESCAPE || code === LINE_END) return at;
    at += 1;
  }
  return at;
}

function behindRange(text: string, from: number, low: number, high: number): number {
  let at = from;
  while (isWithin(text, at, low, high)) at += 1;
  return at;
}

function isWithin(text: string, at: number, low: number, high: number): boolean {
  const code = text.charCodeAt(at);
  return code >= low && code <= high;
}
