// Puts text of models and tools at a terminal in a margin: each row begins with a mark, and no question of Belay does.
// Rows are wrapped here, because a terminal that wraps a row begins the next one without the mark.
import { isWide } from "./answer-line.ts";
import { wrapped } from "./screen.ts";

/** Before text of a model, a tool or an agent. */
export const AGENT_MARK = "│ ";

/** Before reports of Belay, which quote inputs and results of calls. */
export const REPORT_MARK = "· ";

const TAB_COLUMNS = 8;

/** The width of a terminal that does not report one. */
const COLUMNS = 80;

/** The smallest width with room for a mark and text. */
const COLUMNS_MIN = 8;

export class Margin {
  readonly #mark: string;
  readonly #columns: () => number | undefined;
  /** The used columns of the open row; 0: no row is open. */
  #at = 0;

  constructor(mark: string, columns: () => number | undefined) {
    this.#mark = mark;
    this.#columns = columns;
  }

  /** Formats more text. The caller has sanitised it: no control characters except newlines and tabs. */
  format(text: string): string {
    const columns = Math.max(COLUMNS_MIN, this.#columns() || COLUMNS);
    let formatted = "";
    for (const character of text) {
      if (character === "\n") {
        formatted += this.#at === 0 ? `${this.#mark.trimEnd()}\n` : "\n";
        this.#at = 0;
        continue;
      }
      if (this.#at > this.#mark.length && this.#at + (isWide(character) ? 2 : 1) > columns - 1) {
        formatted += "\n";
        this.#at = 0;
      }
      if (this.#at === 0) {
        formatted += this.#mark;
        this.#at = this.#mark.length;
      }
      const width = this.#widthOf(character, columns);
      formatted += character === "\t" ? " ".repeat(width) : character;
      this.#at += width;
    }
    return formatted;
  }

  /** Ends the open row, if there is one. */
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

/** Formats whole lines, wrapped between words where possible. */
export function inMargin(mark: string, text: string, columns: number | undefined): string {
  const margin = new Margin(mark, () => columns);
  const width = Math.max(COLUMNS_MIN, columns || COLUMNS) - mark.length - 1;
  const lines = text.split("\n").flatMap((line) => wrapped(line, width));
  return margin.format(lines.join("\n")) + margin.end();
}
