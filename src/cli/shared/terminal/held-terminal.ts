// The terminal of a command that asks: held from its beginning to its end, so that only keys pressed after a question
// was on the screen can answer it.
//
// Invariants
// 1. While no answer is awaited, everything typed is read and dropped. Nothing waits in the terminal for a question.
// 2. An answer is taken only after the terminal has said that it has painted the question (or had ample time to), and
//    after nothing was typed for a while. Only then is it asked for, on a line of its own.
// 3. A terminal that changes its width breaks rows anew, so that a row of another author may begin without its margin.
//    The question is drawn again then, and what was typed on the one before is dropped.
// 4. Ctrl-C, Ctrl-Z and Ctrl-\ do what they always do, at any moment.
import type { Clock } from "../../../ports/clock.ts";
import { AnswerLine, type Key, KeyReader, PAINTED_QUERY, PASTE_MARKS_OFF, PASTE_MARKS_ON } from "./answer-line.ts";

/** Terminals answer at once; from far away it takes as long as the line. Those that never do are not waited for. */
export const PAINT_MS = 1_500;

/** Nothing was typed for this long: whoever types next has had time to see what is asked. */
export const QUIET_MS = 300;

export interface Keyboard {
  setRawMode(on: boolean): unknown;
  resume(): unknown;
  pause(): unknown;
  on(event: "data", listener: (sent: Buffer) => void): unknown;
  on(event: "end" | "close" | "error", listener: () => void): unknown;
  off(event: "data", listener: (sent: Buffer) => void): unknown;
  off(event: "end" | "close" | "error", listener: () => void): unknown;
}

export interface Ask {
  /** What it is about, in whole lines that fit the terminal as it is now. It is painted first. */
  readonly about: () => string;
  /** What is typed on, shown once an answer counts. */
  readonly prompt: string;
  /** `dropped`: what is pasted answers nothing. */
  readonly paste: "taken" | "dropped";
  readonly signal: AbortSignal;
}

export interface HeldTerminalOptions {
  readonly input: Keyboard;
  readonly output: { write(text: string): unknown };
  readonly clock: Clock;
  /** Resolves once everything that has already been typed has been read. */
  readonly afterReads: () => Promise<void>;
  readonly signal: (signal: "SIGINT" | "SIGTSTP" | "SIGQUIT") => void;
}

type Stage =
  | { readonly kind: "idle" }
  | { readonly kind: "painting" | "settling" | "resizing"; readonly ask: Ask }
  | { readonly kind: "open"; readonly ask: Ask; readonly line: AnswerLine };

export class HeldTerminal {
  readonly #options: HeldTerminalOptions;
  readonly #keys = new KeyReader();
  readonly #decoder = new TextDecoder();
  #stage: Stage = { kind: "idle" };
  #answer: (line: string | undefined) => void = () => {};
  #dispose: () => void = () => {};
  /** Reports that the terminal still owes: one on an earlier question is not on this one. */
  #owed = 0;
  #gone = false;

  constructor(options: HeldTerminalOptions) {
    this.#options = options;
    const { input } = options;
    input.setRawMode(true);
    input.on("data", this.#read);
    for (const event of ["end", "close", "error"] as const) input.on(event, this.#leave);
    input.resume();
  }

  /** The line that was typed. Undefined: the question was withdrawn, or nobody is there any more. */
  ask(ask: Ask): Promise<string | undefined> {
    if (ask.signal.aborted || this.#gone) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const withdrawn = (): void => this.#end(undefined);
      ask.signal.addEventListener("abort", withdrawn, { once: true });
      this.#answer = (line) => {
        ask.signal.removeEventListener("abort", withdrawn);
        resolve(line);
      };
      this.#paint(ask);
    });
  }

