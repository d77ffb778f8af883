// The input line, and the output above it. On a terminal output does not disturb the line being typed; in a pipe there
// are only lines.
import { clearScreenDown, createInterface, cursorTo, type Interface, moveCursor } from "node:readline";
import type { ReadStream, WriteStream } from "node:tty";
import type { Clock } from "../../../ports/clock.ts";

const PROMPT = "> ";

/** The width of a terminal that does not report one. */
const COLUMNS = 100;

/**
 * When the first key of a line was read. `unknown`: a terminal that is read line by line, so that the line may have
 * been typed at any earlier time. `pipe`: not a terminal, so no user looks at a screen.
 */
export type Begun = number | "unknown" | "pipe";

export interface LineHandlers {
  onLine(text: string, begun: Begun): void;
  onInterrupt(): void;
  /** The input has ended. */
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

  constructor(input: ReadStream, output: WriteStream, clock: Clock, handlers: LineHandlers) {
    // A terminal that cannot move its cursor is used like a pipe.
    this.terminal = input.isTTY === true && output.isTTY === true && process.env.TERM !== "dumb";
    this.#output = output;
    this.#reader = createInterface({ input, terminal: this.terminal, ...(this.terminal ? { output } : {}) });
    this.#reader.setPrompt(PROMPT);
    if (this.terminal) {
      input.prependListener("data", () => {
        this.#readMs = clock.elapsed();
        this.#begunMs ??= this.#readMs;
      });
      // Called after the reader: the keys it has left are the beginning of the next line.
      input.on("data", () => {
        this.#begunMs = this.#reader.line === "" ? undefined : this.#begunMs;
      });
    }
    this.#reader.on("line", (text) => {
      const begun = this.#begunMs ?? (input.isTTY === true ? "unknown" : "pipe");
      // A paste can contain several lines; all of them began when it was read.
      this.#begunMs = this.#readMs;
      this.#eraseTyped(text);
      handlers.onLine(text, begun);
    });
    this.#reader.on("SIGINT", () => handlers.onInterrupt());
    this.#reader.on("close", () => {
      this.close();
      handlers.onEnd();
    });
    this.#redraw();
  }

  get columns(): number {
    return Math.min(this.#width, COLUMNS);
  }

  /** A terminal that does not know its width reports 0. */
  get #width(): number {
    return this.#output.columns || COLUMNS;
  }

  /** Prints a permanent line. */
  print(line: string): void {
    if (this.terminal && !this.#closed) this.#redraw(line);
    else this.#output.write(`${line}\n`);
  }

  /** Shows rows above the input line, which are redrawn; each must fit the width. Does nothing in a pipe. */
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
    // The reader moves the cursor up by its own count of rows, so the cursor is first moved down by that many. After a
    // long paste this differs from where the cursor was.
    const rows: unknown = Reflect.get(this.#reader, "prevRows");
    const down = typeof rows === "number" ? rows : 0;
    this.#output.write(`${line === undefined ? "" : `${line}\n`}${"\n".repeat(down)}`);
    this.#reader.setPrompt([...this.#live, PROMPT].join("\n"));
    this.#reader.prompt(true);
  }

  /** Erases a finished line and the rows above it: the caller prints the line again. */
  #eraseTyped(text: string): void {
    if (!this.terminal) return;
    const typed = Math.floor((PROMPT.length + text.length) / this.#width) + 1;
    // The cursor is below the typed rows; the prompt begins that many rows above it.
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
