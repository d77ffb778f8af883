// How far a turn's words have been told. Pieces come as they are said, again as they are kept, and as a whole at last.
//
// Invariants
// 1. Everything is told once and in order, whichever of the three comes first, and whatever of the first was dropped.
import type { Delta } from "../../../../core/model/delta.ts";
import type { TurnPart } from "../../../../core/model/event.ts";

/** What is compared with the whole at the end: enough to notice that it is another text. */
const TAIL_CHARS = 64;

export class TurnText {
  #told = 0;
  #thought = 0;
  #kept = 0;
  #tail = "";
  /** Counts the messages of the turn: what is said after a call is another one. */
  #message = 1;
  #spoken = false;

  /** `joined`: the first word heard is not the first that was said, and what came before is not told. */
  constructor(joined?: Extract<Delta, { type: "delta" }>) {
    if (joined === undefined) return;
    if (joined.kind === "reasoning") this.#thought = joined.from;
    else this.#told = joined.from;
  }

  get message(): number {
    return this.#message;
  }

  /** A call comes between what was said and what will be. */
  interrupted(): void {
    if (this.#spoken) this.#message += 1;
    this.#spoken = false;
  }

  /** The next piece of what is said. A piece that does not follow is not told: what was kept brings it. */
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

  /** What is left of the whole. Undefined: it is another text than the one that was told. */
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
