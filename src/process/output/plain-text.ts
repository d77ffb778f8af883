// Output of programs as a person or a model should read it: what a terminal would show of its lines, and no controls.
//
// One pass, each character looked at once, each line kept as cells: no input takes more than its length. Lines are
// shown as they stood at last: a progress bar that was drawn a hundred times is one line. What moves between lines is
// left out, not carried out.

/** Everything but text, line ends and tabs. */
const CONTROL = /(?![\n\t])\p{Cc}/u;

const BACKSPACE = 0x08;
const TAB = 0x09;
const LINE_END = 0x0a;
const RETURN = 0x0d;
const ESCAPE = 0x1b;
const SPACE = 0x20;
const DELETE = 0x7f;

/** The second character of an escape that begins a sequence, and the single character that means the same. */
const SEQUENCE = 0x5b;
const SEQUENCE_C1 = 0x9b;
/** Those that begin a text for the terminal itself: its title, its clipboard, a picture. */
const STRINGS: ReadonlySet<number> = new Set([0x50, 0x58, 0x5d, 0x5e, 0x5f]);
const STRINGS_C1: ReadonlySet<number> = new Set([0x90, 0x98, 0x9d, 0x9e, 0x9f]);
/** Those that end it. An escape ends it too, whatever it begins. */
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

/** The line that is being written, and those before it. */
class Page {
  #lines = "";
  #cells: string[] = [];
  #column = 0;

  put(cell: string): void {
    this.#cells[this.#column] = cell;
    this.#column += 1;
  }

  /** Never behind the end of the line: nothing is filled up, so nobody can ask for a line of a gigabyte. */
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

/** Where the text goes on behind an escape, of which the character at `at` is the second. */
function escapeAt(text: string, at: number, page: Page): number {
  const code = text.charCodeAt(at);
  if (code === SEQUENCE) return sequenceAt(text, at + 1, page);
  if (STRINGS.has(code)) return behindString(text, at + 1);
  const last = behindRange(text, at, 0x20, 0x2f);
  return isWithin(text, last, 0x30, 0x7e) ? last + 1 : last;
}

/** Parameters, then what is in between, then one character that says what it does. One without it does nothing. */
function sequenceAt(text: string, at: number, page: Page): number {
  const between = behindRange(text, at, 0x30, 0x3f);
  const last = behindRange(text, between, 0x20, 0x2f);
  if (!isWithin(text, last, 0x40, 0x7e)) return last;
  if (between === last) applyControl(text.charAt(last), text.slice(at, between), page);
  return last + 1;
}

/** The few that programs draw a line again with. */
function applyControl(final: string, parameters: string, page: Page): void {
  const count = /^\d{0,9}$/.test(parameters) ? Number(parameters) : undefined;
  if (count === undefined) return;
  if (final === "G") page.moveTo(count - 1);
  else if (final === "D") page.moveBack(Math.max(1, count));
  else if (final === "K" && count === 0) page.clear("cursor");
  else if (final === "K" && count === 2) page.clear("start");
}

/** A line end ends it as well: whatever a program forgets, or means to hide, the next line is shown. */
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
