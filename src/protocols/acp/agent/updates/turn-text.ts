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
  #sent = 0;
  #thought = 0;
  #kept = 0;
  #tail = "";
  /** The number of the current message: text after a call is a new message. */
  #message = 1;
  #hasText = false;

  /** `joined`: a delta in the middle of the turn. The text before it is not sent. */
  constructor(joined?: Extract<Delta, { type: "delta" }>) {
    if (joined === undefined) return;
    if (joined.kind === "reasoning") this.#thought = joined.from;
    else this.#sent = joined.from;
  }

  get message(): number {
    return this.#message;
  }

  /** A call separates the text before it from the text after it. */
  afterCall(): void {
    if (this.#hasText) this.#message += 1;
    this.#hasText = false;
  }

  /** Adds a delta and returns its new text. A delta after a gap is skipped: the logged piece fills it. */
  delta({ from, text, kind }: Extract<Delta, { type: "delta" }>): string {
    const before = kind === "reasoning" ? this.#thought : this.#sent;
    if (from > before) return "";
    const fresh = text.slice(before - from);
    if (kind === "reasoning") this.#thought += fresh.length;
    else this.#add(fresh);
    return fresh;
  }

  logged(text: string): string {
    const fresh = text.slice(Math.max(0, this.#sent - this.#kept));
    this.#kept += text.length;
    this.#add(fresh);
    return fresh;
  }

  /** The unsent rest of the complete text; undefined if it differs from the text that was sent. */
  rest(whole: string): string | undefined {
    if (!whole.slice(0, this.#sent).endsWith(this.#tail) || whole.length < this.#sent) return undefined;
    return whole.slice(this.#sent);
  }

  thoughts(parts: readonly TurnPart[]): string {
    const whole = parts.flatMap((part) => (part.kind === "reasoning" ? [part.text] : [])).join("");
    return whole.slice(this.#thought);
  }

  #add(fresh: string): void {
    if (fresh === "") return;
    this.#sent += fresh.length;
    this.#hasText = true;
    this.#tail = (this.#tail + fresh).slice(-TAIL_CHARS);
  }
}
