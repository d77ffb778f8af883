// Who says what, in two columns. Speech that is still coming is kept open, and closed before anybody else speaks.
import { styleText } from "node:util";
import { plainLine, plainText } from "../format/plain-text.ts";

/** Where the lines go. */
export interface Paper {
  /** People look at it: what is still open is shown, and redrawn. Else only whole lines are told. */
  readonly terminal: boolean;
  readonly columns: number;
  print(line: string): void;
  show(rows: readonly string[]): void;
}

export type Speaker = "you" | "agent" | "thinks" | "belay" | `call ${number}` | `proc ${number}` | `ask ${number}`;
type Voice = "agent" | "thinks";

/** Two before, and one after the name. */
const MARGIN = 10;

/** Narrower than this, a terminal breaks lines by itself, and better so than letter by letter. */
const WIDTH_MIN = 8;

export class Screen {
  readonly #paper: Paper;
  #open: { readonly voice: Voice; text: string; first: boolean } | undefined;
  #status = "";

  constructor(paper: Paper) {
    this.#paper = paper;
  }

  get terminal(): boolean {
    return this.#paper.terminal;
  }

  /** One thing said. Words of others are made harmless by this, and stay on lines of their own. */
  say(who: Speaker, text: string): void {
    this.close();
    for (const [at, line] of this.#wrap(plainLine(text)).entries()) this.#paper.print(laidOut(who, line, at === 0));
    this.#draw();
  }

  /** A line of our own that nobody says. */
  raw(line: string): void {
    this.close();
    this.#paper.print(plainText(line).replaceAll("\n", " "));
  }

  /** More of something that is being said. */
  speak(voice: Voice, text: string): void {
    if (this.#open?.voice !== voice) this.close();
    this.#open ??= { voice, text: "", first: true };
    this.#open.text += text;
    this.#spill(this.#open);
    this.#draw();
  }

  /** Nothing more is said for now. */
  close(): void {
    const open = this.#open;
    this.#open = undefined;
    const rest = plainLine(open?.text ?? "");
    if (open === undefined || rest === "") return;
    this.#paper.print(laidOut(open.voice, rest, open.first));
    this.#draw();
  }

  /** What is going on, in a row that is redrawn. */
  status(text: string): void {
    this.#status = plainLine(text);
    this.#draw();
  }

  /** Prints what has become a whole line, and keeps the rest open. */
  #spill(open: { readonly voice: Voice; text: string; first: boolean }): void {
    const lines = plainText(open.text)
      .split("\n")
      .flatMap((line) => (this.terminal ? this.#wrap(line) : [line]));
    if (lines.length < 2) return;
    for (const line of lines.slice(0, -1).filter((one) => one.trim() !== "")) {
      this.#paper.print(laidOut(open.voice, plainLine(line), open.first));
      open.first = false;
    }
    open.text = lines.at(-1) ?? "";
  }

  #draw(): void {
    if (!this.terminal) return;
    const open = this.#open === undefined ? "" : plainLine(this.#open.text);
    const rows = open === "" || this.#open === undefined ? [] : [laidOut(this.#open.voice, open, this.#open.first)];
    const width = this.#paper.columns - 1;
    this.#paper.show(this.#status === "" ? rows : [...rows, styleText("dim", `  ${this.#status}`.slice(0, width))]);
  }

  #wrap(text: string): readonly string[] {
    return this.terminal ? wrapped(text, Math.max(WIDTH_MIN, this.#paper.columns - MARGIN - 1)) : [text];
  }
}

/** Lines of at most this width. The space at the end of an open line is kept: the next word is still to come. */
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

/** A word that is longer than a line is cut, so that a row is a row. */
function pieces(word: string, width: number): readonly string[] {
  const cut: string[] = [];
  for (let at = 0; at < word.length; at += width) cut.push(word.slice(at, at + width));
  return cut;
}

function laidOut(who: Speaker, text: string, first: boolean): string {
  const kind = who.split(" ", 1)[0] as keyof typeof COLOURS;
  const name = first ? who : "";
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
