// Prints a conversation in two columns: source and text. Streamed text stays open, and is closed before another source
// prints.
import { styleText } from "node:util";
import { plainLine, plainText } from "../format/plain-text.ts";

/** Where the lines go. */
export interface ScreenOutput {
  /** On a terminal the open line is shown and redrawn. Otherwise only whole lines are printed. */
  readonly terminal: boolean;
  readonly columns: number;
  print(line: string): void;
  show(rows: readonly string[]): void;
}

export type Source = "you" | "agent" | "thinks" | "belay" | `call ${number}` | `proc ${number}` | `ask ${number}`;
type StreamSource = "agent" | "thinks";

/** Two columns before the source, seven for it, and one after it. */
const MARGIN = 10;

/** On a narrower terminal lines are left to the terminal to wrap, rather than wrapped letter by letter. */
const WIDTH_MIN = 8;

export class Screen {
  readonly #output: ScreenOutput;
  #open: { readonly source: StreamSource; text: string; first: boolean } | undefined;
  #status = "";

  constructor(output: ScreenOutput) {
    this.#output = output;
  }

  get terminal(): boolean {
    return this.#output.terminal;
  }

  /** Prints one message. The text is sanitised, and keeps to its own lines. */
  print(source: Source, text: string): void {
    this.close();
    for (const [at, line] of this.#wrap(plainLine(text)).entries()) this.#output.print(laidOut(source, line, at === 0));
    this.#draw();
  }

  /** Prints a line without a source. */
  printRaw(line: string): void {
    this.close();
    this.#output.print(plainText(line).replaceAll("\n", " "));
  }

  /** Appends streamed text. */
  append(source: StreamSource, text: string): void {
    if (this.#open?.source !== source) this.close();
    this.#open ??= { source, text: "", first: true };
    this.#open.text += text;
    this.#printLines(this.#open);
    this.#draw();
  }

  /** Closes the open line. */
  close(): void {
    const open = this.#open;
    this.#open = undefined;
    const rest = plainLine(open?.text ?? "");
    if (open === undefined || rest === "") return;
    this.#output.print(laidOut(open.source, rest, open.first));
    this.#draw();
  }

  /** Sets the status row, which is redrawn. */
  status(text: string): void {
    this.#status = plainLine(text);
    this.#draw();
  }

  /** Prints the complete lines of the open text, and keeps the rest open. */
  #printLines(open: { readonly source: StreamSource; text: string; first: boolean }): void {
    const lines = plainText(open.text)
      .split("\n")
      .flatMap((line) => (this.terminal ? this.#wrap(line) : [line]));
    if (lines.length < 2) return;
    for (const line of lines.slice(0, -1).filter((one) => one.trim() !== "")) {
      this.#output.print(laidOut(open.source, plainLine(line), open.first));
      open.first = false;
    }
    open.text = lines.at(-1) ?? "";
  }

  #draw(): void {
    if (!this.terminal) return;
    const open = this.#open === undefined ? "" : plainLine(this.#open.text);
    const rows = open === "" || this.#open === undefined ? [] : [laidOut(this.#open.source, open, this.#open.first)];
    const width = this.#output.columns - 1;
    this.#output.show(this.#status === "" ? rows : [...rows, styleText("dim", `  ${this.#status}`.slice(0, width))]);
  }

  #wrap(text: string): readonly string[] {
    return this.terminal ? wrapped(text, Math.max(WIDTH_MIN, this.#output.columns - MARGIN - 1)) : [text];
  }
}

/** Wraps a text to this width. A space at the end of the open line is kept for the next word. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/(?<= )/).flatMap((one) => pieces(one, width))) {
    if (line !== "" && line.length + word.trimEnd().length > width) {
      lines.push(line.trimEnd());
      line = "";
    }
    line += word;
  }
  return [...lines, line];
}

/** Splits a word that is longer than a line. */
function pieces(word: string, width: number): readonly string[] {
  const cut: string[] = [];
  for (let at = 0; at < word.length; at += width) cut.push(word.slice(at, at + width));
  return cut;
}

function laidOut(source: Source, text: string, first: boolean): string {
  const kind = source.split(" ", 1)[0] as keyof typeof COLOURS;
  const name = first ? source : "";
  return `  ${styleText(COLOURS[kind], name.padEnd(7))} ${kind === "thinks" ? styleText("dim", text) : text}`;
}

const COLOURS = {
  you: "cyan",
  agent: "magenta",
  thinks: "dim",
  belay: "green",
  call: "yellow",
  proc: "blue",
  ask: "red",
} as const;
