// The line a person types on, and what is shown above it. On a terminal the two do not get into each other's way; in a
// pipe there is nothing but lines.
import { clearScreenDown, createInterface, cursorTo, type Interface, moveCursor } from "node:readline";
import type { ReadStream, WriteStream } from "node:tty";
import type { Clock } from "../../../ports/clock.ts";

const PROMPT = "> ";

/** Where nobody says how wide they are. */
const COLUMNS = 100;

/**
 * When the first key of a line was read. `unknown`: a terminal that is read line by line, which a person may have typed
 * on at any time before. `pipe`: no terminal, so no person looks at a screen.
 */
export type Begun = number | "unknown" | "pipe";

export interface Typing {
  onLine(text: string, begun: Begun): void;
  onInterrupt(): void;
  /** There is no more to come. */
  onEnd(): void;
}

export class PromptLine {
  readonly terminal: boolean;
  readonly #output: WriteStream;
  readonly #reader: Interface;
  #live: readonly string[] = [];
  #closed = false;
  #begunMs: number | undefined;
  #readMs: number | undefined;

  constructor(input: ReadStream, output: WriteStream, clock: Clock, typing: Typing) {
    // A terminal that cannot move its cursor is as good as a pipe.
    this.terminal = input.isTTY === true && output.isTTY === true && process.env.TERM !== "dumb";
    this.#output = output;
    this.#reader = createInterface({ input, terminal: this.terminal, ...(this.terminal ? { output } : {}) });
    this.#reader.setPrompt(PROMPT);
    if (this.terminal) {
      input.prependListener("data", () => {
        this.#readMs = clock.elapsed();
        this.#begunMs ??= this.#readMs;
      });
      // Behind the reader: what it has left of these keys is the beginning of the next line.
      input.on("data", () => {
        this.#begunMs = this.#reader.line === "" ? undefined : this.#begunMs;
      });
    }
    this.#reader.on("line", (text) => {
      const begun = this.#begunMs ?? (input.isTTY === true ? "unknown" : "pipe");
      // Several lines can come at once, as pasted; none of them began later.
      this.#begunMs = this.#readMs;
      this.#takeIn(text);
      typing.onLine(text, begun);
    });
    this.#reader.on("SIGINT", () => typing.onInterrupt());
    this.#reader.on("close", () => {
      this.close();
      typing.onEnd();
    });
    this.#redraw();
  }

  get columns(): number {
    return Math.min(this.#width, COLUMNS);
  }

  /** A terminal that does not know its width says that it has none. */
  get #width(): number {
    return this.#output.columns || COLUMNS;
  }

  /** A line that stays. */
  print(line: string): void {
    if (this.terminal && !this.#closed) this.#redraw(line);
    else this.#output.write(`${line}\n`);
  }

  /** Rows between what stays and what is typed; each fits the width. Only a terminal has them. */
  show(rows: readonly string[]): void {
    this.#live = rows;
    this.#redraw();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.terminal) this.#eraseFrom(this.#reader.getCursorPos().rows);
    this.#reader.close();
  }

  #redraw(line?: string): void {
    if (!this.terminal || this.#closed) return;
    this.#eraseFrom(this.#reader.getCursorPos().rows);
    // The reader goes up as far as it believes to have come down, so it is brought there. After a long paste that is
    // not where the cursor was.
    const believed: unknown = Reflect.get(this.#reader, "prevRows");
    const down = typeof believed === "number" ? believed : 0;
    this.#output.write(`${line === undefined ? "" : `${line}\n`}${"\n".repeat(down)}`);
    this.#reader.setPrompt([...this.#live, PROMPT].join("\n"));
    this.#reader.prompt(true);
  }

  /** What was typed has left a copy of itself, and of the rows above it. Whoever takes it in says it again. */
  #takeIn(text: string): void {
    if (!this.terminal) return;
    const typed = Math.floor((PROMPT.length + text.length) / this.#width) + 1;
    // The cursor is below all of it; from there it is as far up again to where the prompt begins.
    moveCursor(this.#output, 0, -typed - this.#live.length);
    this.#reader.setPrompt(PROMPT);
    this.#redraw();
  }

  #eraseFrom(rowsUp: number): void {
    moveCursor(this.#output, 0, -rowsUp);
    cursorTo(this.#output, 0);
    clearScreenDown(this.#output);
  }
}