  /** A line of ours in between: below what was typed so far, which is then shown again. */
  interject(line: string): void {
    const { output } = this.#options;
    if (this.#stage.kind !== "open") output.write(line);
    else output.write(`\n${line}${this.#stage.ask.prompt}${this.#stage.line.text}`);
  }

  /** Back from the shell: it may have changed the terminal, and what is on it. */
  resumed(): void {
    if (this.#gone) return;
    this.#setRaw(false);
    this.#setRaw(true);
    if (this.#stage.kind !== "idle") this.#paint(this.#stage.ask);
  }

  /** Its rows are other ones now. While it is being resized this comes many times; the question is drawn once. */
  resized(): void {
    const stage = this.#stage;
    if (stage.kind === "idle") return;
    this.#dispose();
    if (stage.kind === "open") this.#options.output.write("\n");
    this.#stage = { kind: "resizing", ask: stage.ask };
    this.#dispose = this.#options.clock.after(QUIET_MS, () => this.#paint(stage.ask));
  }

  release(): void {
    this.#end(undefined);
    if (this.#gone) return;
    this.#gone = true;
    const { input } = this.#options;
    input.off("data", this.#read);
    for (const event of ["end", "close", "error"] as const) input.off(event, this.#leave);
    this.#setRaw(false);
    input.pause();
  }

  /** A terminal that was closed takes no mode any more, and needs none. */
  #setRaw(on: boolean): void {
    try {
      this.#options.input.setRawMode(on);
    } catch {
      // Its end is reported by the stream.
    }
  }

  #paint(ask: Ask): void {
    this.#dispose();
    this.#stage = { kind: "painting", ask };
    this.#owed += 1;
    this.#options.output.write(`${ask.about()}${PASTE_MARKS_ON}${PAINTED_QUERY}`);
    this.#dispose = this.#options.clock.after(PAINT_MS, () => {
      this.#owed = 0;
      this.#settle(ask);
    });
  }

  /** The question is on the screen. From here on nothing may be typed for a while. */
  #settle(ask: Ask): void {
    this.#dispose();
    const stage: Stage = { kind: "settling", ask };
    this.#stage = stage;
    this.#dispose = this.#options.clock.after(QUIET_MS, () => {
      // A timer may fire before keys are read that were pressed earlier; they begin the wait anew.
      void this.#options.afterReads().then(() => this.#stage === stage && this.#open(ask));
    });
  }

  #open(ask: Ask): void {
    this.#stage = { kind: "open", ask, line: new AnswerLine(ask.paste) };
    this.#options.output.write(ask.prompt);
  }

  readonly #read = (sent: Buffer): void => {
    for (const key of this.#keys.read(this.#decoder.decode(sent, { stream: true }))) this.#press(key);
  };

  #press(key: Key): void {
    if (key.kind === "interrupt") this.#options.signal("SIGINT");
    else if (key.kind === "suspend" || key.kind === "quit") this.#hand(key.kind === "suspend" ? "SIGTSTP" : "SIGQUIT");
    else if (key.kind === "painted") this.#painted();
    else if (this.#stage.kind === "settling") this.#settle(this.#stage.ask);
    else if (this.#stage.kind === "open") this.#type(this.#stage.line, key);
  }

  #painted(): void {
    this.#owed = Math.max(0, this.#owed - 1);
    if (this.#stage.kind === "painting" && this.#owed === 0) this.#settle(this.#stage.ask);
  }

  #type(line: AnswerLine, key: Key): void {
    const typed = line.press(key);
    if (typed.kind === "more") this.#options.output.write(typed.echo);
    else this.#end(typed.kind === "line" ? typed.text : undefined);
  }

  #end(line: string | undefined): void {
    if (this.#stage.kind === "idle") return;
    const { kind } = this.#stage;
    this.#dispose();
    this.#stage = { kind: "idle" };
    this.#options.output.write(`${PASTE_MARKS_OFF}${kind === "open" ? "\n" : ""}`);
    this.#answer(line);
  }

  /** As the shell has it, while it has it. */
  #hand(signal: "SIGTSTP" | "SIGQUIT"): void {
    this.#setRaw(false);
    this.#options.signal(signal);
  }

  readonly #leave = (): void => this.release();
}
