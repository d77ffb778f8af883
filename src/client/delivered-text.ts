// How much of the text of live turns a reader has heard already: after a cut a server says it again from the start.
import type { Delta } from "../core/model/delta.ts";
import type { Recorded } from "../core/model/event.ts";
import type { TurnId } from "../core/model/ids.ts";

export class DeliveredText {
  /** Characters, by turn: of its answer, and of what it says to itself. Only of turns that have not ended. */
  readonly #turns = new Map<TurnId, { text: number; reasoning: number }>();

  /** What is new of a delta. Undefined: nothing is. */
  hear(delta: Delta): Delta | undefined {
    if (delta.type !== "delta") return delta;
    const heard = this.#turns.get(delta.turnId) ?? { text: 0, reasoning: 0 };
    this.#turns.set(delta.turnId, heard);
    const kind = delta.kind ?? "text";
    const end = delta.from + delta.text.length;
    const known = heard[kind] - delta.from;
    if (end <= heard[kind]) return undefined;
    heard[kind] = end;
    // Text that was dropped on the way is missing here, and nothing is trimmed.
    return known <= 0 ? delta : { ...delta, from: delta.from + known, text: delta.text.slice(known) };
  }

  /** A fact that changes what will be said: a turn that has ended says nothing, one that is asked again begins anew. */
  note(event: Recorded): void {
    if (event.type === "turn.settled" || event.type === "turn.requested") this.#turns.delete(event.turnId);
    if (event.type === "run.recovered") this.#turns.clear();
  }

  /** What was missed may be anything. */
  forget(): void {
    this.#turns.clear();
  }
}
