// The deltas that followers receive: no log keeps them, so they are compared with what the turns really say.
import type { Delta } from "../src/core/model/delta.ts";
import type { Life } from "./life.ts";
import type { Follower } from "./records.ts";

type Violate = (rule: string, message: string) => void;

/** A piece of an answer is the piece that the turn has there, and comes before the end of the turn. */
export function checkDelta(follower: Follower, delta: Delta, life: Life, violate: Violate): void {
  if (follower.deltas === "without") violate("G29", "A follower received a delta and had not requested any.");
  if (delta.type !== "delta" || delta.kind === "reasoning") return;
  if (follower.over.has(delta.turnId)) violate("G16", `A follower received a delta of ${delta.turnId} after its end.`);
  const turn = life.actors.turns.findLast(({ id }) => id === delta.turnId);
  if (turn !== undefined && !turn.hasSaid(delta.text, delta.from)) {
    violate("G29", `A follower received a delta of ${delta.turnId} that is not part of its text.`);
  }
}
