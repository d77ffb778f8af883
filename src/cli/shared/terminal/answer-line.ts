// Parses keys from a terminal and edits the line that answers a question.
//
// Invariants
// 1. A split read changes nothing: an escape sequence is never taken for typed text.
// 2. Pasted text is recognised if the terminal marks it, and dropped where it must not answer.

/** The status request, which a terminal answers after it has painted everything before it, and its reply. */
export const PAINTED_QUERY = "\u001b[5n";
const PAINTED_REPLY = "\u001b[0n";

/** Bracketed paste mode: the terminal puts pasted text between two marks. */
export const PASTE_MARKS_ON = "\u001b[?2004h";
export const PASTE_MARKS_OFF = "\u001b[?2004l";
const PASTE_BEGINS = "\u001b[200~";
const PASTE_ENDS = "\u001b[201~";

export type Key =
  | { readonly kind: "text"; readonly text: string; readonly pasted: boolean }
  | { readonly kind: "enter"; readonly pasted: boolean }
  | { readonly kind: "rubout" | "clear" | "end" | "interrupt" | "suspend" | "quit" }
  /** The terminal has painted everything that was written before the status request. */
  | { readonly kind: "painted" }
  /** Arrows, function keys and other keys without a meaning here. */
  | { readonly kind: "other" };

const CONTROL: Readonly<Record<string, Exclude<Key["kind"], "text" | "enter">>> = {
  "\u0003": "interrupt",
  "\u0004": "end",
  "\u0008": "rubout",
  "\u0015": "clear",
  "\u001a": "suspend",
  "\u001c": "quit",
  "\u007f": "rubout",
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one.
const SEQUENCE = /^\u001b(?:\[[0-?]*[ -/]*[@-~]|O[ -~]|[^[O])/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
const BEGUN = /^\u001b(?:\[[0-?]*[ -/]*|O)?$/;

/** Input that has not ended after this many characters is not a sequence. */
const SEQUENCE_CHARS_MAX = 64;

/** Parses the input of a terminal into keys. An incomplete sequence is kept until the rest arrives. */
export class KeyReader {
  #rest = "";
  #pasting = false;

  read(sent: string): readonly Key[] {
    const keys: Key[] = [];
    let text = this.#rest + sent;
    this.#rest = "";
    while (text !== "") {
      const sequence = SEQUENCE.exec(text)?.[0];
      if (sequence === undefined && BEGUN.test(text) && text.length <= SEQUENCE_CHARS_MAX) {
        this.#rest = text;
        break;
      }
      const taken = sequence ?? String.fromCodePoint(text.codePointAt(0) ?? 0);
      keys.push(this.#keyOf(taken));
      text = text.slice(taken.length);
    }
    return keys;
  }

  #keyOf(taken: string): Key {
    if (taken === PASTE_BEGINS || taken === PASTE_ENDS) {
      this.#pasting = taken === PASTE_BEGINS;
      return { kind: "other" };
    }
    if (taken === PAINTED_REPLY) return { kind: "painted" };
    if (taken === "\r" || taken === "\n") return { kind: "enter", pasted: this.#pasting };
    const control = CONTROL[taken];
    if (control !== undefined) return { kind: control };
    return /^\p{C}/u.test(taken) ? { kind: "other" } : { kind: "text", text: taken, pasted: this.#pasting };
  }
}

/** The effect of one key on the line: what to echo, or the finished line. */
export type Typed =
  | { readonly kind: "more"; readonly echo: string }
  | { readonly kind: "line"; readonly text: string }
  | { readonly kind: "gone" };

const RUBOUT = "\b \b";

export class AnswerLine {
  readonly #paste: "taken" | "dropped";
  #characters: readonly string[] = [];

  constructor(paste: "taken" | "dropped") {
    this.#paste = paste;
  }

  get text(): string {
    return this.#characters.join("");
  }

  press(key: Key): Typed {
    switch (key.kind) {
      case "text":
        if (key.pasted && this.#paste === "dropped") return { kind: "more", echo: "" };
        this.#characters = [...this.#characters, key.text];
        return { kind: "more", echo: key.text };
      case "enter":
        // Lines that are pasted together are one answer, not several.
        return key.pasted ? { kind: "more", echo: "" } : { kind: "line", text: this.text };
      case "rubout":
        return this.#cut(1);
      case "clear":
        return this.#cut(this.#characters.length);
      case "end":
        return this.#characters.length === 0 ? { kind: "gone" } : { kind: "more", echo: "" };
      default:
        return { kind: "more", echo: "" };
    }
  }

  #cut(count: number): Typed {
    const cut = this.#characters.slice(Math.max(0, this.#characters.length - count));
    this.#characters = this.#characters.slice(0, this.#characters.length - cut.length);
    return { kind: "more", echo: cut.map((one) => (isWide(one) ? RUBOUT + RUBOUT : RUBOUT)).join("") };
  }
}

/** Whether a character may take two columns. Errs towards two. */
export const isWide = (character: string): boolean => (character.codePointAt(0) ?? 0) >= 0x1100;
