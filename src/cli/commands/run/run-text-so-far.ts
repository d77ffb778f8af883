// Assembles the text of a run from deltas, which may be lost, and recorded text: each character once, in order.
//
// Invariants
// 1. No text is returned twice: only the text of a turn beyond what was already returned is new.
// 2. No text is lost permanently: the recorded text replaces a lost delta.
import type { Delta } from "../../../core/model/delta.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { TurnId } from "../../../core/model/ids.ts";

interface TurnText {
  /** The text that was already returned. */
  shown: string;
  /** The recorded text of a turn that has not settled. */
  recorded: string;
}

export class RunTextSoFar {
  /** The turns that have not settled. */
  readonly #turns = new Map<TurnId, TurnText>();
  /** The turn that settled last, whose whole text was returned. */
  #last: { readonly turnId: TurnId; readonly shown: string } | undefined;

  /** The new text of a delta. Empty if it is a repetition, or if earlier text is still missing. */
  delta({ turnId, text, from }: Extract<Delta, { type: "delta" }>): string {
    const turn = this.#turn(turnId);
    return from > turn.shown.length ? "" : this.#add(turn, text.slice(turn.shown.length - from));
  }

  extended({ turnId, text }: Extract<Recorded, { type: "turn.extended" }>): string {
    const turn = this.#turn(turnId);
    turn.recorded += text;
    return this.#add(turn, turn.recorded.slice(turn.shown.length));
  }

  /** The rest of a turn. A turn may replace its earlier text: then the whole new text is returned, on a new line. */
  settled({ turnId, text }: Extract<Recorded, { type: "turn.settled" }>): string {
    const whole = text ?? this.#turn(turnId).recorded;
    const rest = this.whole(turnId, whole);
    this.#turns.delete(turnId);
    this.#last = { turnId, shown: whole };
    return rest;
  }

  /** The part of a turn's whole text that was not returned yet. */
  whole(turnId: TurnId, whole: string): string {
    const { shown } = this.#last?.turnId === turnId ? this.#last : this.#turn(turnId);
    if (whole.startsWith(shown)) return whole.slice(shown.length);
    return shown.startsWith(whole) ? "" : `${shown.endsWith("\n") ? "" : "\n"}${whole}`;
  }

  #add(turn: TurnText, text: string): string {
    turn.shown += text;
    return text;
  }

  #turn(id: TurnId): TurnText {
    const found = this.#turns.get(id) ?? { shown: "", recorded: "" };
    this.#turns.set(id, found);
    return found;
  }
}
