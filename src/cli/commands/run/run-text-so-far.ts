// What a run has said, each character once and in order, although pieces of it may be dropped on the way.
//
// Invariants
// 1. Nothing is said twice: a turn's text is counted, and only what goes beyond the count is handed on.
// 2. Nothing is left out for good: what a lost delta would have said is made up for by the recorded text.
import type { Delta } from "../../../core/model/delta.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { TurnId } from "../../../core/model/ids.ts";

interface SaidTurn {
  /** What was handed on. */
  said: string;
  /** What the log has of a turn that goes on. */
  kept: string;
}

export class RunTextSoFar {
  /** Only turns that go on: one that has settled says nothing more. */
  readonly #turns = new Map<TurnId, SaidTurn>();
  /** The turn that settled last, all of which was handed on. */
  #last: { readonly turnId: TurnId; readonly said: string } | undefined;

  /** What is new in a delta. Empty if it was heard already, or if something before it is still missing. */
  delta({ turnId, text, from }: Extract<Delta, { type: "delta" }>): string {
    const turn = this.#turn(turnId);
    return from > turn.said.length ? "" : this.#say(turn, text.slice(turn.said.length - from));
  }

  extended({ turnId, text }: Extract<Recorded, { type: "turn.extended" }>): string {
    const turn = this.#turn(turnId);
    turn.kept += text;
    return this.#say(turn, turn.kept.slice(turn.said.length));
  }

  /** The rest of it. A turn may replace what it had said by something else: then that is said, on a line of its own. */
  settled({ turnId, text }: Extract<Recorded, { type: "turn.settled" }>): string {
    const whole = text ?? this.#turn(turnId).kept;
    const rest = this.whole(turnId, whole);
    this.#turns.delete(turnId);
    this.#last = { turnId, said: whole };
    return rest;
  }

  /** What of the whole text of a turn was not handed on yet. */
  whole(turnId: TurnId, whole: string): string {
    const { said } = this.#last?.turnId === turnId ? this.#last : this.#turn(turnId);
    if (whole.startsWith(said)) return whole.slice(said.length);
    return said.startsWith(whole) ? "" : `${said.endsWith("\n") ? "" : "\n"}${whole}`;
  }

  #say(turn: SaidTurn, text: string): string {
    turn.said += text;
    return text;
  }

  #turn(id: TurnId): SaidTurn {
    const found = this.#turns.get(id) ?? { said: "", kept: "" };
    this.#turns.set(id, found);
    return found;
  }
}
