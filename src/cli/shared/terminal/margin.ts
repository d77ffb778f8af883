// Text of others at a terminal, told apart from what Belay asks: each row of it begins with a mark, and no question
// does. Rows are broken here, because a terminal that breaks one begins the next without the mark.
import { isWide } from "./answer-line.ts";
import { wrapped } from "./screen.ts";

/** Before what a model, a tool or an agent has written. */
export const SPOKEN = "│ ";

/** Before what Belay reports. Inputs and results of calls are quoted there. */
export const REPORTED = "· ";

const TAB_COLUMNS = 8;

/** Where nobody says how wide they are. */
const COLUMNS = 80;

/** Narrower than this there is no room for a mark and a text. */
const COLUMNS_MIN = 8;

export class Margin {
  readonly #mark: string;
  readonly #columns: () => number | undefined;
  /** How many columns of the open row are taken; 0: none is open. */
  #at = 0;

  constructor(mark: string, columns: () => number | undefined) {
    this.#mark = mark;
    this.#columns = columns;
  }

  /** More of it. Whoever calls has made it harmless: no controls but line ends and tabs. */
  lay(text: string): string {
    const columns = Math.max(COLUMNS_MIN, this.#columns() || COLUMNS);
    let laid = "";
    for (const character of text) {
      if (character === "\n") {
        laid += this.#at === 0 ? `${this.#mark.trimEnd()}\n` : "\n";
        this.#at = 0;
        continue;
      }
      if (this.#at > this.#mark.length && this.#at + (isWide(character) ? 2 : 1) > columns - 1) {
        laid += "\n";
        this.#at = 0;
      }
      if (this.#at === 0) {
        laid += this.#mark;
        this.#at = this.#mark.length;
      }
      const width = this.#widthOf(character, columns);
      laid += character === "\t" ? " ".repeat(width) : character;
      this.#at += width;
    }
    return laid;
  }

  /** What closes the open row, if there is one. */
  end(): string {
    const open = this.#at > 0;
    this.#at = 0;
    return open ? "\n" : "";
  }

  #widthOf(character: string, columns: number): number {
    if (character !== "\t") return isWide(character) ? 2 : 1;
    return Math.max(1, Math.min(TAB_COLUMNS - (this.#at % TAB_COLUMNS), columns - 1 - this.#at));
  }
}

/** Whole lines of it, broken between words where that can be. */
export function inMargin(mark: string, text: string, columns: number | undefined): string {
  const margin = new Margin(mark, () => columns);
  const width = Math.max(COLUMNS_MIN, columns || COLUMNS) - mark.length - 1;
  const lines = text.split("\n").flatMap((line) => wrapped(line, width));
  return margin.lay(lines.join("\n")) + margin.end();
}
