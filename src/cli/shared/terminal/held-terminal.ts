// Keeps the terminal in raw mode from the start to the end of a command that asks questions, so that only keys pressed
// after a question was on the screen can answer it.
//
// Invariants
// 1. While no answer is awaited, typed keys are read and dropped. No typed-ahead input is left for a question.
// 2. An answer is accepted only after the terminal has reported that it has painted the question (or had ample time
//    to), and after a pause without typing. Only then the prompt is shown, on its own line.
// 3. A terminal that changes its width wraps rows again, so that a row of another author may lose its margin. The
//    question is drawn again then, and keys typed on the previous one are dropped.
// 4. Ctrl-C, Ctrl-Z and Ctrl-\ work at any moment.
import type { Clock } from "../../../ports/clock.ts";
import { AnswerLine, type Key, KeyReader, PAINTED_QUERY, PASTE_MARKS_OFF, PASTE_MARKS_ON } from "./answer-line.ts";

/** How long to wait for the paint report. Terminals answer at once, remote ones after a round trip, some never. */
export const PAINT_MS = 1_500;

/** The pause without typing, in which the user can see the question. */
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
  /** The question, in whole lines that fit the terminal as it is now. It is painted first. */
  readonly about: () => string;
  /** The input prompt, shown once an answer counts. */
  readonly prompt: string;
  /** `dropped`: pasted text is ignored. */
  readonly paste: "taken" | "dropped";
  readonly signal: AbortSignal;
}

export interface HeldTerminalOptions {
  readonly input: Keyboard;
  readonly output: { write(text: string): unknown };
  readonly clock: Clock;
  /** Resolves once all keys that were already typed have been read. */
  readonly afterReads: () => Promise<void>;
  readonly signal: (signal: "SIGINT" | "SIGTSTP" | "SIGQUIT") => void;
}

type Phase =
  | { readonly kind: "idle" }
  | { readonly kind: "painting" | "settling" | "resizing"; readonly ask: Ask }
  | { readonly kind: "open"; readonly ask: Ask; readonly line: AnswerLine };

export class HeldTerminal {
  readonly #options: HeldTerminalOptions;
  readonly #keys = new KeyReader();
  readonly #decoder = new TextDecoder();
  #phase: Phase = { kind: "idle" };
  #answer: (line: string | undefined) => void = () => {};
  #dispose: () => void = () => {};
  /** Outstanding paint reports: a report on an earlier question does not count for this one. */
  #reportsPending = 0;
  #gone = false;

  constructor(options: HeldTerminalOptions) {
    this.#options = options;
    const { input } = options;
    input.setRawMode(true);
    input.on("data", this.#read);
    for (const event of ["end", "close", "error"] as const) input.on(event, this.#leave);
    input.resume();
  }

  /** Resolves with the typed line. Undefined: the question was withdrawn, or the terminal was closed. */
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

  /** Prints a line below the text typed so far, and then the text again. */
  interject(line: string): void {
    const { output } = this.#options;
    if (this.#phase.kind !== "open") output.write(line);
    else output.write(`\n${line}${this.#phase.ask.prompt}${this.#phase.line.text}`);
  }

  /** Called when the shell resumes the program: it may have changed the mode and the content of the terminal. */
  resumed(): void {
    if (this.#gone) return;
    this.#setRaw(false);
    this.#setRaw(true);
    if (this.#phase.kind !== "idle") this.#paint(this.#phase.ask);
  }

  /** Called when the terminal changes its size. Debounced: the question is drawn once, after the last change. */
  resized(): void {
    const phase = this.#phase;
    if (phase.kind === "idle") return;
    this.#dispose();
    if (phase.kind === "open") this.#options.output.write("\n");
    this.#phase = { kind: "resizing", ask: phase.ask };
    this.#dispose = this.#options.clock.after(QUIET_MS, () => this.#paint(phase.ask));
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

  /** Ignores errors: a closed terminal has no mode. */
  #setRaw(on: boolean): void {
    try {
      this.#options.input.setRawMode(on);
    } catch {
      // The stream reports that the terminal was closed.
    }
  }

  #paint(ask: Ask): void {
    this.#dispose();
    this.#phase = { kind: "painting", ask };
    this.#reportsPending += 1;
    this.#options.output.write(`${ask.about()}${PASTE_MARKS_ON}${PAINTED_QUERY}`);
    this.#dispose = this.#options.clock.after(PAINT_MS, () => {
      this.#reportsPending = 0;
      this.#settle(ask);
    });
  }

  /** The question is on the screen: waits for a pause without typing. */
  #settle(ask: Ask): void {
    this.#dispose();
    const phase: Phase = { kind: "settling", ask };
    this.#phase = phase;
    this.#dispose = this.#options.clock.after(QUIET_MS, () => {
      // A timer may fire before keys that were pressed earlier are read; those restart the wait.
      void this.#options.afterReads().then(() => this.#phase === phase && this.#open(ask));
    });
  }

  #open(ask: Ask): void {
    this.#phase = { kind: "open", ask, line: new AnswerLine(ask.paste) };
    this.#options.output.write(ask.prompt);
  }

  readonly #read = (sent: Buffer): void => {
    for (const key of this.#keys.read(this.#decoder.decode(sent, { stream: true }))) this.#press(key);
  };

  #press(key: Key): void {
    if (key.kind === "interrupt") this.#options.signal("SIGINT");
    else if (key.kind === "suspend" || key.kind === "quit")
      this.#suspend(key.kind === "suspend" ? "SIGTSTP" : "SIGQUIT");
    else if (key.kind === "painted") this.#painted();
    else if (this.#phase.kind === "settling") this.#settle(this.#phase.ask);
    else if (this.#phase.kind === "open") this.#type(this.#phase.line, key);
  }

  #painted(): void {
    this.#reportsPending = Math.max(0, this.#reportsPending - 1);
    if (this.#phase.kind === "painting" && this.#reportsPending === 0) this.#settle(this.#phase.ask);
  }

  #type(line: AnswerLine, key: Key): void {
    const typed = line.press(key);
    if (typed.kind === "more") this.#options.output.write(typed.echo);
    else this.#end(typed.kind === "line" ? typed.text : undefined);
  }

  #end(line: string | undefined): void {
    if (this.#phase.kind === "idle") return;
    const { kind } = this.#phase;
    this.#dispose();
    this.#phase = { kind: "idle" };
    this.#options.output.write(`${PASTE_MARKS_OFF}${kind === "open" ? "\n" : ""}`);
    this.#answer(line);
  }

  /** Leaves raw mode while the shell has the terminal. */
  #suspend(signal: "SIGTSTP" | "SIGQUIT"): void {
    this.#setRaw(false);
    this.#options.signal(signal);
  }

  readonly #leave = (): void => this.release();
}
