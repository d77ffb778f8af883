// Tracks how much of a turn's text was sent. The text arrives as deltas, again as logged pieces, and complete at the
// end.
//
// Invariants
// 1. All text is sent once and in order, whichever of the three arrives first, and whichever deltas were dropped.
import type { Delta } from "../../../../core/model/delta.ts";
import type { TurnPart } from "../../../../core/model/event.ts";

/** How much of the sent text is compared with the complete text: enough to notice a different one. */
const TAIL_CHARS = 64;

export class TurnText {
  #told = 0;
  #thought = 0;
  #kept = 0;
  #tail = "";
  /** The number of the current message: text after a call is a new message. */
  #message = 1;
  #spoken = false;

  /** `joined`: a delta in the middle of the turn. The text before it is not sent. */
  constructor(joined?: Extract<Delta, { type: "delta" }>) {
    if (joined === undefined) return;
    if (joined.kind === "reasoning") this.#thought = joined.from;
    else this.#told = joined.from;
  }

  get message(): number {
    return this.#message;
  }

  /** A call separates the text before it from the text after it. */
  interrupted(): void {
    if (this.#spoken) this.#message += 1;
    this.#spoken = false;
  }

  /** Adds a delta and returns its new text. A delta after a gap is skipped: the logged piece fills it. */
  said({ from, text, kind }: Extract<Delta, { type: "delta" }>): string {
    const before = kind === "reasoning" ? this.#thought : this.#told;
    if (from > before) return "";
    const fresh = text.slice(before - from);
    if (kind === "reasoning") this.#thought += fresh.length;
    else this.#tell(fresh);
    return fresh;
  }

  kept(text: string): string {
    const fresh = text.slice(Math.max(0, this.#told - this.#kept));
    this.#kept += text.length;
    this.#tell(fresh);
    return fresh;
  }

  /** The unsent rest of the complete text; undefined if it differs from the text that was sent. */
  rest(whole: string): string | undefined {
    if (!whole.slice(0, this.#told).endsWith(this.#tail) || whole.length < this.#told) return undefined;
    return whole.slice(this.#told);
  }

  thoughts(parts: readonly TurnPart[]): string {
    const whole = parts.flatMap((part) => (part.kind === "reasoning" ? [part.text] : [])).join("");
    return whole.slice(this.#thought);
  }

  #tell(fresh: string): void {
    if (fresh === "") return;
    this.#told += fresh.length;
    this.#spoken = true;
    this.#tail = (this.#tail + fresh).slice(-TAIL_CHARS);
  }
}
